// The map of the way: listeners, rules, pools and servers, with lines as wide as what goes along them.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { rate } from "../figures";
import type { Look } from "../traffic";
import { COLUMNS, type Drawing, type Line, draw, type Spot } from "./way";

export function WayMap({ looks }: { looks: Look[] }) {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const watcher = new ResizeObserver(([entry]) => setWidth(Math.floor(entry?.contentRect.width ?? 0)));
    watcher.observe(box.current!);
    return () => watcher.disconnect();
  }, []);
  const drawing = useMemo(() => (width > 0 ? draw(looks, width) : null), [looks, width]);
  return (
    <section aria-labelledby="way">
      <h2 id="way">The way of the requests</h2>
      <div class="scroll map" ref={box} role="region" aria-label="Map" tabIndex={0}>
        {drawing && <Drawn drawing={drawing} />}
      </div>
    </section>
  );
}

function Drawn({ drawing }: { drawing: Drawing }) {
  const { width, height, spots, lines, xs } = drawing;
  return (
    <svg width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="img" aria-label={said(spots)}>
      {COLUMNS.map((title, column) => (
        <text key={title} class="column" x={xs[column]} y={12}>
          {title}
        </text>
      ))}
      {lines.map((line) => (
        <g key={line.key}>
          <title>{`${line.name}: ${rate(line.rate)} / s`}</title>
          <path class="line" d={curve(line)} stroke-width={line.width} />
          {line.badWidth > 0 && <path class="line" data-mood="bad" d={curve(line)} stroke-width={line.badWidth} />}
        </g>
      ))}
      {spots.map((spot) => (
        <SpotDrawn key={spot.key} spot={spot} />
      ))}
    </svg>
  );
}

function SpotDrawn({ spot }: { spot: Spot }) {
  const middle = spot.y + spot.height / 2;
  const errors = spot.errors > 0 ? `${rate(spot.errors)} err` : "";
  const figure = rate(spot.rate);
  // What does not fit is cut here: a text of SVG is not.
  const room = Math.floor((spot.width - 22 - 6.6 * (figure.length + (errors ? errors.length + 1 : 0))) / 6.6);
  const name = cut(spot.name, room);
  return (
    <g class="spot" data-kind={spot.kind} data-state={spot.state ?? undefined} data-name={spot.name}>
      <title>{[spot.name, spot.stateWords, `${figure} / s`, errors].filter(Boolean).join(", ")}</title>
      <rect x={spot.x} y={spot.y} width={spot.width} height={spot.height} rx={2} />
      <rect class="edge" x={spot.x} y={spot.y} width={4} height={spot.height} />
      <text x={spot.x + 10} y={middle} dominant-baseline="central">
        {name}
      </text>
      <text x={spot.x + spot.width - 6} y={middle} dominant-baseline="central" text-anchor="end" class="figure">
        {errors && <tspan class="errors">{errors} </tspan>}
        {figure}
      </text>
    </g>
  );
}

/** In its middle: names of a kind often begin alike, and their ends tell them apart. */
function cut(name: string, room: number): string {
  const letters = [...name];
  if (letters.length <= room) return name;
  const kept = Math.max(2, room - 1);
  return `${letters.slice(0, Math.ceil(kept / 2)).join("")}…${letters.slice(-Math.floor(kept / 2)).join("")}`;
}

function curve({ from, to }: Line): string {
  const middle = (from.x + to.x) / 2;
  return `M${from.x} ${from.y}C${middle} ${from.y} ${middle} ${to.y} ${to.x} ${to.y}`;
}

/** The map in a sentence; the tables below have its figures. */
function said(spots: Spot[]): string {
  const count = (kind: string, word: string) => `${spots.filter((spot) => spot.kind === kind).length} ${word}`;
  const bad = spots.filter((spot) => spot.kind === "server" && spot.state !== "up");
  const states = bad.map((spot) => `${spot.name} is ${spot.state}`);
  const all = [count("listener", "listeners"), count("rule", "rules"), count("pool", "pools"), count("server", "servers")];
  return `${all.join(", ")}; ${states.length > 0 ? states.join(", ") : "all servers are up"}`;
}
