// Publishing, in steps: what would be otherwise, what would have been with the requests that come, and then the change.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { useEvery } from "../every";
import { count } from "../figures";
import { Lines } from "../notice";
import type { DryRun } from "./calls";
import type { Desk } from "./desk";
import { Difference } from "./difference";
import type { Review } from "./review";

const LOOK_EVERY_MS = 500;
const GROUPS_MAX = 50;
const WHY_MAX = 200;

export function PublishSection({ desk, review }: { desk: Desk; review: Review }) {
  const title = useRef<HTMLHeadingElement>(null);
  useEffect(() => title.current?.focus(), [review]);
  const { compared, trouble, isBusy } = review;
  return (
    <section class="publish" aria-labelledby="publish-title">
      <div class="head">
        <h2 id="publish-title" ref={title} tabIndex={-1}>
          Publish the rules of {desk.sharing.join(", ")}
        </h2>
        <button type="button" disabled={isBusy} onClick={() => review.end()}>
          Back to the editor
        </button>
      </div>
      <div class="said" role="alert">
        {trouble?.text}
        {trouble?.lines && <Lines text={trouble.lines} />}
      </div>
      <h3>What they decide otherwise</h3>
      {compared ? <Difference desk={desk} compared={compared} names={["Serves now", "Would serve"]} /> : <p role="status">{isBusy ? "comparing…" : "not compared"}</p>}
      {compared && compared.text.trim() !== "" && <Lines text={compared.text.trimEnd()} />}
      {compared && <DryRunStep review={review} />}
      {compared && <PublishForm review={review} isLate={desk.newer !== null} />}
    </section>
  );
}

function DryRunStep({ review }: { review: Review }) {
  const [seconds, setSeconds] = useState("60");
  const { dryRun, other, isRunning, isBusy } = review;
  const look = useCallback(() => review.look(), [review]);
  useEvery(LOOK_EVERY_MS, review.isLooking ? look : null);
  const start = (event: Event) => {
    event.preventDefault();
    void review.startDryRun(Number(seconds));
  };
  return (
    <>
      <h3>Beside those that serve</h3>
      <form class="head" onSubmit={start}>
        <label for="dry-seconds">Ask them about each request that comes, for</label>
        <input id="dry-seconds" type="number" min={1} max={86400} required value={seconds} onInput={(event) => setSeconds(event.currentTarget.value)} />
        <span>seconds</span>
        {isRunning ? (
          <button type="button" disabled={isBusy} onClick={() => review.stopDryRun()}>
            Stop
          </button>
        ) : (
          <button type="submit" disabled={isBusy}>
            {dryRun ? "Dry-run again" : "Dry-run"}
          </button>
        )}
      </form>
      {other && (
        <p class="head">
          That of {other.who} goes on{other.rules_of !== null && `, of rules for ${other.rules_of}`}, {Math.ceil(other.seconds - other.elapsed_ms / 1000)} s more at most.
          <button type="button" disabled={isBusy} onClick={() => review.endOther()}>
            End it
          </button>
        </p>
      )}
      {dryRun && <DryRunShown dryRun={dryRun} />}
    </>
  );
}

function DryRunShown({ dryRun }: { dryRun: DryRun }) {
  const { state, ended_by, seconds, elapsed_ms, decisions, same, other_rule, changed, untold, groups, ungrouped } = dryRun;
  const left = Math.max(0, Math.ceil(seconds - elapsed_ms / 1000));
  const figures: [string, number, string | undefined][] = [
    ["Requests", decisions, undefined],
    ["Decided alike", same, undefined],
    ["By another rule", other_rule, undefined],
    ["Otherwise", changed, changed > 0 ? "warn" : undefined],
    ["Not to be told", untold, untold > 0 ? "warn" : undefined],
  ];
  const hasListeners = new Set(groups.map(({ listener }) => listener)).size > 1;
  return (
    <div class="dry-run" data-state={state}>
      <p class="head">
        <progress aria-label="Of the dry-run" max={seconds} value={Math.min(seconds, elapsed_ms / 1000)} />
        <span role="status">{state === "running" ? `${left} s to go` : `ended: ${endOf(ended_by)}`}</span>
      </p>
      <dl class="totals">
        {figures.map(([name, value, mood]) => (
          <div key={name} data-mood={mood}>
            <dt>{name}</dt>
            <dd>{count(value)}</dd>
          </div>
        ))}
      </dl>
      {groups.length > 0 && (
        <div class="scroll" role="region" aria-label="Kinds of what differs" tabIndex={0}>
          <table class="ways">
            <thead>
              <tr>
                <th scope="col" class="n">
                  Requests
                </th>
                {hasListeners && <th scope="col">Listener</th>}
                <th scope="col">Serves now</th>
                <th scope="col">Would serve</th>
                <th scope="col">For instance</th>
              </tr>
            </thead>
            <tbody>
              {groups.slice(0, GROUPS_MAX).map(({ listener, kind, old, new: now, count: many, samples }, index) => (
                <tr key={index} data-kind={kind}>
                  <td class="n">{count(many)}</td>
                  {hasListeners && <td>{listener}</td>}
                  <td>
                    <b>{old.rule}</b> <code>{old.outcome}</code>
                  </td>
                  <td>
                    <b>{now.rule}</b> <code>{now.outcome}</code>
                  </td>
                  <td>{samples[0] && `${samples[0].method} ${samples[0].path} of ${samples[0].client}`}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {ungrouped > 0 && <p class="quiet">{count(ungrouped)} are of further kinds.</p>}
    </div>
  );
}

function endOf(by: string | null): string {
  const words: Record<string, string> = {
    time: "its time is over",
    decisions: "enough requests were compared",
    told: "it was stopped",
    published: "other rules serve",
    drained: "the switch drains",
    "another one": "another one has begun",
    gone: "the switch began anew, and knows nothing of it",
  };
  return words[by ?? ""] ?? by ?? "";
}

function PublishForm({ review, isLate }: { review: Review; isLate: boolean }) {
  const [why, setWhy] = useState("");
  const publish = (event: Event) => {
    event.preventDefault();
    void review.publish(why.trim());
  };
  return (
    <>
      <h3>Let them serve</h3>
      <form class="head" onSubmit={publish}>
        <label for="why">Why (may be left out)</label>
        <input id="why" class="why" maxLength={WHY_MAX} value={why} placeholder="ticket 417" onInput={(event) => setWhy(event.currentTarget.value)} />
        <button type="submit" class="main" disabled={review.isBusy || isLate}>
          Publish
        </button>
      </form>
    </>
  );
}
