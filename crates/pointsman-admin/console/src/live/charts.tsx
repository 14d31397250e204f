// Moving charts of requests, errors and durations, one line for each place.

import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { clock, duration, rate } from "../figures";
import { type Look, LOOKS_MAX, type Place, type Rates, ratesAt } from "../traffic";

/** Colours that lines have: `--line-0` and so on in the style. */
export const COLOURS = 6;

/** A line of a chart. */
export interface Drawn {
  key: string;
  name: string;
}

interface Kind {
  title: string;
  of: (rates: Rates) => number | null;
  shown: (value: number) => string;
  /** What its scale goes to at least. */
  least: number;
}

const CHARTS: Kind[] = [
  { title: "Requests / s", of: (rates) => rates.requests, shown: rate, least: 1 },
  { title: "Errors (5xx) / s", of: (rates) => rates.errors, shown: rate, least: 1 },
  { title: "99 % within", of: (rates) => rates.p99, shown: duration, least: 1_000 },
];

export function Charts({ looks, places }: { looks: Look[]; places: Place[] }) {
  return (
    <div class="charts">
      {CHARTS.map(({ title, of, shown, least }) => {
        const value = (index: number, key: string) => {
          const rates = ratesAt(looks, index, key);
          return rates ? of(rates) : null;
        };
        return <Chart key={title} {...{ title, shown, value, least }} looks={looks} lines={places} />;
      })}
    </div>
  );
}

interface ChartOf {
  title: string;
  looks: { at: number }[];
  lines: Drawn[];
  /** What a line has at a look. */
  value: (index: number, key: string) => number | null;
  shown: (value: number) => string;
  /** The end of the scale, where it is not the largest value. */
  most?: number;
  /** What it goes to at least, otherwise. */
  least?: number;
}

export function Chart({ title, looks, lines, value, shown, most, least = 1 }: ChartOf) {
  const box = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | null>(null);
  const names = JSON.stringify(lines.map((line) => line.key));
  useEffect(() => {
    const parent = box.current!;
    const make = () => {
      chart.current?.destroy();
      chart.current = new uPlot(options(shown, [most, least], lines, parent), [[]], parent);
    };
    make();
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    scheme.addEventListener("change", make);
    const watcher = new ResizeObserver(() => chart.current?.setSize(sizeOf(parent)));
    watcher.observe(parent);
    return () => {
      scheme.removeEventListener("change", make);
      watcher.disconnect();
      chart.current?.destroy();
      chart.current = null;
    };
    // What it shows is drawn below; another set of lines is another chart.
  }, [names]);
  useEffect(() => {
    const values = lines.map((line) => looks.map((_, index) => value(index, line.key)));
    chart.current?.setData([looks.map((look) => look.at), ...values]);
  }, [looks, names]);
  return (
    <figure>
      <figcaption>{title}</figcaption>
      <div class="chart" ref={box} aria-hidden="true" />
    </figure>
  );
}

const sizeOf = (parent: HTMLElement) => ({ width: Math.max(120, parent.clientWidth), height: 150 });

function options(shown: ChartOf["shown"], [most, least]: [number | undefined, number], lines: Drawn[], parent: HTMLElement): uPlot.Options {
  const style = getComputedStyle(parent);
  const colour = (name: string) => style.getPropertyValue(name).trim();
  const font = `11px ${style.fontFamily}`;
  const axis = { stroke: colour("--quiet"), font, ticks: { show: false }, grid: { stroke: colour("--rule"), width: 1 } };
  return {
    ...sizeOf(parent),
    legend: { show: false },
    cursor: { y: false, drag: { setScale: false } },
    padding: [8, 30, 0, 0],
    scales: {
      // As long as there is little to show, it comes in from the right.
      x: { time: true, range: (_, _min, max) => [max - (LOOKS_MAX - 1), max] },
      y: { range: (_, _min, max) => [0, most ?? Math.max(max || 0, least) * 1.1] },
    },
    series: [
      {},
      ...lines.map(({ name }, line) => ({
        label: name,
        stroke: colour(`--line-${line}`),
        width: 1.5,
        points: { show: false },
        spanGaps: true,
      })),
    ],
    axes: [
      { ...axis, space: 80, size: 24, values: (_, splits) => splits.map(clock) },
      { ...axis, size: 56, values: (_, splits) => splits.map((split) => (split === 0 ? "0" : shown(split))) },
    ],
  };
}
