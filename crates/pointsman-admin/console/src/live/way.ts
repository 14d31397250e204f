// Where what stands on the map of the way, and how wide its lines are.

import type { State } from "../api";
import { key, type Kind, type Look, OTHER_RULES, type Place, ratesNow, sum } from "../traffic";

export const COLUMNS = ["Listeners", "Rules", "Pools", "Servers"];

/** Spots of a column; of what has less traffic than these there is one spot for all. */
const SPOTS_MAX = 16;
const WIDTH_MIN = 680;
const TOP = 24;
const GAP = 7;
/** Of one without a line. */
const SPOT_HEIGHT = 20;
/** What a column takes for its lines, where all goes through it. */
const LINES_HEIGHT = 140;
const LINE_WIDTH_MIN = 1;
const BAD_WIDTH_MIN = 1.5;

export interface Spot {
  key: string;
  kind: Kind | "answered";
  name: string;
  state: State | null;
  stateWords: string | null;
  rate: number;
  errors: number;
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Line {
  key: string;
  name: string;
  rate: number;
  width: number;
  /** How much of it went wrong: a line within the line. */
  badWidth: number;
  from: { x: number; y: number };
  to: { x: number; y: number };
}

export interface Drawing {
  width: number;
  height: number;
  xs: number[];
  spots: Spot[];
  lines: Line[];
}

interface Way {
  from: string;
  to: string;
  rate: number;
}

const ANSWERED = "answered";

export function draw(looks: Look[], room: number): Drawing | null {
  const last = looks.at(-1);
  if (!last) return null;
  const width = Math.max(room, WIDTH_MIN);
  const spotWidth = Math.min(210, Math.floor((width - 3 * 50) / 4));
  const step = (width - spotWidth) / 3;
  const shown = shownOf(looks, last);
  const ways = waysOf(last, shown);
  const columns = withAnswered(shown.columns, ways);
  const most = Math.max(1e-9, ...columns.map((column) => sum(column.map((spot) => spot.rate))));
  const scale = LINES_HEIGHT / most;
  const lineWidth = (rate: number) => Math.max(LINE_WIDTH_MIN, rate * scale);

  for (const column of columns) {
    for (const spot of column) {
      const side = (end: "from" | "to") => sum(ways.filter((way) => way[end] === spot.key).map((way) => way.rate));
      spot.height = SPOT_HEIGHT + scale * Math.max(side("from"), side("to"));
    }
  }
  const tall = (column: Spot[]) => sum(column.map((spot) => spot.height)) + GAP * Math.max(0, column.length - 1);
  // Whatever goes where: what stands below the map is not to move.
  const height = Math.max(...columns.map((column) => column.length * (SPOT_HEIGHT + GAP) - GAP)) + LINES_HEIGHT;
  columns.forEach((column, index) => {
    let y = TOP + (height - tall(column)) / 2;
    for (const spot of column) {
      Object.assign(spot, { x: Math.round(index * step), y, width: spotWidth });
      y += spot.height + GAP;
    }
  });

  const spots = columns.flat();
  return {
    width,
    height: Math.ceil(TOP + height + 4),
    xs: columns.map((_, index) => Math.round(index * step)),
    spots,
    lines: linesOf(ways, spots, lineWidth),
  };
}

/** Lines lie beside each other where they begin and end, in the order of what they lead to. */
function linesOf(ways: Way[], spots: Spot[], lineWidth: (rate: number) => number): Line[] {
  const by = new Map(spots.map((spot) => [spot.key, spot]));
  const taken = { from: new Map<string, number>(), to: new Map<string, number>() };
  const place = (end: "from" | "to", spot: Spot, width: number) => {
    const all = sum(ways.filter((way) => way[end] === spot.key).map((way) => lineWidth(way.rate)));
    const before = taken[end].get(spot.key) ?? 0;
    taken[end].set(spot.key, before + width);
    return spot.y + (spot.height - all) / 2 + before + width / 2;
  };
  // What goes wrong is known where all goes one way: of the rule, otherwise of what the line leads to.
  const many = (end: "from" | "to", spot: Spot) => ways.filter((way) => way[end] === spot.key).length > 1;
  const badShare = (from: Spot, to: Spot) => {
    const share = (spot: Spot) => (spot.rate > 0 ? spot.errors / spot.rate : 0);
    if (from.kind === "rule" && !many("from", from)) return share(from);
    return many("to", to) ? Math.min(share(from), share(to)) : share(to);
  };
  const at = (spot: string) => by.get(spot)?.y ?? 0;
  const ordered = [...ways].sort((a, b) => at(a.from) - at(b.from) || at(a.to) - at(b.to));
  return ordered.flatMap((way) => {
    const [from, to] = [by.get(way.from), by.get(way.to)];
    if (!from || !to) return [];
    const width = lineWidth(way.rate);
    const share = badShare(from, to);
    return [
      {
        key: `${way.from} ${way.to}`,
        name: `${from.name} → ${to.name}`,
        rate: way.rate,
        width,
        badWidth: share > 0 ? Math.min(width, Math.max(BAD_WIDTH_MIN, width * share)) : 0,
        from: { x: from.x + from.width, y: place("from", from, width) },
        to: { x: to.x, y: place("to", to, width) },
      },
    ];
  });
}

/** The spots of each column, and by which of them a place is shown. */
interface Shown {
  columns: Spot[][];
  spotOf: Map<string, string>;
  rates: Map<string, number>;
}

function shownOf(looks: Look[], last: Look): Shown {
  const places = [...last.places.values()];
  const [spotOf, rates] = [new Map<string, string>(), new Map<string, number>()];
  const spot = (place: Place): Spot => {
    const { requests = 0, errors = 0 } = ratesNow(looks, place.key) ?? {};
    rates.set(place.key, requests);
    const { key, kind, name, state, stateWords } = place;
    return { key, kind, name, state, stateWords, rate: requests, errors, x: 0, y: 0, width: 0, height: 0 };
  };
  // Those that have had most since the start: an order that stays.
  const column = (kind: Kind) => {
    const all = places.filter((place) => place.kind === kind);
    const kept = new Set([...all].sort((a, b) => b.total - a.total).slice(0, SPOTS_MAX));
    const shown = all.filter((place) => kept.has(place)).map(spot);
    const rest = all.filter((place) => !kept.has(place)).map(spot);
    for (const one of shown) spotOf.set(one.key, one.key);
    if (rest.length === 0) return shown;
    const more = { ...rest[0]!, key: `more ${kind}`, name: `${rest.length} more`, state: null, stateWords: null };
    for (const one of rest) spotOf.set(one.key, more.key);
    return [...shown, { ...more, rate: sum(rest.map((one) => one.rate)), errors: sum(rest.map((one) => one.errors)) }];
  };
  return { columns: [column("listener"), column("rule"), column("pool"), column("server")], spotOf, rates };
}

/** Whether a rule sends nothing on: it refuses, redirects or responds itself. */
const isAnswered = (pools: string[] | null) => pools !== null && pools.length === 0;

function waysOf(last: Look, { spotOf, rates }: Shown): Way[] {
  const rateOf = (place: string) => rates.get(place) ?? 0;
  const ways = new Map<string, Way>();
  const add = (fromPlace: string, toPlace: string, rate: number) => {
    const [from, to] = [spotOf.get(fromPlace), toPlace === ANSWERED ? ANSWERED : spotOf.get(toPlace)];
    if (from === undefined || to === undefined) return;
    const known = ways.get(`${from} ${to}`);
    if (known) known.rate += rate;
    else ways.set(`${from} ${to}`, { from, to, rate });
  };
  for (const listener of last.traffic.listeners) {
    const from = key("listener", null, listener.name);
    for (const { rule, pools } of listener.rules) {
      const here = key("rule", listener.name, rule);
      add(from, here, rateOf(here));
      if (isAnswered(pools)) add(here, ANSWERED, rateOf(here));
      // How much of a rule that names several went to which is told by nobody: they get what they have of each other.
      const named = (rule === "(default)" && listener.pool !== null ? [listener.pool] : (pools ?? [])).map((pool) => key("pool", null, pool));
      const all = sum(named.map(rateOf));
      for (const pool of named) add(here, pool, rateOf(here) * (all > 0 ? rateOf(pool) / all : 1 / named.length));
    }
    const other = key("rule", listener.name, OTHER_RULES);
    if (listener.other_rules) add(from, other, rateOf(other));
  }
  for (const pool of last.traffic.pools) {
    for (const server of pool.servers) {
      const to = key("server", pool.name, server.name);
      add(key("pool", null, pool.name), to, rateOf(to));
    }
  }
  return [...ways.values()];
}

/** What rules answer themselves stands beside the pools. */
function withAnswered(columns: Spot[][], ways: Way[]): Spot[][] {
  const rate = sum(ways.filter((way) => way.to === ANSWERED).map((way) => way.rate));
  const any = columns[0]?.[0];
  if (any === undefined || !ways.some((way) => way.to === ANSWERED)) return columns;
  const answered: Spot = { ...any, key: ANSWERED, kind: "answered", name: "answered here", rate, errors: 0 };
  return columns.map((column, index) => (COLUMNS[index] === "Pools" ? [...column, answered] : column));
}
