// The way from a text to what serves: what it decides otherwise, what it would have decided beside, and the change itself.

import { type Refusal, whyNot } from "../api";
import { type Compared, type DryRun, ofListener, type Published, type Rules } from "./calls";
import type { Desk } from "./desk";

export class Review {
  readonly text: string;
  compared: Compared | null = null;
  dryRun: DryRun | null = null;
  /** Why a step was not done. */
  trouble: { text: string; lines: string; mayBeDone: boolean } | null = null;
  isBusy = false;
  readonly #desk: Desk;
  readonly #version: string;

  constructor(desk: Desk) {
    this.#desk = desk;
    this.text = desk.editor.text;
    this.#version = desk.rules.rules_version;
    void this.compare();
  }

  get isRunning(): boolean {
    return this.dryRun?.state === "running";
  }

  /** Compares with what the text began from: where something else serves by now the switch says so. */
  async compare() {
    await this.#try(async () => {
      const path = ofListener(this.#desk.rules.listener, "rules?dry_run=true");
      this.compared = await this.#api.question<Compared>("PUT", path, this.text, this.#version);
    });
  }

  async startDryRun(seconds: number) {
    await this.#try(async () => {
      const path = ofListener(this.#desk.rules.listener, `rules/dry-run?seconds=${seconds}&why=${encodeURIComponent("before it is published")}`);
      this.dryRun = await this.#api.change<DryRun>("POST", path, this.text);
    });
  }

  /** How it stands. Where another one has begun this one has ended. */
  async look() {
    const before = this.dryRun;
    if (before?.state !== "running") return;
    try {
      const now = await this.#api.get<DryRun>("dry-run");
      if (this.dryRun !== before) return;
      this.dryRun = now.id === before.id ? now : endedBy(before, "another one");
    } catch (error) {
      if (this.dryRun !== before) return;
      // The bar says where the switch does not answer; the next look may. What it knows nothing of is gone.
      if ((error as Refusal).status === 404) this.dryRun = endedBy(before, "gone");
      this.#desk.session.refused(error as Error);
    }
    this.#desk.tell();
  }

  async stopDryRun() {
    const { dryRun } = this;
    if (!dryRun) return;
    await this.#try(async () => {
      this.dryRun = await this.#api.change<DryRun>("DELETE", "dry-run", undefined, dryRun.id);
    });
  }

  async publish(why: string) {
    const published = await this.#try(() => {
      const query = why === "" ? "rules" : `rules?why=${encodeURIComponent(why)}`;
      return this.#api.change<Published>("PUT", ofListener(this.#desk.rules.listener, query), this.text, this.#version);
    });
    if (!published) return;
    this.#desk.say(`published: the rules serve as generation ${published.generation}`, published.text);
    await this.#desk.published(published.rules_version, this.text);
  }

  /** The answer of the switch was lost, and other rules serve by now: they may be these. */
  async isPublished(rules: Rules): Promise<boolean> {
    if (rules.text !== this.text) return false;
    this.#desk.say("published: the rules serve, though the answer of the switch did not come");
    await this.#desk.published(rules.rules_version, this.text);
    return true;
  }

  /** Back to the editor. A dry-run that goes on is told to end. */
  async end() {
    if (this.isRunning) await this.stopDryRun();
    this.#desk.endReview();
  }

  /** The page goes, and nobody waits for an answer. */
  leave() {
    if (this.isRunning) this.#api.leave("DELETE", "dry-run", this.dryRun!.id);
  }

  get #api() {
    return this.#desk.session.api;
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
      const isLate = refusal.status === 412;
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

const endedBy = (dryRun: DryRun, by: string): DryRun => ({ ...dryRun, state: "ended", ended_by: by });
