// A chart of a result, as SVG: its lines and bars stand where those of a report stand, whose drawing is in pointsman-measure.

import { useEffect, useRef, useState } from "preact/hooks";
import type { Axis, Chart, Layer, Line } from "./document";
import { GREATEST_SHOWN, isShown, joined, number, type Range, rangeOf, type Scale, scaleOf, shown } from "./scale";

/** As wide as in a report; where there is less room, as wide as that. */
const WIDTH_MAX = 640;
const WIDTH_MIN = 260;
const LEFT = 76;
const RIGHT = 16;
const TOP = 34;
const BOTTOM = 296;
/** The title and the legend stand beside the picture, not in it. */
const VIEW_TOP = 24;
const VIEW_BOTTOM = 340;
/** Lines with a colour of their own; further ones begin anew. */
const COLOURS = 6;
/** Lines of more points are drawn without a mark at each. */
const MARKS_MAX = 200;
const CROSS = 8;
/** More are not told apart; the first ones are drawn. */
const LINES_MAX = 60;
const BARS_MAX = 5_000;
/** What a number below the axis takes. */
const TICK_ROOM = 52;

/** What axes span; the horizontal one of bars spans nothing. */
export interface Spans {
  x: Range | null;
  y: Range;
}

export function spansOf(chart: Chart): Spans | null {
  const { x, y, content } = chart;
  if (!("lines" in content)) {
    const sums = content.categories.map((_, at) => content.layers.reduce((below, layer) => topOf(below, heightOf(layer, at)), 0));
    return { x: null, y: rangeOf([...sums, 0], false)! };
  }
  const xs: number[] = [];
  const ys: number[] = [];
  const see = (vx: number, vy: number) => isShown(vx, x.isLog) && isShown(vy, y.isLog) && (xs.push(vx), ys.push(vy));
  for (const { points, band } of content.lines) {
    for (const [vx, vy] of points) see(vx, vy);
    for (const [vx, low, high] of band) {
      see(vx, low);
      see(vx, high);
    }
  }
  const [across, upwards] = [rangeOf(xs, x.isLog), rangeOf(ys, y.isLog)];
  return across && upwards && { x: withOrigin(across, x), y: withOrigin(upwards, y) };
}

const withOrigin = (range: Range, axis: Axis) => (axis.isFromZero && !axis.isLog ? joined(range, { low: 0, high: 0 }) : range);

const heightOf = (layer: Layer, at: number) => {
  const value = layer.values[at] ?? 0;
  return isShown(value, false) ? Math.max(0, value) : 0;
};

/** Where a part of a bar ends that stands on others. Parts that are shown each for itself may come to more than is. */
const topOf = (below: number, height: number) => Math.min(below + height, GREATEST_SHOWN);

export function spanned(one: Spans | null, other: Spans | null): Spans | null {
  if (!one || !other) return one ?? other;
  return { x: one.x && other.x ? joined(one.x, other.x) : null, y: joined(one.y, other.y) };
}

/** A chart, on axes that span at least what is given; below it of which run it is. */
export function ChartFigure({ chart, spans, run }: { chart: Chart; spans: Spans | null; run: string | null }) {
  const box = useRef<HTMLElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const watcher = new ResizeObserver(([entry]) => {
      setWidth(Math.max(WIDTH_MIN, Math.min(WIDTH_MAX, Math.floor(entry?.contentRect.width ?? 0))));
    });
    watcher.observe(box.current!);
    return () => watcher.disconnect();
  }, []);
  const own = spansOf(chart);
  return (
    <figure ref={box} data-chart={shown(chart.id)}>
      <figcaption>
        <b>{shown(chart.title)}</b> {run !== null && <span class="quiet">{shown(run)}</span>}
      </figcaption>
      {own && width > 0 && <Drawing {...{ chart, width }} spans={spanned(own, spans)!} />}
      {!own && <p class="none">nothing was measured</p>}
      {own && <Legend chart={chart} />}
    </figure>
  );
}

/** Where a value is in the picture. */
interface Places {
  width: number;
  x: ((value: number) => number) | null;
  y: (value: number) => number;
  /** The same, and not below the axis. */
  within: (value: number) => number;
}

function Drawing({ chart, width, spans }: { chart: Chart; width: number; spans: Spans }) {
  const { x, y, content } = chart;
  const [across, upwards] = [spans.x && scaleOf(spans.x, x.isLog), scaleOf(spans.y, y.isLog)];
  const upwardsTo = (value: number) => BOTTOM - upwards.place(value) * (BOTTOM - TOP);
  const places: Places = {
    width,
    x: across && ((value) => LEFT + across.place(value) * (width - LEFT - RIGHT)),
    y: upwardsTo,
    within: (value) => upwardsTo(upwards.atLeast(value)),
  };
  const label = `${shown(chart.title)}: ${shown(y.label)} over ${shown(x.label)}`;
  return (
    <svg width={width} height={VIEW_BOTTOM - VIEW_TOP} viewBox={`0 ${VIEW_TOP} ${width} ${VIEW_BOTTOM - VIEW_TOP}`} role="img" aria-label={label}>
      <Ticks {...{ places, upwards }} across={across} />
      <text class="label" x={(LEFT + width - RIGHT) / 2} y={BOTTOM + 36}>
        {shown(x.label)}
      </text>
      <text class="label" transform={`translate(14 ${(TOP + BOTTOM) / 2}) rotate(-90)`}>
        {shown(y.label)}
      </text>
      {"lines" in content
        ? content.lines.slice(0, LINES_MAX).map((line, at) => <LineDrawn key={at} {...{ line, places, chart }} colour={at % COLOURS} />)
        : <Bars {...{ places, ...content }} />}
    </svg>
  );
}

function Ticks({ places, across, upwards }: { places: Places; across: Scale | null; upwards: Scale }) {
  const every = across ? Math.ceil((across.ticks.length * TICK_ROOM) / (places.width - LEFT)) : 1;
  return (
    <>
      {upwards.ticks.map((tick) => (
        <g key={tick}>
          <path class="grid" d={`M${LEFT} ${px(places.y(tick))}H${px(places.width - RIGHT)}`} />
          <text class="y" x={LEFT - 6} y={px(places.y(tick) + 4)}>
            {number(tick)}
          </text>
        </g>
      ))}
      {across?.ticks.map((tick, at) => (
        <g key={tick}>
          <path class="grid" d={`M${px(places.x!(tick))} ${TOP}V${BOTTOM}`} />
          {at % every === 0 && (
            <text class="x" x={px(places.x!(tick))} y={BOTTOM + 16}>
              {number(tick)}
            </text>
          )}
        </g>
      ))}
    </>
  );
}

function LineDrawn({ line, places, chart, colour }: { line: Line; places: Places; chart: Chart; colour: number }) {
  const x = places.x;
  if (!x) return null;
  const isDrawn = (vx: number, vy: number) => isShown(vx, chart.x.isLog) && isShown(vy, chart.y.isLog);
  // Where no range is known there is no band. One that begins at 0 is known, and a logarithmic axis has no such place.
  const bands = parted(line.band, ([vx, low, high]) => isDrawn(vx, high) && isShown(low, false));
  const points = line.points.filter(([vx, vy]) => isDrawn(vx, vy));
  const spots = points.map(([vx, vy]): [number, number] => [x(vx), places.y(vy)]);
  const hasMarks = line.isScattered ? spots.length <= BARS_MAX : spots.length <= MARKS_MAX;
  return (
    <g data-line={colour}>
      {bands.map((band, at) => (
        <path key={at} class="band" d={`${path(outlineOf(band, x, places.within), false)}Z`} />
      ))}
      {!line.isScattered && <path class="curve" d={path(spots, line.isStepped)} />}
      {hasMarks &&
        points.map(([vx, vy], at) => {
          const [cx, cy] = spots[at]!;
          const title = <title>{`${shown(line.name)}: ${number(vx)}, ${number(vy)}`}</title>;
          return line.isScattered ? (
            <path key={at} class="cross" d={cross(cx, cy)}>
              {title}
            </path>
          ) : (
            <circle key={at} cx={px(cx)} cy={px(cy)} r={2.5}>
              {title}
            </circle>
          );
        })}
    </g>
  );
}

/** Around a band; a place that has none beside it is as wide as a cross. */
function outlineOf(band: Line["band"], x: (value: number) => number, y: (value: number) => number): [number, number][] {
  const [only] = band;
  if (only && band.length === 1) {
    const [vx, low, high] = only;
    const [left, right] = [x(vx) - CROSS / 2, x(vx) + CROSS / 2];
    return [[left, y(high)], [right, y(high)], [right, y(low)], [left, y(low)]];
  }
  const above = band.map(([vx, , high]): [number, number] => [x(vx), y(high)]);
  const below = band.map(([vx, low]): [number, number] => [x(vx), y(low)]).reverse();
  return [...above, ...below];
}

/** What hangs together. */
function parted<T>(all: T[], isIn: (one: T) => boolean): T[][] {
  const parts: T[][] = [[]];
  for (const one of all) {
    if (isIn(one)) parts.at(-1)!.push(one);
    else parts.push([]);
  }
  return parts.filter((part) => part.length > 0);
}

function Bars({ places, categories, layers }: { places: Places; categories: string[]; layers: Layer[] }) {
  const room = (places.width - LEFT - RIGHT) / Math.max(1, categories.length);
  const every = Math.max(1, Math.ceil((categories.length * 76) / (places.width - LEFT)), Math.ceil(categories.length / 12));
  const drawn = layers.slice(0, Math.max(1, Math.floor(BARS_MAX / Math.max(1, categories.length))));
  return (
    <>
      {categories.map((category, at) => {
        const left = LEFT + room * (at + 0.15);
        let below = 0;
        return (
          <g key={at}>
            {drawn.map((layer, index) => {
              const value = heightOf(layer, at);
              const end = topOf(below, value);
              const [from, to] = [places.y(below), places.y(end)];
              below = end;
              return (
                <rect key={index} data-line={index % COLOURS} x={px(left)} y={px(to)} width={px(room * 0.7)} height={px(from - to)}>
                  <title>{`${shown(category)}, ${shown(layer.name)}: ${number(value)}`}</title>
                </rect>
              );
            })}
            {at % every === 0 && (
              <text class="x" x={px(left + room * 0.35)} y={BOTTOM + 16}>
                {short(shown(category), 14)}
              </text>
            )}
          </g>
        );
      })}
    </>
  );
}

/** What each line or layer is; of more than have a colour of their own how many there are. */
function Legend({ chart: { content } }: { chart: Chart }) {
  const all = "lines" in content ? content.lines : content.layers.map((layer) => ({ name: layer.name, isScattered: false }));
  return (
    <ul class="legend">
      {all.slice(0, COLOURS).map(({ name, isScattered }, at) => (
        <li key={at} data-line={at}>
          <svg width="22" height="8" aria-hidden="true">
            <path class={isScattered ? "cross" : "curve"} d={isScattered ? cross(11, 4) : "M0 4h22"} />
          </svg>
          {shown(name)}
        </li>
      ))}
      {all.length > COLOURS && <li>and {all.length - COLOURS} more</li>}
    </ul>
  );
}

function path(places: [number, number][], isStepped: boolean): string {
  const pieces = places.map(([x, y], at) => {
    if (at === 0) return `M${px(x)} ${px(y)}`;
    return isStepped ? `H${px(x)}V${px(y)}` : `L${px(x)} ${px(y)}`;
  });
  return pieces.join("");
}

const cross = (x: number, y: number) => `M${px(x - CROSS / 2)} ${px(y - CROSS / 2)}l${CROSS} ${CROSS}m0-${CROSS}l-${CROSS} ${CROSS}`;

const px = (value: number) => value.toFixed(1);

const short = (text: string, characters: number) => (text.length > characters ? `${text.slice(0, characters - 1)}…` : text);
