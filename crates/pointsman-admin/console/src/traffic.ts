// What two looks at the traffic say: rates, and how long requests took.

import type { Counted, State, Traffic } from "./api";

/** How many looks are kept, a second apart: what the charts show. */
export const LOOKS_MAX = 121;
/** Durations are told of the last looks together: of one second alone they would jump. */
const DURATION_LOOKS = 5;
/** What is now. */
export const NOW_LOOKS = 3;

export type Kind = "listener" | "rule" | "pool" | "server";
export const KINDS: Kind[] = ["listener", "rule", "pool", "server"];

/** Something that requests go through. */
export interface Place {
  key: string;
  kind: Kind;
  name: string;
  /** What it is of: the listener of a rule, the pool of a server. */
  of: string | null;
  state: State | null;
  /** The same in a word or two. */
  stateWords: string | null;
  /** Requests there now; null where nobody counts them. */
  inFlight: number | null;
  counted: Counted;
  /** How many there were. */
  total: number;
}

/** One look. */
export interface Look {
  /** Seconds since 1970, by the clock of the browser: for people. */
  at: number;
  traffic: Traffic;
  places: Map<string, Place>;
}

export interface Rates {
  requests: number;
  errors: number;
  refused: number;
  /** Microseconds; null where nothing ended. */
  p50: number | null;
  p99: number | null;
}

/** Rules that are counted together. */
export const OTHER_RULES = "(other)";

export const key = (kind: Kind, of: string | null, name: string) => JSON.stringify([kind, of, name]);

export function look(traffic: Traffic, at: number): Look {
  const places = new Map<string, Place>();
  const put = (kind: Kind, of: string | null, name: string, counted: Counted, more: Partial<Place> = {}) => {
    const place = key(kind, of, name);
    const total = sum(Object.values(counted.responses));
    const unknown = { state: null, stateWords: null, inFlight: null };
    places.set(place, { key: place, kind, name, of, counted, total, ...unknown, ...more });
  };
  for (const listener of traffic.listeners) {
    put("listener", null, listener.name, listener);
    for (const rule of listener.rules) put("rule", listener.name, rule.rule, rule, { total: rule.hits });
    if (listener.other_rules) put("rule", listener.name, OTHER_RULES, listener.other_rules);
  }
  for (const pool of traffic.pools) {
    const inFlight = sum(pool.servers.map((server) => server.in_flight_requests));
    put("pool", null, pool.name, added(pool.servers), { inFlight, ...stateOfAll(pool.servers) });
    for (const server of pool.servers) {
      const { state } = server;
      put("server", pool.name, server.name, server, { inFlight: server.in_flight_requests, state, stateWords: state });
    }
  }
  return { at, traffic, places };
}

/** With one look more; from the beginning where the switch has begun anew. */
export function withLook(looks: Look[], next: Look): Look[] {
  const last = looks.at(-1);
  if (last && next.traffic.at_us <= last.traffic.at_us) return [next];
  return [...looks, next].slice(-LOOKS_MAX);
}

/** What came to a place in the looks before that one; null where that is not known. */
export function ratesAt(looks: Look[], index: number, place: string, rateLooks = 1): Rates | null {
  const now = looks[index];
  const before = index > 0 ? looks[Math.max(0, index - rateLooks)] : undefined;
  const here = now?.places.get(place);
  if (!now || !before || !here) return null;
  const seconds = (now.traffic.at_us - before.traffic.at_us) / 1e6;
  // What was not there has counted nothing: a rule is told from its first decision on.
  const then = before.places.get(place);
  const rate = (of: (place: Place) => number) => Math.max(0, of(here) - (then ? of(then) : 0)) / seconds;
  const early = looks[Math.max(0, index - DURATION_LOOKS)]?.places.get(place);
  const took = here.counted.took.map((count, bucket) => count - (early?.counted.took[bucket] ?? 0));
  const quantile = (share: number) => quantileOf(took, now.traffic.took_up_to_us, share);
  return {
    requests: rate((place) => place.total),
    errors: rate((place) => place.counted.responses["5xx"]),
    refused: rate((place) => place.counted.responses["4xx"]),
    p50: quantile(0.5),
    p99: quantile(0.99),
  };
}

/** The same of the last looks together, for figures that people read. */
export const ratesNow = (looks: Look[], place: string) => ratesAt(looks, looks.length - 1, place, NOW_LOOKS);

/** A duration that this share of the requests did not exceed. Bounds double, so does what stands between them. */
export function quantileOf(took: number[], upTo: number[], share: number): number | null {
  const wanted = sum(took) * share;
  if (wanted <= 0) return null;
  let seen = 0;
  for (const [bucket, count] of took.entries()) {
    if (count > 0 && seen + count >= wanted) {
      const top = upTo[bucket];
      if (top === undefined) return upTo.at(-1) ?? null;
      return (top / 2) * 2 ** ((wanted - seen) / count);
    }
    seen += count;
  }
  return null;
}

/** A pool is as its servers are: for people to look at first. */
function stateOfAll(servers: { state: State }[]): Pick<Place, "state" | "stateWords"> {
  const first = servers[0]?.state;
  if (first === undefined) return { state: null, stateWords: "no servers" };
  if (servers.every((server) => server.state === first)) return { state: first, stateWords: `all ${first}` };
  const up = servers.filter((server) => server.state === "up").length;
  if (up > 0) return { state: "starting", stateWords: `${up} of ${servers.length} up` };
  // Where some drain, who stays there still gets an answer.
  const isDraining = servers.some((server) => server.state === "draining");
  return { state: isDraining ? "draining" : "down", stateWords: "none up" };
}

function added(all: Counted[]): Counted {
  const responses = { none: 0, "1xx": 0, "2xx": 0, "3xx": 0, "4xx": 0, "5xx": 0 };
  const took: number[] = [];
  for (const one of all) {
    for (const status of Object.keys(responses) as (keyof typeof responses)[]) responses[status] += one.responses[status];
    one.took.forEach((count, bucket) => (took[bucket] = (took[bucket] ?? 0) + count));
  }
  return { responses, took, took_sum_us: sum(all.map((one) => one.took_sum_us)) };
}

export const sum = (numbers: number[]) => numbers.reduce((a, b) => a + b, 0);
