// The way from a text to what serves: what it decides otherwise, what it would have decided beside, and the change itself.

import { type Api, type Refusal, whyNot } from "../api";
import { type Compared, type DryRun, newId, ofListener, type Published } from "./calls";
import type { Desk } from "./desk";

/** What has become of a dry-run of which the switch says so. */
const GONE_BY: Record<number, string> = { 404: "gone", 412: "another one" };

export class Review {
  readonly text: string;
  compared: Compared | null = null;
  dryRun: DryRun | null = null;
  /** Why a step was not done. */
  trouble: { text: string; lines: string; mayBeDone: boolean } | null = null;
  isBusy = false;
  isPublishing = false;
  readonly #desk: Desk;
  /** Of whoever began it. */
  readonly #api: Api;
  readonly #version: string;
  /** A dry-run that may go on though nobody was told so. */
  #unanswered: string | null = null;
  /** Whether it is to be found out. */
  #isSought = false;
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
    return this.isRunning || (this.#isSought && !this.isBusy);
  }

  /** Compares with what the text began from: where something else serves by now the switch says so. */
  async compare() {
    await this.#try(async () => {
      const path = ofListener(this.#desk.rules.listener, "rules?dry_run=true");
      this.compared = await this.#api.question<Compared>("PUT", path, this.text, this.#version);
    });
  }

  async startDryRun(seconds: number) {
    if (this.isBusy) return;
    const before = this.#unanswered;
    const id = (this.#unanswered = newId());
    this.#isLeft = false;
    const begun = await this.#try(() => {
      const query = `seconds=${seconds}&id=${id}&why=${encodeURIComponent("before it is published")}`;
      return this.#api.change<DryRun>("POST", ofListener(this.#desk.rules.listener, `rules/dry-run?${query}`), this.text);
    });
    if (begun) this.dryRun = begun;
    // What was refused has not begun; another one of which nothing came may go on.
    if (!this.trouble?.mayBeDone) this.#unanswered = begun ? null : before;
    this.#isSought = this.#unanswered !== null;
    // Who has gone meanwhile may have told it to end before it had begun.
    if (this.#isLeft) this.leave();
    this.#desk.tell();
  }

  /** How it stands. Where another one has begun this one has ended. */
  async look() {
    const [before, id] = [this.dryRun, this.#isSought ? this.#unanswered : (this.dryRun?.id ?? null)];
    if (id === null) return;
    const isStill = () => this.dryRun === before && (this.isRunning || this.#unanswered === id) && !this.isBusy;
    try {
      const now = await this.#api.get<DryRun>("dry-run");
      if (!isStill()) return;
      if (now.id === id) this.#found(now);
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
    // It had begun all the same.
    if (this.#isSought) [this.#unanswered, this.trouble] = [null, null];
    [this.dryRun, this.#isSought] = [now, false];
  }

  #lost(by: string) {
    if (this.#isSought) this.#isSought = false;
    else this.dryRun = { ...this.dryRun!, state: "ended", ended_by: by };
  }

  async stopDryRun() {
    const { dryRun } = this;
    if (!dryRun) return;
    await this.#try(async () => {
      try {
        this.dryRun = await this.#api.change<DryRun>("DELETE", "dry-run", undefined, dryRun.id);
      } catch (error) {
        const by = GONE_BY[(error as Refusal).status];
        if (by === undefined) throw error;
        this.#lost(by);
      }
    });
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
    this.leave();
    this.#desk.endReview();
  }

  /** Nobody looks at it any more, and nobody waits for an answer. */
  leave() {
    this.#isLeft = true;
    const id = this.isRunning ? this.dryRun!.id : this.#unanswered;
    if (id !== null) this.#api.leave("DELETE", "dry-run", id);
  }

  async #try<T>(step: () => Promise<T>): Promise<T | null> {
    if (this.isBusy) return null;
    [this.isBusy, this.trouble] = [true, null];
    this.#desk.tell();
    let done: T | null = null;
    try {
      done = await step();
    } catch (error) {
      const refusal = error as Refusal;
      const isLate = refusal.rulesVersion !== null && refusal.status === 412;
      if (isLate) this.#desk.refused(error);
      else this.#desk.session.refused(refusal);
      const why = isLate ? "not done: other rules serve by now" : whyNot(refusal);
      this.trouble = { text: why, lines: refusal.text.trimEnd(), mayBeDone: refusal.mayBeDone };
    }
    this.isBusy = false;
    this.#desk.tell();
    return done;
  }
}
