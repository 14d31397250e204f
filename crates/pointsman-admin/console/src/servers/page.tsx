// Servers: how they stand, and what is done to them by hand.

import { useCallback, useRef, useState } from "preact/hooks";
import { type Changed, type Pool, type Server, whyNot } from "../api";
import { age, rate } from "../figures";
import { StateMark } from "../live/page";
import type { Watching } from "../looks";
import { Notice, type Said } from "../notice";
import { type Session, whatIsMissing } from "../session";
import { key, ratesNow } from "../traffic";
import { type Asked, type Draft, ServerDialog } from "./dialog";
import { HistoryDialog } from "./history";
import { usePools } from "./pools";

export function ServersPage({ session, watching }: { session: Session; watching: Watching }) {
  const { pools, trouble, again } = usePools(session);
  const [draft, setDraft] = useState<Draft | null>(null);
  const [told, setTold] = useState<{ pool: string; server: string } | null>(null);
  const [said, setSaid] = useState<Said | null>(null);
  const mayChange = session.access?.may === "change";
  const admit = async (pool: Pool, server: Server, state: Server["admission"]) => {
    const path = `${pathOf(pool.name, server.name)}/state`;
    try {
      await session.api.change("PUT", path, { state });
      setSaid({ text: `${pool.name}/${server.name} is ${state}`, isBad: false });
    } catch (error) {
      setSaid({ text: whyNot(error as Error), isBad: true });
      session.refused(error as Error);
    }
    await again();
  };
  const change = async ({ what, method, pool, name, body, version }: Change) => {
    try {
      const changed = await session.api.change<Changed>(method, pathOf(pool, name), body, version);
      const waiting = changed.waits_for_restart.map((what) => `waits for a restart: ${what}`);
      setSaid({ text: [what, ...waiting].join("\n"), lines: changed.text.trimEnd(), isBad: false });
    } finally {
      await again();
    }
  };
  const drafts = useRef(0);
  const ask = (asked: Asked) =>
    pools && setDraft({ ...asked, version: pools.configuration_version, number: ++drafts.current });
  // A dialog says late that it is closed: by then there may be another one.
  const close = (closed: Draft) => setDraft((now) => (now === closed ? null : now));
  const forget = useCallback(() => setSaid(null), []);
  return (
    <>
      {!mayChange && <p class="quiet">{whatIsMissing(session.access, "drain, add and remove servers")}</p>}
      {/* Where nothing comes at all the bar says so. */}
      {trouble && !watching.trouble && <p class="stale">{trouble}: what is shown of servers is older</p>}
      {!pools && !trouble && <p class="quiet">looking…</p>}
      {pools?.pools.length === 0 && <p class="quiet">The configuration has no pools.</p>}
      {pools?.pools.map((pool) => (
        <section key={pool.name} aria-labelledby={`pool-${pool.name}`}>
          <div class="head">
            <h2 id={`pool-${pool.name}`} tabIndex={-1}>
              {pool.name}
            </h2>
            <span class="quiet">{pool.balance}</span>
            {mayChange && (
              <button
                type="button"
                aria-label={`Add a server to ${pool.name}`}
                onClick={() => ask({ what: "add", pool: pool.name, names: pool.servers.map((server) => server.name) })}
              >
                Add a server
              </button>
            )}
          </div>
          <PoolTable {...{ pool, watching, mayChange, admit, ask }} tell={(server) => setTold({ pool: pool.name, server })} />
        </section>
      ))}
      {told && <HistoryDialog key={`${told.pool}/${told.server}`} session={session} {...told} onDone={() => setTold(null)} />}
      <Notice said={said} forget={forget} />
      {draft && (
        <ServerDialog key={draft.number} draft={draft} change={change} refused={session.refused} onDone={() => close(draft)} />
      )}
    </>
  );
}

/** A change of the configuration. */
export interface Change {
  /** What is so when it is done. */
  what: string;
  method: "PUT" | "PATCH" | "DELETE";
  pool: string;
  name: string;
  body?: object;
  version: string;
}

interface TableOf {
  pool: Pool;
  watching: Watching;
  mayChange: boolean;
  admit: (pool: Pool, server: Server, state: Server["admission"]) => void;
  ask: (asked: Asked) => void;
  /** Shows what has become of a server. */
  tell: (server: string) => void;
}

function PoolTable({ pool, watching, mayChange, admit, ask, tell }: TableOf) {
  const now = Date.now() / 1000;
  return (
    <div class="scroll" role="region" aria-label={`Servers of ${pool.name}`} tabIndex={0}>
      <table class="servers">
        <thead>
          <tr>
            <th scope="col">Server</th>
            <th scope="col">State</th>
            <th scope="col">Set by hand</th>
            <th scope="col" class="n">Weight</th>
            <th scope="col" class="n">Requests / s</th>
            <th scope="col" class="n">In flight</th>
            <th scope="col" class="n">Failures</th>
            <th scope="col">Since</th>
            <th scope="col">Address</th>
            {mayChange && <th scope="col"><span class="unseen">Change</span></th>}
          </tr>
        </thead>
        <tbody>
          {pool.servers.map((server) => (
            <tr key={server.name} data-server={`${pool.name}/${server.name}`}>
              <th scope="row">
                <button type="button" class="plain" aria-haspopup="dialog" title={`What has become of ${server.name}`} onClick={() => tell(server.name)}>
                  {server.name}
                </button>
              </th>
              <td title={server.why ?? undefined}>
                <StateMark state={server.state} />
              </td>
              <td>
                <Admission server={server} isOff={!mayChange} set={(state) => admit(pool, server, state)} />
              </td>
              <td class="n">{server.weight}</td>
              <td class="n">{rate(ratesNow(watching.looks, key("server", pool.name, server.name))?.requests ?? null)}</td>
              <td class="n">{server.in_flight_requests}</td>
              <td class="n" data-mood={server.failures > 0 ? "bad" : undefined}>{server.failures}</td>
              <td title={server.since}>{age(now - Date.parse(server.since) / 1000)}</td>
              <td class="quiet">{server.address}</td>
              {mayChange && (
                <td class="n">
                  {server.service === null && (
                    <span class="acts">
                      <button type="button" aria-label={`Weight of ${server.name}`} onClick={() => ask({ what: "weight", pool: pool.name, server })}>
                        Weight
                      </button>
                      <button type="button" aria-label={`Remove ${server.name}`} onClick={() => ask({ what: "remove", pool: pool.name, server })}>
                        Remove
                      </button>
                    </span>
                  )}
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
      {pool.leaving.map((gone) => (
        <p key={gone.name} class="none">
          {gone.name} has left the configuration; {gone.in_flight_requests} requests there go on.
        </p>
      ))}
    </div>
  );
}

const ADMISSIONS: [Server["admission"], string][] = [
  ["enabled", "On"],
  ["draining", "Drain"],
  ["disabled", "Off"],
];

/** What is set of a server by hand; the pressed one holds. */
function Admission({ server, isOff, set }: { server: Server; isOff: boolean; set: (state: Server["admission"]) => void }) {
  return (
    <div class="choice" role="group" aria-label={`Set of ${server.name}`}>
      {ADMISSIONS.map(([admission, name]) => (
        <button
          key={admission}
          type="button"
          disabled={isOff}
          data-admission={admission}
          aria-pressed={server.admission === admission}
          onClick={() => set(admission)}
        >
          {name}
        </button>
      ))}
    </div>
  );
}

export const pathOf = (pool: string, server: string) => `pools/${encodeURIComponent(pool)}/servers/${encodeURIComponent(server)}`;
