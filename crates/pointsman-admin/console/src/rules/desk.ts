// What somebody does with the rules of a listener. It is kept while another page is looked at: unsaved text, too.

import { useEffect, useState } from "preact/hooks";
import { PATIENCE_MS, type Refusal, whyNot } from "../api";
import type { Said } from "../notice";
import type { Session } from "../session";
import { asked, type Checked, type Finding, ofListener, type Rules, type Version, type Vocabulary } from "./calls";
import { type Placed, RulesEditor, rangeOf } from "./editor";
import { Review } from "./review";
import { Trial } from "./trial";

/** How long nobody types before what was typed is looked at. */
const PAUSE_MS = 250;
/** How long the switch looks at what was changed, and at all rules. */
const WITHIN_MS = { changed: 1_000, all: 8_000 };
/** How long nobody types before all rules are looked at: what was said of others may not hold any more. */
const REST_MS = 1_500;
/** How long until it is asked again for rules that did not come. */
const AGAIN_MS = 2_000;
const desks = new Map<string, Desk>();

/** Asks before the tab is closed. Within the console the text is kept. */
addEventListener("beforeunload", (event) => {
  if ([...desks.values()].some((desk) => desk.isChanged)) event.preventDefault();
});
/** A dry-run that nobody can look at any more need not go on. */
addEventListener("pagehide", () => desks.forEach(({ review }) => review?.leave()));

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
      if (!desks.has(listener)) desks.set(listener, new Desk(rules, vocabulary, session));
      if (isOver) return;
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
  useEffect(() => desk?.attend(session), [desk, session]);
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
  /** Of the configuration whose words are known here. */
  #generation: number | null = null;
  #over: AbortController | null = null;
  readonly #listeners = new Set<() => void>();

  constructor(rules: Rules, vocabulary: Vocabulary, session: Session) {
    this.rules = rules;
    this.session = session;
    this.editor = new RulesEditor(rules.listener, rules.text, vocabulary, {
      changed: () => this.#typed(),
      format: () => void this.format(),
      publish: () => this.startReview(),
      tryOut: (finding) => this.tryOut(finding),
    });
    this.#base = this.editor.doc;
    this.attend(session);
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
    const could = this.mayChange;
    // Whoever may not change any more publishes nothing; the text is kept.
    if (could && session.access?.may !== "change") this.#leaveReview();
    this.session = session;
    this.editor.freeze(!this.mayChange || this.review !== null);
    if (!could && this.mayChange && (this.isChanged || this.checked === null)) void this.check(this.#about);
  }

  listen(heard: () => void): () => void {
    this.#listeners.add(heard);
    return () => void this.#listeners.delete(heard);
  }

  tell() {
    for (const heard of this.#listeners) heard();
  }

  say(text: string, lines = "", isBad = false) {
    this.said = { text, isBad, ...(lines.trim() === "" ? {} : { lines: lines.trimEnd() }) };
    this.tell();
  }

  /** Why something was not done. */
  refused(error: unknown) {
    const refusal = error as Refusal;
    this.session.refused(refusal);
    if (refusal.status === 412) this.newer = refusal.rulesVersion ?? "";
    else this.say(whyNot(refusal), refusal.text, true);
    this.tell();
  }

  /** Looks at what was changed, or at everything. Only the newest look counts. */
  async check(about: "changed" | "all", isAfterwards = false) {
    this.#over?.abort();
    clearTimeout(this.#pause);
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
      if (!this.mayChange && checked.rules_version !== this.rules.rules_version) return;
      // What was not reached takes nothing away of what is known.
      if (checked.is_settled || !isAfterwards) this.#show(checked, about);
      this.checkTrouble = null;
      if (about === "changed" && checked.compiles) this.#pause = window.setTimeout(() => this.check("all", true), REST_MS);
    } catch (error) {
      if (this.#over !== over) return;
      if (!isAfterwards) this.checkTrouble = (error as Error).message;
      this.session.refused(error as Error);
    }
    this.looking = null;
    this.tell();
  }

  /** What serves may be asked about by whoever looks. */
  #checked(about: "changed" | "all", signal: AbortSignal): Promise<Checked> {
    const { api } = this.session;
    const of = (query: string) => ofListener(this.rules.listener, `rules/check?${query}within_ms=${WITHIN_MS[about]}&${asked("check")}`);
    if (!this.mayChange) return api.get<Checked>(of(""), PATIENCE_MS.change, signal);
    return api.question<Checked>("POST", of(`about=${about}&`), this.editor.text, undefined, signal);
  }

  async format() {
    if (!this.mayChange || this.review) return;
    const { doc } = this.editor;
    try {
      const path = ofListener(this.rules.listener, `rules/format?${asked("format")}`);
      const formatted = await this.session.api.question<{ text: string; is_changed: boolean }>("POST", path, this.editor.text);
      // Somebody has typed meanwhile, or publishes what stands there.
      if (this.review || doc !== this.editor.doc) return;
      this.editor.replace(formatted.text);
      this.say(formatted.is_changed ? "formatted" : "it is in its form");
    } catch (error) {
      this.refused(error);
    }
  }

  /** The text of a version, in the place of what stands there. */
  async open({ n, rules_version }: Version) {
    const { doc } = this.editor;
    try {
      const { text } = await this.session.api.get<{ text: string }>(`versions/${n}?of=${rules_version}`);
      if (this.review || doc !== this.editor.doc) return this.say(`version ${n} did not take the place of what was written meanwhile`);
      this.editor.replace(text);
    } catch (error) {
      this.refused(error);
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

  #leaveReview() {
    this.review?.leave();
    this.review = null;
    this.tell();
  }

  endReview() {
    this.review = null;
    this.editor.freeze(!this.mayChange);
    this.tell();
  }

  /** Other rules serve than the text began from: whoever has changed nothing gets them, others are told. */
  async notice(version: string) {
    if (version === this.newer || this.#isBeginning) return;
    // Where theirs was taken back nothing is newer any more.
    if (version === this.rules.rules_version) this.newer = null;
    else if (this.review?.trouble?.mayBeDone && (await this.#isPublished())) return;
    else if (this.isChanged || this.review) this.newer = version;
    else await this.#begin(true, true);
    this.tell();
  }

  /** The configuration is another one: rules may name other things, and others may have them. */
  async learn(generation: number) {
    if (generation === this.#generation) return;
    const known = this.#generation;
    this.#generation = generation;
    if (known === null) return;
    const { listener, rules_version } = this.rules;
    const { api } = this.session;
    try {
      const [vocabulary, rules] = await Promise.all([api.get<Vocabulary>(ofListener(listener, "vocabulary")), api.get<Rules>(ofListener(listener, "rules"))]);
      this.editor.learn(vocabulary);
      if (rules.rules_version === rules_version && this.rules.rules_version === rules_version) this.rules = rules;
      this.tell();
    } catch (error) {
      // The next look tries again.
      this.#generation = known;
      this.session.refused(error as Error);
    }
  }

  async #isPublished(): Promise<boolean> {
    try {
      const rules = await this.session.api.get<Rules>(ofListener(this.rules.listener, "rules"));
      return (await this.review?.isPublished(rules)) ?? false;
    } catch {
      // The next look tells.
      return true;
    }
  }

  /** The text stays, and what it changes is said of the rules that serve now. */
  async goOnFromTheirs() {
    await this.#begin(false);
    await this.review?.end();
    await this.check("changed");
  }

  /** The text goes; it can be undone in the editor. */
  async takeTheirs() {
    await this.review?.end();
    await this.#begin(true);
  }

  /** Back to what the text began from. */
  revert() {
    this.editor.replace(this.editor.textOf(this.#base));
  }

  /** What was written serves. */
  async published(version: string, text: string) {
    this.endReview();
    this.rules = { ...this.rules, rules_version: version, text };
    this.#base = this.editor.view.state.toText(text);
    [this.isChanged, this.newer] = [!this.editor.doc.eq(this.#base), null];
    await this.check("all");
  }

  /** From those that serve. Where nobody has asked for it the bar says that nothing comes, and the next look tries again. */
  async #begin(isTaken: boolean, isUnasked = false) {
    const { doc } = this.editor;
    this.#isBeginning = true;
    try {
      const rules = await this.session.api.get<Rules>(ofListener(this.rules.listener, "rules"));
      if (isTaken && doc !== this.editor.doc) {
        // Somebody has typed meanwhile.
        this.newer = rules.rules_version;
        return this.tell();
      }
      this.rules = rules;
    } catch (error) {
      return isUnasked ? this.session.refused(error as Error) : this.refused(error);
    } finally {
      this.#isBeginning = false;
    }
    this.newer = null;
    this.#found = null;
    if (isTaken) this.editor.replace(this.rules.text);
    this.#base = isTaken ? this.editor.doc : this.editor.view.state.toText(this.rules.text);
    this.isChanged = !this.editor.doc.eq(this.#base);
    this.tell();
    if (isTaken) await this.check("all");
  }

  #typed() {
    const was = this.isChanged;
    this.isChanged = !this.editor.doc.eq(this.#base);
    this.trial.forget();
    if (was !== this.isChanged) this.tell();
    clearTimeout(this.#pause);
    this.#pause = window.setTimeout(() => this.#paused(), PAUSE_MS);
  }

  #paused() {
    if (this.isChanged || this.#found === null) return void this.check(this.#about);
    this.#over?.abort();
    this.#over = this.looking = null;
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
