// What has become of a server lately: how it stood, drawn along the time, and why it changed.

import { useCallback, useState } from "preact/hooks";
import type { ServerInFull, State } from "../api";
import { useEvery } from "../every";
import { age } from "../figures";
import { StateMark } from "../live/page";
import { type Part, Parts } from "../parts";
import type { Session } from "../session";
import { Window } from "../window";
import { pathOf } from "./page";

const EVERY_MS = 2000;

const MOODS: Record<State, NonNullable<Part["mood"]>> = {
  up: "good",
  starting: "warn",
  draining: "warn",
  down: "bad",
  ejected: "bad",
  disabled: "off",
};

export function HistoryDialog({ session, pool, server, onDone }: { session: Session; pool: string; server: string; onDone: () => void }) {
  const { api, refused } = session;
  const [shown, setShown] = useState<ServerInFull | null>(null);
  const [trouble, setTrouble] = useState<string | null>(null);
  const again = useCallback(
    async (isWanted: () => boolean) => {
      try {
        const shown = await api.get<ServerInFull>(pathOf(pool, server));
        if (!isWanted()) return;
        setShown(shown);
        setTrouble(null);
      } catch (error) {
        if (!isWanted()) return;
        setTrouble((error as Error).message);
        refused(error as Error);
      }
    },
    [api, refused, pool, server],
  );
  useEvery(EVERY_MS, again);
  return (
    <Window name="history" onDone={onDone}>
      <h2 id="history-title">
        {pool}/{server}
      </h2>
      {trouble && <p class="said">{trouble}</p>}
      {!shown && !trouble && <p class="quiet">looking…</p>}
      {shown && <History server={shown} />}
    </Window>
  );
}

function History({ server }: { server: ServerInFull }) {
  const now = Date.now();
  const { changes, before } = server;
  return (
    <>
      <p>
        <StateMark state={server.state} /> for {age((now - Date.parse(server.since)) / 1000)}
        {server.why !== null && <span class="quiet">: {server.why}</span>}
      </p>
      {changes.length === 0 && <p class="quiet">It has been so since the switch began to know it.</p>}
      {changes.length > 0 && (
        <>
          <Timeline {...{ changes, before, now }} />
          <div class="scroll" role="region" aria-label={`Changes of ${server.name}`} tabIndex={0}>
            <table>
              <thead>
                <tr>
                  <th scope="col">Ago</th>
                  <th scope="col">State</th>
                  <th scope="col">Why</th>
                </tr>
              </thead>
              <tbody>
                {changes.map(({ when, state, why }, index) => (
                  <tr key={`${when} ${index}`} data-change={state}>
                    <td title={when}>{age((now - Date.parse(when)) / 1000)}</td>
                    <td>
                      <StateMark state={state} />
                    </td>
                    <td class="why">{why}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </>
      )}
    </>
  );
}

/** How long it stood how, as far back as is known. */
function Timeline({ changes, before, now }: Pick<ServerInFull, "changes" | "before"> & { now: number }) {
  const first = before ? [{ when: before.since, state: before.state }] : [];
  const oldest = [...first, ...[...changes].reverse()];
  const parts = oldest.map(({ when, state }, index) => {
    const until = oldest[index + 1] ? Date.parse(oldest[index + 1]!.when) : now;
    return { name: `${when} ${index}`, value: Math.max(0, until - Date.parse(when)), mood: MOODS[state] };
  });
  const began = Date.parse(oldest[0]!.when);
  const up = parts.reduce((all, { value, mood }) => all + (mood === "good" ? value : 0), 0);
  const whole = Math.max(1, now - began);
  const said = `up ${Math.round((100 * up) / whole)} % of the last ${age(whole / 1000)}`;
  return (
    <div class="timeline">
      <Parts parts={parts} whole={whole} said={said} />
      <p class="legend">
        <span>{age(whole / 1000)} ago</span>
        <span>{said}</span>
        <span>now</span>
      </p>
    </div>
  );
}
