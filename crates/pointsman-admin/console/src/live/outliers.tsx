// Requests that stand out: the slowest and those that failed, each with the rule that decided and where its time went.

import { useCallback, useState } from "preact/hooks";
import type { Outlier, Outliers } from "../api";
import { useEvery } from "../every";
import { age, count, duration } from "../figures";
import { Legend, type Part, Parts } from "../parts";
import type { Session } from "../session";

const EVERY_MS = 2000;

/** Rows that are shown before somebody wants to see all. */
const ROWS_FIRST = 8;

type Shown = "slowest" | "failed";

/** What a request waits for, one after the other. */
const PHASES = ["decided", "waits for a place", "connects", "the server works", "the answer passes"];

export function OutliersPart({ session }: { session: Session }) {
  const { api, refused } = session;
  const [outliers, setOutliers] = useState<Outliers | null>(null);
  const [shown, setShown] = useState<Shown>("slowest");
  const again = useCallback(
    async (isWanted: () => boolean) => {
      try {
        const outliers = await api.get<Outliers>("requests");
        if (isWanted()) setOutliers(outliers);
      } catch (error) {
        // That nothing new comes the bar says.
        if (isWanted()) refused(error as Error);
      }
    },
    [api, refused],
  );
  useEvery(EVERY_MS, again);
  if (!outliers) return null;
  const { names_requests, slowest_s, failed_s } = outliers;
  return (
    <section aria-labelledby="outliers">
      <div class="head">
        <h2 id="outliers">Requests that stand out</h2>
        <div class="choice" role="group" aria-labelledby="outliers">
          <Choice is="slowest" {...{ shown, setShown }} name={`Slowest of ${slowest_s / 60} minutes`} />
          <Choice is="failed" {...{ shown, setShown }} name={`Failed in ${failed_s / 60} minutes`} />
        </div>
        {!names_requests && <span class="quiet">Who asked for what is shown to whoever is signed in.</span>}
      </div>
      <Legend names={PHASES} />
      <OutlierTable key={shown} outliers={outliers[shown]} named={names_requests} />
    </section>
  );
}

function Choice({ is, shown, setShown, name }: { is: Shown; shown: Shown; setShown: (shown: Shown) => void; name: string }) {
  return (
    <button type="button" aria-pressed={is === shown} onClick={() => setShown(is)}>
      {name}
    </button>
  );
}

function OutlierTable({ outliers, named }: { outliers: Outlier[]; named: boolean }) {
  const [open, setOpen] = useState<string | null>(null);
  const [isWhole, setWhole] = useState(false);
  const rows = isWhole ? outliers : outliers.slice(0, ROWS_FIRST);
  const longest = Math.max(...outliers.map((outlier) => outlier.total_us));
  const keys = keysOf(rows);
  const columns = named ? 7 : 6;
  return (
    <div class="scroll" role="region" aria-label="Requests that stand out" tabIndex={0}>
      <table class="outliers">
        <thead>
          <tr>
            <th scope="col">Ago</th>
            <th scope="col" class="n">Took</th>
            <th scope="col" class="where">Where the time went</th>
            <th scope="col">Rule</th>
            <th scope="col">Server</th>
            <th scope="col" class="n">Status</th>
            {named && <th scope="col">Request</th>}
          </tr>
        </thead>
        <tbody>
          {rows.map((outlier, index) => {
            const own = keys[index]!;
            const isOpen = open === own;
            const toggle = () => setOpen(isOpen ? null : own);
            return [
              <tr key={own} data-outlier={index} data-rule={outlier.rule ?? ""} onClick={toggle}>
                <th scope="row">
                  <button type="button" aria-expanded={isOpen}>
                    {age((Date.now() - Date.parse(outlier.when)) / 1000)}
                  </button>
                </th>
                <td class="n">{duration(outlier.total_us)}</td>
                <td class="where">
                  <Parts parts={phasesOf(outlier)} whole={longest} said={saidOf(outlier)} />
                </td>
                <td>{outlier.rule ?? "–"}</td>
                <td>{[outlier.pool, outlier.server].filter((name) => name !== null).join("/") || "–"}</td>
                <td class="n" data-mood={outlier.status === null || outlier.status >= 500 ? "bad" : undefined}>
                  {outlier.status ?? "none"}
                </td>
                {named && <td title={requestOf(outlier)}>{requestOf(outlier)}</td>}
              </tr>,
              isOpen && (
                <tr key={`${own} facts`}>
                  <td class="facts" colSpan={columns}>
                    <Facts outlier={outlier} />
                  </td>
                </tr>
              ),
            ];
          })}
        </tbody>
      </table>
      {outliers.length === 0 && <p class="none">There are none.</p>}
      {outliers.length > ROWS_FIRST && (
        <p class="none">
          <button type="button" aria-expanded={isWhole} onClick={() => setWhole(!isWhole)}>
            {isWhole ? `The first ${ROWS_FIRST}` : `All ${outliers.length}`}
          </button>
        </p>
      )}
    </div>
  );
}

/** All that is known of one. */
function Facts({ outlier }: { outlier: Outlier }) {
  const facts: [string, string | null][] = [
    ["When", outlier.when.replace("T", " ").replace("Z", " UTC")],
    ["Listener", outlier.listener],
    ["What went wrong", outlier.error],
    ["Client", outlier.client],
    ["Host", outlier.host],
    ["Query", outlier.query],
    ["Tries", outlier.tries > 0 ? count(outlier.tries) : null],
    ["Bytes of the request", count(outlier.request_bytes)],
    ["Bytes of the answer", count(outlier.response_bytes)],
    ["Decided after", shownStep(outlier.decided_us)],
    ["Waited for a place", shownStep(outlier.queued_us)],
    ["Connected after", shownStep(outlier.connected_us)],
    ["First byte of the server after", shownStep(outlier.first_byte_us)],
  ];
  return (
    <dl>
      {facts
        .filter(([, value]) => value !== null)
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

/** How long each phase lasted, as far as that was noted; the last one that was begun goes to the end. */
function phasesOf({ total_us, decided_us, queued_us, connected_us, first_byte_us }: Outlier): Part[] {
  if (decided_us === null && connected_us === null && first_byte_us === null) {
    return [{ name: "not noted", value: total_us, mood: "off" }];
  }
  const queued = decided_us !== null && queued_us !== null ? decided_us + queued_us : null;
  const ends = [decided_us, queued, connected_us, first_byte_us];
  const parts: Part[] = [];
  let before = 0;
  let open = 0;
  ends.forEach((end, phase) => {
    if (end === null) return;
    const until = Math.max(before, Math.min(end, total_us));
    parts.push({ name: PHASES[phase]!, value: until - before, line: phase });
    before = until;
    open = phase + 1;
  });
  // Nobody waits for a place, or connects, behind what is over by then.
  const last = open === 1 && connected_us === null ? (queued_us === null ? 2 : 1) : Math.max(open, 2);
  parts.push({ name: PHASES[last]!, value: Math.max(0, total_us - before), line: last });
  return parts;
}

function saidOf(outlier: Outlier): string {
  const phases = phasesOf(outlier).filter(({ value }) => value > 0);
  return phases.map(({ name, value }) => `${name}: ${duration(value)}`).join(", ");
}

const shownStep = (us: number | null) => (us === null ? null : duration(us));

function requestOf({ method, host, path, query }: Outlier): string {
  if (method === null && path === null) return "–";
  return `${method ?? ""} ${host ?? ""}${path ?? ""}${query === null ? "" : `?${query}`}`.trim();
}

/** By which each is known again. Those that ended together in the same way, as behind a pool that is down, are counted. */
function keysOf(outliers: Outlier[]): string[] {
  const seen = new Map<string, number>();
  // The oldest first: what is new changes nothing of what is open.
  return [...outliers].reverse().map(({ when, listener, total_us, rule, server, path }) => {
    const key = JSON.stringify([when, listener, total_us, rule, server, path]);
    const before = seen.get(key) ?? 0;
    seen.set(key, before + 1);
    return `${key} ${before}`;
  }).reverse();
}
