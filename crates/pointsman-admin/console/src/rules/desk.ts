// What somebody does with the rules of a listener. It is kept while another page is looked at: unsaved text, too.

import { useEffect, useState } from "preact/hooks";
import { PATIENCE_MS, type Refusal, whyNot } from "../api";
import type { Said } from "../notice";
import { attend, type Session } from "../session";
import { asked, type Checked, type Finding, ofListener, type Plan, type Rules, type Version, type Vocabulary } from "./calls";
import { type Placed, RulesEditor, rangeOf } from "./editor";
import { Review } from "./review";
import { Trial } from "./trial";
import { isAlike, textOf, writtenOf } from "./written";

/** How long nobody types before what was typed is looked at. */
const PAUSE_MS = 250;
/** How long the switch looks at what was changed, and at all rules. */
const WITHIN_MS = { changed: 1_000, all: 8_000 };
/** How long nobody types before all rules are looked at: what was said of others may not hold any more. */
const REST_MS = 1_500;
/** How long until it is asked again for rules that did not come. */
const AGAIN_MS = 2_000;
/** No answer, or too much else to do: it may be answered in a moment. */
const PASSING = [0, 503];
const desks = new Map<string, Desk>();

/** Asks before the tab is closed. Within the console the text is kept. */
addEventListener("beforeunload", (event) => {
  if ([...desks.values()].some((desk) => desk.isChanged)) event.preventDefault();
});
/** A dry-run that nobody can look at any more need not go on. */
addEventListener("pagehide", () => desks.forEach(({ review }) => review?.leave()));

/** All of them: that of another listener, or of a page that is not shown, is somebody's, too. */
attend((session) => desks.forEach((desk) => desk.attend(session)));

/** The listeners of which there is something that is not published. */
export const written = () => [...desks.values()].filter(({ isChanged }) => isChanged).map(({ rules }) => rules.listener);

/** The desk of a listener; null until its rules have come. */
export function useDesk(session: Session, listener: string | null): { desk: Desk | null; trouble: string | null } {
  const [, again] = useState(0);
  const [trouble, setTrouble] = useState<string | null>(null);
  const { api, refused } = session;
  const desk = listener === null ? null : (desks.get(listener) ?? null);
  useEffect(() => {
    if (listener === null || desks.has(listener)) return;
    let isOver = false;
    let timer = 0;
    setTrouble(null);
    const load = async () => {
      const both = [api.get<Rules>(ofListener(listener, "rules")), api.get<Vocabulary>(ofListener(listener, "vocabulary"))] as const;
      const [rules, vocabulary] = await Promise.all(both);
      if (isOver) return;
      desks.set(listener, new Desk(rules, vocabulary, session));
      setTrouble(null);
      again((count) => count + 1);
    };
    const tryIt = () =>
      load().catch((error: Error) => {
        if (isOver) return;
        setTrouble(error.message);
        refused(error);
        timer = window.setTimeout(tryIt, AGAIN_MS);
      });
    void tryIt();
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [api, listener]);
  useEffect(() => desk?.listen(() => again((count) => count + 1)), [desk]);
  return { desk, trouble };
}

export class Desk {
  /** From which the text began. */
  rules: Rules;
  readonly editor: RulesEditor;
  readonly trial = new Trial(this);
  isChanged = false;
  /** Otherwise connections are decided, which have no request. */
  readsRequests = true;
  /** The listeners that have these rules, by the same file. */
  sharing: string[] = [];
  /** Somebody else's rules that serve by now. */
  newer: string | null = null;
  review: Review | null = null;
  /** What came of what was done last. */
  said: Said | null = null;
  /** What is looked at now, and what came of the last look. */
  looking: "changed" | "all" | null = null;
  checked: Checked | null = null;
  checkTrouble: string | null = null;
  session: Session;
  #base;
  /** What was found in the text that the editor began from. */
  #found: Placed[] | null = null;
  #pause = 0;
  #isBeginning = false;
  /** Texts that were published, and of which nobody knows whether they serve: their answers did not come. */
  readonly #sent = new Set<string>();
  /** Which version was seen to be none of those. */
  #theirs: string | null = null;
  /** Which configuration the words are of that are known here. */
  #words: string | null = null;
  #over: AbortController | null = null;
  readonly #listeners = new Set<() => void>();

  constructor(rules: Rules, vocabulary: Vocabulary, session: Session) {
    this.rules = rules;
    this.session = session;
    this.sharing = rules.listeners;
    this.editor = new RulesEditor(rules.listener, rules.text, vocabulary, {
      changed: () => this.#typed(),
      format: () => void this.format(),
      publish: () => this.startReview(),
      tryOut: (finding) => this.tryOut(finding),
    });
    this.#base = this.editor.written;
    this.editor.freeze(!this.mayChange);
    void this.check("all");
  }

  get #about(): "changed" | "all" {
    return this.isChanged ? "changed" : "all";
  }

  get mayChange(): boolean {
    return this.session.access?.may === "change";
  }

  /** Who looks now. */
  attend(session: Session) {
    const { api, access } = this.session;
    this.session = session;
    if (session.api !== api || session.access?.may !== access?.may) this.#changeHands();
  }

  /** Nobody goes on with what somebody else began, nor reads what was answered to them. The text is kept. */
  #changeHands() {
    this.review?.leave();
    this.#stopLooking();
    this.trial.forget();
    this.#sent.clear();
    [this.review, this.said, this.checked, this.checkTrouble] = [null, null, null, null];
    this.#place([]);
    this.editor.freeze(!this.mayChange);
    if (this.#listeners.size > 0) this.#lookFirst();
    this.tell();
  }

  /** What nobody sees is not looked at. */
  #lookFirst() {
    if (this.session.access && this.checked === null && this.looking === null) void this.check(this.#about);
  }

  listen(heard: () => void): () => void {
    this.#listeners.add(heard);
    this.#lookFirst();
    return () => void this.#listeners.delete(heard);
  }

  tell() {
    for (const heard of this.#listeners) heard();
  }

  say(text: string, lines = "", isBad = false) {
    this.said = { text, isBad, ...(lines.trim() === "" ? {} : { lines: lines.trimEnd() }) };
    this.tell();
  }

  /** Why something was not done that was asked for by `api`. Who has come since is told nothing of it. */
  refused(error: unknown, api = this.session.api) {
    if (api !== this.session.api) return;
    const refusal = error as Refusal;
    this.session.refused(refusal);
    if (refusal.status === 412 && refusal.rulesVersion !== null) this.newer = refusal.rulesVersion;
    else this.say(whyNot(refusal), refusal.text, true);
    this.tell();
  }

  /** Looks at what was changed, or at everything. Only the newest look counts. */
  async check(about: "changed" | "all", isAfterwards = false) {
    this.#stopLooking();
    // Of what somebody else has written in this tab nothing is said to who may only look.
    if (!this.mayChange && this.isChanged) return;
    const over = (this.#over = new AbortController());
    const { doc } = this.editor;
    this.looking = about;
    this.tell();
    try {
      const checked = await this.#checked(about, over.signal);
      // Who types on is told of what stands there then.
      if (this.#over !== over || doc !== this.editor.doc) return;
      // Others serve by now than those that are shown, which come in a moment.
      if (!this.mayChange && checked.rules_version !== this.rules.rules_version) this.#lookAgain(about);
      // What was not reached takes nothing away of what is known.
      else if (checked.is_settled || !isAfterwards) this.#show(checked, about);
      this.checkTrouble = null;
      if (about === "changed" && checked.compiles) this.#pause = window.setTimeout(() => this.check("all", true), REST_MS);
    } catch (error) {
      if (this.#over !== over) return;
      const refusal = error as Refusal;
      if (!isAfterwards) this.checkTrouble = refusal.message;
      this.session.refused(refusal);
      if (PASSING.includes(refusal.status)) this.#lookAgain(about, isAfterwards);
    }
    this.looking = null;
    this.tell();
  }

  #lookAgain(about: "changed" | "all", isAfterwards = false) {
    if (this.#listeners.size > 0) this.#pause = window.setTimeout(() => this.check(about, isAfterwards), AGAIN_MS);
  }

  #stopLooking() {
    clearTimeout(this.#pause);
    this.#over?.abort();
    this.#over = this.looking = null;
  }

  /** What serves may be asked about by whoever looks. */
  #checked(about: "changed" | "all", signal: AbortSignal): Promise<Checked> {
    const { api } = this.session;
    const of = (query: string) => ofListener(this.rules.listener, `rules/check?${query}within_ms=${WITHIN_MS[about]}&${asked("check", this.rules.listener)}`);
    if (!this.mayChange) return api.get<Checked>(of(""), PATIENCE_MS.change, signal);
    return api.question<Checked>("POST", of(`about=${about}&`), this.editor.text, undefined, signal);
  }

  async format() {
    if (!this.mayChange || this.review) return;
    const { doc } = this.editor;
    const { api } = this.session;
    const { listener } = this.rules;
    try {
      const path = ofListener(listener, `rules/format?${asked("format", listener)}`);
      const formatted = await api.question<{ text: string; is_changed: boolean }>("POST", path, this.editor.text);
      // Somebody has typed meanwhile, or publishes what stands there, or has signed out.
      if (this.review || doc !== this.editor.doc || api !== this.session.api) return;
      this.editor.replace(formatted.text);
      this.say(formatted.is_changed ? "formatted" : "it is in its form");
    } catch (error) {
      this.refused(error, api);
    }
  }

  /** The text of a version, in the place of what stands there. */
  async open({ n, rules_version }: Version) {
    const { doc } = this.editor;
    const { api } = this.session;
    try {
      const { text } = await api.get<{ text: string }>(`versions/${n}?of=${rules_version}`);
      if (api !== this.session.api) return;
      if (this.review || doc !== this.editor.doc) return this.say(`version ${n} did not take the place of what was written meanwhile`);
      this.editor.replace(text);
    } catch (error) {
      this.refused(error, api);
    }
  }

  /** The request that shows a finding, to be tried out. */
  tryOut(finding: Finding) {
    if (!finding.witness) return;
    this.trial.take(finding.witness);
    void this.trial.run();
  }

  startReview() {
    if (!this.mayChange || this.review || !this.isChanged) return;
    this.review = new Review(this);
    this.editor.freeze(true);
    this.tell();
  }

  endReview() {
    [this.review, this.#theirs] = [null, null];
    this.editor.freeze(!this.mayChange);
    this.tell();
  }

  /** Other rules serve than the text began from: whoever has changed nothing gets them, others are told. */
  async notice(version: string) {
    // What is being published will be answered.
    if (this.#isBeginning || this.review?.isPublishing) return;
    // Where theirs was taken back nothing is newer any more.
    if (version === this.rules.rules_version) this.newer = null;
    else if (await this.#isKnown(version)) return;
    else if (this.isChanged || this.review) {
      if (this.newer === version) return;
      this.newer = version;
    } else await this.#begin(true, true);
    this.tell();
  }

  /** The configuration is another one: rules may name other things, and others may have them. */
  async learn({ began, generation, listeners }: Plan) {
    const { listener } = this.rules;
    const file = listeners.find(({ name }) => name === listener)?.rules?.file;
    if (file === undefined) return;
    const sharing = listeners.filter(({ rules }) => rules?.file === file).map(({ name }) => name);
    if (file !== this.rules.file || sharing.join() !== this.sharing.join()) {
      [this.rules, this.sharing] = [{ ...this.rules, file }, sharing];
      this.tell();
    }
    const words = `${began} ${generation}`;
    if (words === this.#words) return;
    const known = this.#words;
    this.#words = words;
    if (known === null) return;
    try {
      this.editor.learn(await this.session.api.get<Vocabulary>(ofListener(listener, "vocabulary")));
      // What could not be looked at then may be now.
      if (this.checkTrouble !== null) void this.check(this.#about);
    } catch (error) {
      // The next look tries again.
      this.#words = known;
      this.session.refused(error as Error);
    }
  }

  /** A text is on its way, and may serve from now on. Whether it was before. */
  send(text: string): boolean {
    const wasSent = this.#sent.has(text);
    this.#sent.add(text);
    this.#theirs = null;
    return wasSent;
  }

  /** It does not serve: that was answered. */
  unsend(text: string) {
    this.#sent.delete(text);
  }

  /** Whether what serves by now is what was sent, and not answered, or what stands in the editor. */
  async #isKnown(version: string): Promise<boolean> {
    if (!(this.isChanged || this.review) || this.#theirs === version) return false;
    const { api } = this.session;
    this.#isBeginning = true;
    try {
      const rules = await api.get<Rules>(ofListener(this.rules.listener, "rules"));
      if (api !== this.session.api) return true;
      this.#theirs = rules.rules_version;
      const isSent = this.#sent.has(rules.text);
      if (!isSent && (this.review || rules.text !== this.editor.text)) return false;
      if (isSent) this.say("published: the rules serve, though the answer of the switch did not come");
      void this.published(rules.rules_version, rules.text);
    } catch (error) {
      // The next look tells.
      this.session.refused(error as Error);
    } finally {
      this.#isBeginning = false;
    }
    return true;
  }

  /** The text stays, and what it changes is said of the rules that serve now. */
  async goOnFromTheirs() {
    const { api } = this.session;
    const { review } = this;
    await this.#begin(false);
    await review?.end();
    if (api === this.session.api) await this.check("changed");
  }

  /** The text goes; it can be undone in the editor. */
  async takeTheirs() {
    await this.review?.end();
    await this.#begin(true);
  }

  /** Back to what the text began from. */
  revert() {
    this.editor.replace(textOf(this.#base));
  }

  /** What was written serves. */
  async published(version: string, text: string) {
    this.review?.leave();
    this.endReview();
    this.rules = { ...this.rules, rules_version: version, text };
    this.#base = writtenOf(text);
    this.#sent.clear();
    [this.isChanged, this.newer] = [!isAlike(this.editor.written, this.#base), null];
    await this.check("all");
  }

  /** From those that serve. Where nobody has asked for it the bar says that nothing comes, and the next look tries again. */
  async #begin(isTaken: boolean, isUnasked = false) {
    const { doc } = this.editor;
    const { api } = this.session;
    this.#isBeginning = true;
    try {
      const rules = await api.get<Rules>(ofListener(this.rules.listener, "rules"));
      if (api !== this.session.api) return;
      if (isTaken && doc !== this.editor.doc) {
        // Somebody has typed meanwhile.
        this.newer = rules.rules_version;
        return this.tell();
      }
      this.rules = rules;
    } catch (error) {
      return isUnasked ? this.session.refused(error as Error) : this.refused(error, api);
    } finally {
      this.#isBeginning = false;
    }
    this.newer = null;
    this.#found = null;
    this.#sent.clear();
    if (isTaken) this.editor.replace(this.rules.text);
    this.#base = writtenOf(this.rules.text);
    this.isChanged = !isAlike(this.editor.written, this.#base);
    this.tell();
    if (isTaken) await this.check("all");
  }

  #typed() {
    const was = this.isChanged;
    this.isChanged = !isAlike(this.editor.written, this.#base);
    this.trial.forget();
    if (was !== this.isChanged) this.tell();
    clearTimeout(this.#pause);
    this.#pause = window.setTimeout(() => this.#paused(), PAUSE_MS);
  }

  #paused() {
    if (this.isChanged || this.#found === null) return void this.check(this.#about);
    this.#stopLooking();
    this.#place(this.#found);
    this.tell();
  }

  #show(checked: Checked, about: "changed" | "all") {
    this.checked = checked;
    const { doc } = this.editor;
    const found = checked.findings.map((finding) => ({ finding, ...rangeOf(doc, finding.span), isTouched: false }));
    if (about === "all") {
      if (!this.isChanged) this.#found = found;
      return this.#place(found);
    }
    const looked = new Set(checked.changed);
    const isOld = ({ finding, isTouched }: Placed) =>
      !isTouched &&
      finding.code !== "invalid" &&
      !(checked.compiles && finding.code === "gap") &&
      ![finding.rule, ...finding.others].some((rule) => rule !== null && looked.has(rule)) &&
      !found.some((other) => isSame(other.finding, finding));
    this.#place([...found, ...this.editor.findings.filter(isOld)]);
  }

  #place(placed: Placed[]) {
    this.editor.show(
      [...placed].sort((a, b) => a.from - b.from),
      (finding) => this.tryOut(finding),
    );
  }
}

const isSame = (one: Finding, other: Finding) =>
  one.code === other.code && one.rule === other.rule && one.message === other.message;
