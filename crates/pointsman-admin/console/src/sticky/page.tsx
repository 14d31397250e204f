// The sticky table: which client stays with which server of a pool, so many at a time, and who is to be forgotten.

import { useCallback, useEffect, useState } from "preact/hooks";
import { type StickyClients, whyNot } from "../api";
import { age, count } from "../figures";
import type { Watching } from "../looks";
import { Notice, type Said } from "../notice";
import { type Session, whatIsMissing } from "../session";

/** Rows of a page. */
const ROWS_MAX = 100;

export function StickyPage({ session, watching }: { session: Session; watching: Watching }) {
  const pools = watching.looks.at(-1)?.traffic.pools ?? [];
  const [chosen, setChosen] = useState<string | null>(null);
  const pool = pools.find((pool) => pool.name === chosen) ?? pools[0];
  const mayChange = session.access?.may === "change";
  return (
    <>
      {!mayChange && <p class="quiet">{whatIsMissing(session.access, "forget who stays where")}</p>}
      {!pool && <p class="quiet">{watching.looks.length > 0 ? "The configuration has no pools." : "looking…"}</p>}
      {pool && (
        <section aria-labelledby="sticky">
          <div class="head">
            <h2 id="sticky">Who stays where in</h2>
            <div class="choice" role="group" aria-labelledby="sticky">
              {pools.map(({ name }) => (
                <button key={name} type="button" aria-pressed={name === pool.name} onClick={() => setChosen(name)}>
                  {name}
                </button>
              ))}
            </div>
          </div>
          <Table key={pool.name} session={session} pool={pool.name} servers={pool.servers.map((server) => server.name)} mayChange={mayChange} />
        </section>
      )}
    </>
  );
}

interface TableOf {
  session: Session;
  pool: string;
  servers: string[];
  mayChange: boolean;
}

function Table({ session: { api, refused }, pool, servers, mayChange }: TableOf) {
  const [server, setServer] = useState<string | null>(null);
  /** Where the pages before this one began, and this one. */
  const [froms, setFroms] = useState<number[]>([0]);
  const [page, setPage] = useState<StickyClients | null>(null);
  const [said, setSaid] = useState<Said | null>(null);
  const [turn, setTurn] = useState(0);
  const from = froms.at(-1) ?? 0;
  const base = `pools/${encodeURIComponent(pool)}/sticky-clients`;
  useEffect(() => {
    let isOver = false;
    const of = server === null ? "" : `&server=${encodeURIComponent(server)}`;
    api.get<StickyClients>(`${base}?from=${from}&max=${ROWS_MAX}${of}`).then(
      (page) => void (isOver || setPage(page)),
      (error: Error) => {
        if (isOver) return;
        setSaid({ text: error.message, isBad: true });
        refused(error);
      },
    );
    return () => {
      isOver = true;
    };
  }, [api, refused, base, server, from, turn]);
  const again = () => setTurn((turn) => turn + 1);
  const choose = (server: string | null) => {
    setServer(server);
    setFroms([0]);
    // What is asked for now is no list of those of another server.
    setPage(null);
    again();
  };
  const forget = async (path: string, who: string) => {
    try {
      const { forgotten } = await api.change<{ forgotten: number }>("DELETE", `${base}${path}`);
      setSaid({ text: `forgotten: ${who} (${forgotten})`, isBad: false });
    } catch (error) {
      setSaid({ text: whyNot(error as Error), isBad: true });
      refused(error as Error);
    }
    again();
  };
  const putAway = useCallback(() => setSaid(null), []);
  return (
    <>
      <div class="head">
        <div class="choice" role="group" aria-label="Of which server">
          <button type="button" aria-pressed={server === null} onClick={() => choose(null)}>
            All
          </button>
          {servers.map((name) => (
            <button key={name} type="button" aria-pressed={server === name} onClick={() => choose(name)}>
              {name}
            </button>
          ))}
        </div>
        <button type="button" onClick={again}>
          Look again
        </button>
        {mayChange && <ForgetAll key={server} {...{ pool, server, forget }} />}
      </div>
      {page && <Rows {...{ page, mayChange, forget }} />}
      {page && (
        <div class="head">
          <button type="button" disabled={froms.length < 2} onClick={() => setFroms(froms.slice(0, -1))}>
            Before
          </button>
          <button type="button" disabled={page.next === null} onClick={() => page.next !== null && setFroms([...froms, page.next])}>
            Next
          </button>
          <span class="quiet" role="status">
            page {count(froms.length)}, {count(page.clients.length)} clients
          </span>
        </div>
      )}
      <Notice said={said} forget={putAway} />
    </>
  );
}

interface RowsOf {
  page: StickyClients;
  mayChange: boolean;
  forget: (path: string, who: string) => void;
}

function Rows({ page, mayChange, forget }: RowsOf) {
  return (
    <div class="scroll" role="region" aria-label="Sticky clients" tabIndex={0}>
      <table class="sticky">
        <thead>
          <tr>
            <th scope="col">Client (a hash)</th>
            <th scope="col">Server</th>
            <th scope="col">Why there</th>
            <th scope="col" class="n">Last seen, about</th>
            {mayChange && <th scope="col"><span class="unseen">Change</span></th>}
          </tr>
        </thead>
        <tbody>
          {page.clients.map(({ client, server, is_exception, idle_s }) => (
            <tr key={`${client} ${server}`} data-client={client}>
              <th scope="row"><code>{client}</code></th>
              <td>{server}</td>
              <td class={is_exception ? undefined : "quiet"}>{is_exception ? "it was there before: its hash says another" : "its hash says so"}</td>
              <td class="n">{age(idle_s)} ago</td>
              {mayChange && (
                <td class="n">
                  <button type="button" aria-label={`Forget ${client}`} onClick={() => forget(`/${client}`, client)}>
                    Forget
                  </button>
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
      {page.clients.length === 0 && <p class="none">Nobody is remembered here.</p>}
    </div>
  );
}

/** It is asked twice: whoever is forgotten may lose what a server knows of them. */
function ForgetAll({ pool, server, forget }: { pool: string; server: string | null; forget: RowsOf["forget"] }) {
  const [isSure, setSure] = useState(false);
  const who = server === null ? `all of ${pool}` : `all of ${pool}/${server}`;
  if (!isSure) {
    return (
      <button type="button" onClick={() => setSure(true)}>
        Forget {who}…
      </button>
    );
  }
  const doIt = () => {
    setSure(false);
    forget(server === null ? "" : `?server=${encodeURIComponent(server)}`, who);
  };
  return (
    <span class="sure" role="group" aria-label={`Forget ${who}`}>
      <span>They go where their hash says from their next request on.</span>
      <button type="button" class="main" autofocus onClick={doIt}>
        Forget {who}
      </button>
      <button type="button" onClick={() => setSure(false)}>
        Cancel
      </button>
    </span>
  );
}
