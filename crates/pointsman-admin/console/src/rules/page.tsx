// Rules: written with what the analyst finds beside them, tried out, published and taken back.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { Access } from "../api";
import { useEvery } from "../every";
import type { Watching } from "../looks";
import { Notice } from "../notice";
import type { Session } from "../session";
import type { Plan } from "./calls";
import { type Desk, useDesk, written } from "./desk";
import { KEYS } from "./editor";
import { Findings } from "./findings";
import { History } from "./history";
import { Newer } from "./newer";
import { PublishSection } from "./publish";
import { TrySection } from "./try";

const EVERY_MS = 2_000;
/** Which listener's rules were looked at last. */
let chosen: string | null = null;

export function RulesPage({ session, watching }: { session: Session; watching: Watching }) {
  const { plan, trouble } = usePlan(session);
  const [listener, setListener] = useState(chosen);
  // What was written for rules that a reload has taken away is kept.
  const kept = written();
  const known = plan?.listeners.filter(({ name, rules }) => rules !== null || kept.includes(name)) ?? [];
  const gone = kept.filter((name) => !plan?.listeners.some((listener) => listener.name === name));
  const ruled = plan ? [...known, ...gone.map((name) => ({ name, protocol: "http", rules: null }))] : [];
  const shown = ruled.find(({ name }) => name === listener) ?? ruled[0];
  const { desk, trouble: deskTrouble } = useDesk(session, shown?.name ?? null);
  const version = shown?.rules?.rules_version;
  useEffect(() => {
    if (!desk || !plan || version === undefined) return;
    void desk.notice(version);
    void desk.learn(plan);
  }, [desk, plan, version]);
  if (desk && shown) desk.readsRequests = shown.protocol === "http";
  const choose = (name: string) => setListener((chosen = name));
  const silent = deskTrouble ?? trouble;
  return (
    <>
      {silent && !watching.trouble && <p class="stale">{silent}</p>}
      {plan && ruled.length === 0 && <p class="quiet">No listener has rules: requests go to default pools.</p>}
      {ruled.length > 1 && <Listeners names={ruled.map(({ name }) => name)} chosen={shown?.name ?? ""} choose={choose} />}
      {desk && shown?.rules === null && <p class="stale">There are no rules of that listener any more. What was written is kept.</p>}
      {desk ? <DeskShown key={desk.rules.listener} desk={desk} access={session.access} /> : ruled.length > 0 && !silent && <p class="quiet">looking…</p>}
    </>
  );
}

function usePlan({ api, refused }: Session) {
  const [plan, setPlan] = useState<Plan | null>(null);
  const [trouble, setTrouble] = useState<string | null>(null);
  const again = useCallback(
    async (isWanted: () => boolean) => {
      try {
        const plan = await api.get<Plan>("plan");
        if (!isWanted()) return;
        setPlan(plan);
        setTrouble(null);
      } catch (error) {
        if (!isWanted()) return;
        setTrouble((error as Error).message);
        refused(error as Error);
      }
    },
    [api, refused],
  );
  useEvery(EVERY_MS, again);
  return { plan, trouble };
}

function Listeners({ names, chosen, choose }: { names: string[]; chosen: string; choose: (name: string) => void }) {
  return (
    <p class="head">
      <label for="listener">Rules of the listener</label>
      <select id="listener" value={chosen} onChange={(event) => choose(event.currentTarget.value)}>
        {names.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
    </p>
  );
}

function DeskShown({ desk, access }: { desk: Desk; access: Access | null }) {
  const forget = useCallback(() => {
    desk.said = null;
    desk.tell();
  }, [desk]);
  return (
    <>
      {!desk.mayChange && <p class="quiet">{whatIsMissing(access, desk.isChanged)}</p>}
      <Newer desk={desk} />
      {desk.review && <PublishSection desk={desk} review={desk.review} />}
      <div class="desk">
        <EditorSection desk={desk} />
        <TrySection desk={desk} />
      </div>
      <History desk={desk} />
      <Notice said={desk.said} forget={forget} />
    </>
  );
}

function whatIsMissing(access: Access | null, isChanged: boolean): string {
  const kept = isChanged ? " What was written is kept as long as this tab is open." : "";
  if (access?.takes.includes("token")) return `Sign in to change the rules.${kept}`;
  if (access?.takes.includes("certificate")) return `To change the rules show a client certificate.${kept}`;
  return "Nothing can be changed from here: the configuration has neither `token_file` nor `client_ca` in `[admin]`.";
}

function EditorSection({ desk }: { desk: Desk }) {
  const { rules, isChanged, mayChange, review } = desk;
  const isOpen = mayChange && review === null;
  const title = useRef<HTMLHeadingElement>(null);
  const hadReview = useRef(review !== null);
  useEffect(() => {
    // What was pressed there is gone with the steps.
    if (hadReview.current && !review && document.activeElement === document.body) title.current?.focus();
    hadReview.current = review !== null;
  }, [review]);
  const others = desk.sharing.filter((name) => name !== rules.listener);
  return (
    <section aria-labelledby="editor-title">
      <div class="head">
        <h2 id="editor-title" ref={title} tabIndex={-1}>
          {rules.listener}
        </h2>
        <span class="quiet">
          {rules.file}
          {others.length > 0 && `, also of ${others.join(", ")}`}
        </span>
        <span class="state" data-state={isChanged ? "draining" : "up"} data-changed={isChanged}>
          {isChanged ? "changed, not published" : "as it serves"}
        </span>
        {mayChange && (
          <span class="tools">
            <button type="button" disabled={!isOpen} onClick={() => desk.format()} title="Shift-Alt-F">
              Format
            </button>
            <button type="button" disabled={!isOpen} onClick={() => desk.check("all")}>
              Check all
            </button>
            <button type="button" disabled={!isOpen || !isChanged} onClick={() => desk.revert()}>
              Take back
            </button>
            <button type="button" class="main" disabled={!isOpen || !isChanged} onClick={() => desk.startReview()} title="Ctrl-S">
              Publish…
            </button>
          </span>
        )}
      </div>
      <Host desk={desk} />
      {mayChange && <p class="quiet">{KEYS}</p>}
      <Findings desk={desk} />
    </section>
  );
}

/** Where the editor stands, which lives longer than this. */
function Host({ desk }: { desk: Desk }) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const { host, view } = desk.editor;
    place.current!.append(host);
    view.requestMeasure();
    return () => host.remove();
  }, [desk]);
  return <div class="place" ref={place} />;
}
