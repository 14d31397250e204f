// Which rules have served since the start: who, when, why, what was otherwise, and the way back.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { PATIENCE_MS, type Refusal } from "../api";
import { useEvery } from "../every";
import { useWhyNot } from "../notice";
import type { Compared, Published, Version } from "./calls";
import type { Desk } from "./desk";
import { Difference } from "./difference";

const EVERY_MS = 3_000;

export function History({ desk }: { desk: Desk }) {
  const versions = useVersions(desk);
  const [compared, setCompared] = useState<{ n: number; found: Compared | null } | null>(null);
  /** What was asked for, and which rules served then: nobody takes back what they have not seen. */
  const [asked, setAsked] = useState<{ version: Version; serves: string } | null>(null);
  // What was compared with what served then is no longer so.
  useEffect(() => setCompared(null), [desk.rules.rules_version]);
  const compare = async ({ n, rules_version }: Version) => {
    setCompared({ n, found: null });
    const { api } = desk.session;
    try {
      const found = await api.get<Compared>(`versions/${n}/diff?of=${rules_version}`, PATIENCE_MS.change);
      setCompared((now) => (now?.n === n ? { n, found } : now));
    } catch (error) {
      setCompared(null);
      desk.refused(error, api);
    }
  };
  const ask = (version: Version) => {
    const serving = versions.find(({ serves }) => serves);
    if (serving) setAsked({ version, serves: serving.rules_version });
  };
  if (versions.length === 0) return null;
  return (
    <section aria-labelledby="history">
      <h2 id="history" tabIndex={-1}>
        History
      </h2>
      <div class="scroll" role="region" aria-label="Rules that have served" tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th scope="col" class="n">
                Version
              </th>
              <th scope="col">When</th>
              <th scope="col">Who</th>
              <th scope="col">Why</th>
              <th scope="col" class="n">
                Bytes
              </th>
              <th scope="col">
                <span class="unseen">Look and change</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {versions.map((version) => (
              <tr key={version.n} data-version={version.n} data-serves={version.serves ? "" : undefined}>
                <th scope="row" class="n">
                  {version.n}
                </th>
                <td>{version.when}</td>
                <td>{version.who}</td>
                <td>{version.why}</td>
                <td class="n">{version.bytes.toLocaleString("en")}</td>
                <td class="n">
                  {version.serves ? (
                    <span class="state" data-state="up">
                      serves
                    </span>
                  ) : (
                    <Acts {...{ desk, version, compare, ask }} />
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {compared && (
        <>
          <h3>What version {compared.n} decides otherwise than what serves</h3>
          {compared.found ? <Difference desk={desk} compared={compared.found} names={["Serves now", `Version ${compared.n}`]} /> : <p role="status">comparing…</p>}
        </>
      )}
      {asked && <RollBack key={asked.version.n} desk={desk} {...asked} onDone={() => setAsked(null)} />}
    </section>
  );
}

interface ActsOf {
  desk: Desk;
  version: Version;
  compare: (version: Version) => void;
  ask: (version: Version) => void;
}

function Acts({ desk, version, compare, ask }: ActsOf) {
  const isOpen = desk.mayChange && desk.review === null;
  return (
    <span class="acts">
      <button type="button" aria-label={`Difference of version ${version.n}`} onClick={() => compare(version)}>
        Difference
      </button>
      {desk.mayChange && (
        <>
          <button type="button" aria-label={`Version ${version.n} into the editor`} disabled={!isOpen} onClick={() => desk.open(version)}>
            Into the editor
          </button>
          <button type="button" aria-label={`Roll back to version ${version.n}`} disabled={!isOpen} onClick={() => ask(version)}>
            Roll back
          </button>
        </>
      )}
    </span>
  );
}

/** Those of the same file, as they are now. */
function useVersions(desk: Desk): Version[] {
  const [versions, setVersions] = useState<Version[]>([]);
  const { file, rules_version } = desk.rules;
  const { api } = desk.session;
  const again = useCallback(
    async (isWanted: () => boolean) => {
      try {
        const { versions } = await api.get<{ versions: Version[] }>("versions");
        if (isWanted()) setVersions(versions.filter((version) => version.file === file));
      } catch (error) {
        // The bar says that nothing comes.
        if (isWanted()) desk.session.refused(error as Error);
      }
    },
    // Looked at anew where other rules serve.
    [api, desk, file, rules_version],
  );
  useEvery(EVERY_MS, again);
  return versions;
}

function RollBack({ desk, version, serves, onDone }: { desk: Desk; version: Version; serves: string; onDone: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [why, setWhy] = useState("");
  const [said, setSaid] = useState("");
  const [isBusy, setBusy] = useState(false);
  const whyNot = useWhyNot("other rules serve by now than when you asked");
  useEffect(() => dialog.current?.showModal(), []);
  const submit = async (event: Event) => {
    event.preventDefault();
    if (isBusy) return;
    setBusy(true);
    const { api } = desk.session;
    try {
      const reason = why.trim() === "" ? "" : `&why=${encodeURIComponent(why.trim())}`;
      const path = `versions/${version.n}/restore?of=${version.rules_version}${reason}`;
      const published = await api.change<Published>("POST", path, undefined, serves);
      dialog.current?.close();
      if (api !== desk.session.api) return;
      desk.say(`version ${version.n} serves again, as generation ${published.generation}`, published.text);
      await desk.notice(published.rules_version);
    } catch (error) {
      setSaid(whyNot(error as Refusal));
      desk.session.refused(error as Error);
      setBusy(false);
    }
  };
  return (
    <dialog ref={dialog} aria-labelledby="roll-title" onClose={onDone}>
      <h2 id="roll-title">Roll back to version {version.n}</h2>
      <form class="fields" onSubmit={submit}>
        <p>
          The rules of {version.when} ({version.why}) serve again. Where somebody else has published since you asked, nothing is done.
          {desk.isChanged && " What stands in the editor is kept."}
        </p>
        <label for="roll-why">Why</label>
        <input id="roll-why" autofocus maxLength={180} value={why} onInput={(event) => setWhy(event.currentTarget.value)} />
        <div class="said" role="alert">
          {said}
        </div>
        <div class="buttons">
          <button type="button" onClick={() => dialog.current?.close()}>
            Cancel
          </button>
          <button type="submit" class="main" aria-disabled={isBusy}>
            Roll back
          </button>
        </div>
      </form>
    </dialog>
  );
}
