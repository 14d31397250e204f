// What the switch does now: figures, the map of the way, charts, and the same as a table.

import { useMemo, useState } from "preact/hooks";
import { count, duration, rate } from "../figures";
import type { Watching } from "../looks";
import type { Session } from "../session";
import { type Kind, KINDS, type Look, type Place, type Rates, ratesNow, sum } from "../traffic";
import { Charts, COLOURS } from "./charts";
import { OutliersPart } from "./outliers";
import { TlsPart } from "./tls";
import { WayMap } from "./way-map";

/** Lines of a chart; more cannot be told apart. */
const LINES_MAX = COLOURS;
/** Rows of the table. */
const ROWS_MAX = 100;

const NAMES: Record<Kind, string> = { listener: "Listeners", rule: "Rules", pool: "Pools", server: "Servers" };

export function LivePage({ session, watching }: { session: Session; watching: Watching }) {
  const { looks } = watching;
  const [kind, setKind] = useState<Kind>("server");
  const rows = useMemo(() => rowsOf(looks, kind), [looks, kind]);
  const lines = rows.slice(0, LINES_MAX).map(({ place }) => place);
  return (
    <>
      <Totals looks={looks} />
      <WayMap looks={looks} />
      <section aria-labelledby="by">
        <div class="head">
          <h2 id="by">By</h2>
          <div class="choice" role="group" aria-labelledby="by">
            {KINDS.map((known) => (
              <button key={known} type="button" aria-pressed={known === kind} onClick={() => setKind(known)}>
                {NAMES[known]}
              </button>
            ))}
          </div>
        </div>
        <Charts looks={looks} places={lines} />
        <Table kind={kind} rows={rows.slice(0, ROWS_MAX)} left={Math.max(0, rows.length - ROWS_MAX)} />
      </section>
      <OutliersPart session={session} />
      <TlsPart looks={looks} />
    </>
  );
}

interface Row {
  place: Place;
  rates: Rates | null;
}

/** Those with most of the traffic first: the few that have lines as they are configured, so that each keeps its colour. */
function rowsOf(looks: Look[], kind: Kind): Row[] {
  const last = looks.at(-1);
  if (!last) return [];
  const first = looks[0]!;
  const places = [...last.places.values()].filter((place) => place.kind === kind);
  // By what came in all that is shown, not in the last second, which would have them jump.
  const came = new Map(places.map((place) => [place, place.total - (first.places.get(place.key)?.total ?? 0)]));
  const most = [...places].sort((a, b) => came.get(b)! - came.get(a)!);
  const drawn = new Set(most.slice(0, LINES_MAX));
  const shown = [...places.filter((place) => drawn.has(place)), ...most.slice(LINES_MAX)];
  return shown.map((place) => ({ place, rates: ratesNow(looks, place.key) }));
}

function Totals({ looks }: { looks: Look[] }) {
  const traffic = looks.at(-1)?.traffic;
  const rates = (traffic?.listeners ?? []).map((listener) => ratesNow(looks, JSON.stringify(["listener", null, listener.name])));
  const of = (pick: (rates: Rates) => number) =>
    rates.some((known) => known !== null) ? sum(rates.map((known) => (known ? pick(known) : 0))) : null;
  const slowest = (pick: (rates: Rates) => number | null) =>
    rates.reduce<number | null>((most, known) => {
      const here = known ? pick(known) : null;
      return here === null ? most : Math.max(most ?? 0, here);
    }, null);
  const servers = (traffic?.pools ?? []).flatMap((pool) => pool.servers);
  const up = servers.filter((server) => server.state === "up").length;
  const errors = of((rates) => rates.errors);
  const figures: [string, string, string | undefined][] = [
    ["Requests / s", rate(of((rates) => rates.requests)), undefined],
    ["Errors (5xx) / s", rate(errors), (errors ?? 0) > 0 ? "bad" : undefined],
    ["Refused (4xx) / s", rate(of((rates) => rates.refused)), undefined],
    ["Half within", duration(slowest((rates) => rates.p50)), undefined],
    ["99 % within", duration(slowest((rates) => rates.p99)), undefined],
    ["Connections", count(traffic ? sum(traffic.listeners.map((listener) => listener.connections_open)) : null), undefined],
    ["Servers up", traffic ? `${up} of ${servers.length}` : "–", up < servers.length ? "warn" : undefined],
  ];
  return (
    <dl class="totals">
      {figures.map(([name, value, mood]) => (
        <div key={name} data-mood={mood}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function Table({ kind, rows, left }: { kind: Kind; rows: Row[]; left: number }) {
  const isOf = kind === "rule" || kind === "server";
  const hasState = kind === "pool" || kind === "server";
  return (
    <div class="scroll" role="region" aria-label={`${NAMES[kind]} in figures`} tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col">{NAMES[kind].slice(0, -1)}</th>
            {isOf && <th scope="col">{kind === "rule" ? "Listener" : "Pool"}</th>}
            {hasState && <th scope="col">State</th>}
            <th scope="col" class="n">Requests / s</th>
            <th scope="col" class="n">4xx / s</th>
            <th scope="col" class="n">5xx / s</th>
            <th scope="col" class="n">Half within</th>
            <th scope="col" class="n">99 % within</th>
            {hasState && <th scope="col" class="n">In flight</th>}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ place, rates }, index) => (
            <tr key={place.key} data-place={place.key}>
              <th scope="row">
                <span class="swatch" data-line={index < LINES_MAX ? index : undefined} />
                {place.name}
              </th>
              {isOf && <td>{place.of}</td>}
              {hasState && <td><StateMark state={place.state} words={place.stateWords} /></td>}
              <td class="n">{rate(rates?.requests ?? null)}</td>
              <td class="n">{rate(rates?.refused ?? null)}</td>
              <td class="n" data-mood={(rates?.errors ?? 0) > 0 ? "bad" : undefined}>
                {rate(rates?.errors ?? null)}
              </td>
              <td class="n">{duration(rates?.p50 ?? null)}</td>
              <td class="n">{duration(rates?.p99 ?? null)}</td>
              {hasState && <td class="n">{place.inFlight}</td>}
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length === 0 && <p class="none">Nothing has come yet.</p>}
      {left > 0 && <p class="none">{left} more have less traffic than these.</p>}
    </div>
  );
}

/** A state as a colour and in words: never by colour alone. */
export function StateMark({ state, words = state }: { state: string | null; words?: string | null }) {
  return (
    <span class="state" data-state={state ?? undefined}>
      {words}
    </span>
  );
}
