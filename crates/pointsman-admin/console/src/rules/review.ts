// The way from a text to what serves: what it decides otherwise, what it would have decided beside, and the change itself.

import { type Api, PATIENCE_MS, type Refusal, whyNot } from "../api";
import { type Compared, type DryRun, newId, ofListener, type Published } from "./calls";
import type { Desk } from "./desk";

/** What has become of a dry-run of which the switch says so. */
const GONE_BY: Record<number, string> = { 404: "gone", 412: "another one" };
/** How often one that nobody looks at is told to end, and how long after each other, until that is answered. */
const ENDS = { times: 300, everyMs: 2_000 };

/** How long it is looked for one that may begin yet, and how long at most after each other. */
const SEEK_MS = { whole: PATIENCE_MS.change, pause: 500, pauseMax: 10_000 };

interface Trouble {
  text: string;
  lines: string;
  status: number;
  mayBeDone: boolean;
  /** Whether it is of a dry-run, of which it may be seen later what came of it. */
  isOfDryRun: boolean;
}

export class Review {
  readonly text: string;
  compared: Compared | null = null;
  dryRun: DryRun | null = null;
  /** That of somebody else, which stands in the way. */
  other: DryRun | null = null;
  /** Why a step was not done. */
  trouble: Trouble | null = null;
  isBusy = false;
  isPublishing = false;
  readonly #desk: Desk;
  /** Of whoever began it. */
  readonly #api: Api;
  readonly #version: string;
  /** Dry-runs that may go on though nobody was told so. */
  readonly #unanswered = new Set<string>();
  /** Until when that is to be found out, and when next; what was asked for may begin late. */
  #sought: { until: number; next: number; pause: number } | null = null;
  #isLeft = false;

  constructor(desk: Desk) {
    this.#desk = desk;
    this.#api = desk.session.api;
    this.text = desk.editor.text;
    this.#version = desk.rules.rules_version;
    void this.compare();
  }

  get isRunning(): boolean {
    return this.dryRun?.state === "running";
  }

  /** Whether there is something to look for. */
  get isLooking(): boolean {
    return this.isRunning || (this.#sought !== null && !this.isBusy);
  }

  /** Whoever began it has signed out, or gone back. */
  get #isOver(): boolean {
    return this.#desk.review !== this;
  }

  /** Compares with what the text began from: where something else serves by now the switch says so. */
  async compare() {
    await this.#try(async () => {
      const path = ofListener(this.#desk.rules.listener, "rules?dry_run=true");
      this.compared = await this.#api.question<Compared>("PUT", path, this.text, this.#version);
    });
  }

  async startDryRun(seconds: number) {
    if (this.isBusy || this.isRunning) return;
    const id = newId();
    this.#unanswered.add(id);
    [this.#isLeft, this.other] = [false, null];
    const begun = await this.#tryDryRun(() => {
      const query = `seconds=${seconds}&id=${id}&why=${encodeURIComponent("before it is published")}`;
      return this.#api.change<DryRun>("POST", ofListener(this.#desk.rules.listener, `rules/dry-run?${query}`), this.text);
    });
    if (begun) this.dryRun = begun;
    if (begun || !this.trouble?.mayBeDone) this.#unanswered.delete(id);
    const now = performance.now();
    this.#sought = this.#unanswered.size > 0 ? { until: now + SEEK_MS.whole, next: now, pause: SEEK_MS.pause } : null;
    // Who has gone meanwhile may have told it to end before it had begun.
    if (this.#isOver || this.#isLeft) this.leave();
    else if (this.trouble?.status === 409) await this.#findOther();
    this.#desk.tell();
  }

  /** What goes on in the place of what was asked for: it may be one of ours. */
  async #findOther() {
    const now = await this.#api.get<DryRun>("dry-run").catch(() => null);
    if (now?.state !== "running") return;
    if (!this.#unanswered.has(now.id)) this.other = now;
    else {
      this.#found(now);
      this.trouble = null;
    }
  }

  async endOther() {
    const { other } = this;
    if (!other) return;
    await this.#tryDryRun(() => this.#end(other.id));
    if (this.trouble === null) this.other = null;
    this.#desk.tell();
  }

  /** How it stands. Where another one has begun this one has ended. */
  async look() {
    const before = this.dryRun;
    const isStill = () => this.dryRun === before && this.isLooking && !this.isBusy;
    if (!isStill() || (!this.isRunning && this.#sought && performance.now() < this.#sought.next)) return;
    try {
      const now = await this.#api.get<DryRun>("dry-run");
      if (!isStill()) return;
      if (this.#unanswered.has(now.id) || now.id === before?.id) this.#found(now);
      else this.#lost(GONE_BY[412]!);
    } catch (error) {
      if (!isStill()) return;
      // The bar says where the switch does not answer; the next look may. What it knows nothing of is gone.
      if ((error as Refusal).status === 404) this.#lost(GONE_BY[404]!);
      this.#desk.session.refused(error as Error);
    }
    this.#desk.tell();
  }

  #found(now: DryRun) {
    this.#unanswered.delete(now.id);
    [this.dryRun, this.#sought] = [now, null];
    // It is known by now what came of it.
    if (this.trouble?.isOfDryRun && this.trouble.mayBeDone) this.trouble = null;
  }

  #lost(by: string) {
    const mayBeDone = this.trouble?.isOfDryRun && this.trouble.mayBeDone;
    if (this.isRunning) {
      this.dryRun = { ...this.dryRun!, state: "ended", ended_by: by };
      if (mayBeDone) this.trouble = null;
    } else if (this.#sought) this.#seekOn(this.#sought, mayBeDone === true);
  }

  /** The switch may still be at what it was asked for. */
  #seekOn(sought: { until: number; pause: number }, mayBeDone: boolean) {
    const now = performance.now();
    if (now < sought.until) {
      this.#sought = { until: sought.until, next: now + sought.pause, pause: Math.min(2 * sought.pause, SEEK_MS.pauseMax) };
      return;
    }
    this.#sought = null;
    if (mayBeDone) this.trouble = { ...this.trouble!, text: "nothing is seen of it: it has not begun", mayBeDone: false };
  }

  async stopDryRun() {
    const { dryRun } = this;
    if (dryRun) await this.#tryDryRun(() => this.#end(dryRun.id));
  }

  async #end(id: string) {
    try {
      const ended = await this.#api.change<DryRun>("DELETE", "dry-run", undefined, id);
      if (id === this.dryRun?.id) this.dryRun = ended;
    } catch (error) {
      const by = GONE_BY[(error as Refusal).status];
      if (by === undefined) throw error;
      if (id === this.dryRun?.id) this.#lost(by);
    }
  }

  async publish(why: string) {
    if (this.isBusy) return;
    const wasSent = this.#desk.send(this.text);
    this.isPublishing = true;
    const published = await this.#try(() => {
      const query = why === "" ? "rules" : `rules?why=${encodeURIComponent(why)}`;
      return this.#api.change<Published>("PUT", ofListener(this.#desk.rules.listener, query), this.text, this.#version);
    });
    this.isPublishing = false;
    // Who has signed out is told nothing: whoever is there sees what serves.
    if (this.#isOver) return;
    if (published) {
      this.#desk.say(`published: the rules serve as generation ${published.generation}`, published.text);
      return this.#desk.published(published.rules_version, this.text);
    }
    if (!wasSent && !this.trouble?.mayBeDone) this.#desk.unsend(this.text);
    // What stands in the way may be what was sent before.
    if (this.#desk.newer !== null) await this.#desk.notice(this.#desk.newer);
  }

  /** Back to the editor. A dry-run that goes on is told to end. */
  async end() {
    if (this.isRunning) await this.stopDryRun();
    if (this.#isOver) return;
    this.leave();
    this.#desk.endReview();
  }

  /** Nobody looks at it any more: what goes on of it is told to end, until that is answered or the page is gone. */
  leave() {
    this.#isLeft = true;
    const ids = [...this.#unanswered, ...(this.isRunning ? [this.dryRun!.id] : [])];
    if (ids.length > 0) void endOf(this.#api, ids);
  }

  #tryDryRun<T>(step: () => Promise<T>): Promise<T | null> {
    return this.#try(step, true);
  }

  async #try<T>(step: () => Promise<T>, isOfDryRun = false): Promise<T | null> {
    if (this.isBusy) return null;
    [this.isBusy, this.trouble] = [true, null];
    this.#desk.tell();
    let done: T | null = null;
    try {
      done = await step();
    } catch (error) {
      const refusal = error as Refusal;
      const { status, mayBeDone } = refusal;
      const isLate = refusal.rulesVersion !== null && status === 412;
      if (isLate && !this.#isOver) this.#desk.refused(error);
      else this.#desk.session.refused(refusal);
      const why = isLate ? "not done: other rules serve by now" : whyNot(refusal);
      this.trouble = { text: why, lines: refusal.text.trimEnd(), status, mayBeDone, isOfDryRun };
    }
    this.isBusy = false;
    this.#desk.tell();
    return done;
  }
}

async function endOf(api: Api, ids: string[]) {
  for (let time = 0; time < ENDS.times; time += 1) {
    const status = await api.leave("DELETE", "dry-run", ids);
    if (status !== 0 && status !== 503) return;
    await new Promise((come) => setTimeout(come, ENDS.everyMs));
  }
}
