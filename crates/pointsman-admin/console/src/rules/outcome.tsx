// What became of a request that was tried out: the decision, the way to it, and what nearly happened.

import { count } from "../figures";
import type { Asked, Explained, Test, Value } from "./calls";
import type { Desk } from "./desk";
import { rangeOf } from "./editor";
import { bytesOf, split } from "./trial";

/** Steps of the way that are shown at its beginning and at its end. */
const FIRST_MAX = 10;
const LAST_MAX = 30;
/** Bytes of a body that are shown. */
const BODY_SHOWN_MAX = 4_000;

export function Outcome({ desk, explained }: { desk: Desk; explained: Explained }) {
  const { rules, misses, notes, misses_looked_for, misses_unknown } = explained;
  const left = Math.max(0, rules.length - FIRST_MAX - LAST_MAX);
  const steps = left > 0 ? [...rules.slice(0, FIRST_MAX), ...rules.slice(-LAST_MAX)] : rules;
  return (
    <>
      <Decision explained={explained} />
      <Body desk={desk} explained={explained} />
      <h3>The way</h3>
      <ol class="steps">
        {steps.map((asked, index) => (
          <Step key={index} desk={desk} asked={asked} left={index === FIRST_MAX ? left : 0} />
        ))}
      </ol>
      {misses.length > 0 && <h3>Nearest misses</h3>}
      {misses.map(({ rule, changes }) => (
        <dl key={rule} class="miss">
          <dt>{rule}</dt>
          {changes.map(({ field, old, new: now }) => (
            <dd key={field}>
              <code>{field}</code>: {values(old)} → {values(now)}
            </dd>
          ))}
        </dl>
      ))}
      {!misses_looked_for && misses_unknown.length === 0 && (
        <p class="quiet">Nearest misses were not looked for: the body is not there to its end.</p>
      )}
      {misses_unknown.map(({ rules, text }) => (
        <p key={text} class="quiet">
          {rules.length > 0 ? `Not looked through for nearest misses: ${rules.join(", ")}: ` : "Nearest misses were not looked for: "}
          {text}.
        </p>
      ))}
      {notes.map((note) => (
        <p key={note} class="quiet">
          {note}
        </p>
      ))}
    </>
  );
}

function Decision({ explained: { decision } }: { explained: Explained }) {
  const { rule, action, value, effects, refused } = decision;
  return (
    <div class="decision" data-rule={rule}>
      <p>
        {refused ? (
          <>
            <b>refused</b> {refused.status ?? ""} {refused.reason}
          </>
        ) : (
          <>
            <b>{rule ?? "no rule"}</b> decides: <code>{action}</code>
            {value !== undefined && <> → {value}</>}
          </>
        )}
      </p>
      {effects.length > 0 && (
        <ul>
          {effects.map(({ action, value, comes_to_nothing }, index) => (
            <li key={index}>
              with <code>{action}</code>
              {value !== undefined && <> → {value}</>}
              {comes_to_nothing && <span class="quiet"> comes to nothing: {comes_to_nothing}</span>}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

/** How much of the body was read when it was decided, drawn. */
function Body({ desk, explained }: { desk: Desk; explained: Explained }) {
  const { body_bytes = 0, body_bytes_needed: needed, body_end_needed } = explained;
  if (needed === undefined || body_bytes === 0) return null;
  const words = needed === 0 ? "decided by the head, before its body" : `decided at byte ${count(needed)} of ${count(body_bytes)} of its body${body_end_needed ? ", and its end" : ""}`;
  const { trial } = desk;
  const body = trial.base64 === null ? split(trial.text)[1] : "";
  // What is in chunks or coded is not the text that is read.
  const isShown = body.length <= BODY_SHOWN_MAX && bytesOf(body) === body_bytes && needed > 0;
  const [read, rest] = isShown ? cut(body, needed) : ["", ""];
  return (
    <div class="read" data-needed={needed}>
      <p>
        <meter min={0} max={body_bytes} value={needed} aria-label="Read of the body" /> {words}
      </p>
      {isShown && (
        <pre class="lines" tabIndex={0}>
          <mark>{read}</mark>
          {rest}
        </pre>
      )}
    </div>
  );
}

/** A text at so many of its bytes. */
function cut(text: string, bytes: number): [string, string] {
  let at = 0;
  for (let seen = 0; at < text.length && seen < bytes; ) {
    const sign = String.fromCodePoint(text.codePointAt(at)!);
    seen += bytesOf(sign);
    at += sign.length;
  }
  return [text.slice(0, at), text.slice(at)];
}

function Step({ desk, asked, left }: { desk: Desk; asked: Asked; left: number }) {
  const { rule, result, cause, then, span, tests } = asked;
  const go = () => {
    const { from, to } = rangeOf(desk.editor.doc, span);
    desk.editor.goTo(from, to);
  };
  return (
    <>
      {left > 0 && <li class="quiet">{count(left)} more rules</li>}
      <li data-result={result} data-then={then}>
        <p>
          <button type="button" class="plain" onClick={go}>
            {rule}
          </button>{" "}
          <span class="result">{cause ? `${result}: ${cause}` : result}</span> <span class="quiet">{then === "next" ? "" : then}</span>
        </p>
        {tests.length > 0 && (
          <ul>
            {tests.map((test, index) => (
              <li key={index} data-result={test.result}>
                <code>{test.text}</code> <span class="result">{test.result}</span>: {seenIn(test)}
              </li>
            ))}
            {asked.tests_left_out > 0 && <li class="quiet">{count(asked.tests_left_out)} more tests</li>}
          </ul>
        )}
      </li>
    </>
  );
}

function seenIn({ field, values: seen, values_left_out: left, unsettled }: Test): string {
  const more = left > 0 ? [`${count(left)} more`] : [];
  const open = unsettled === undefined ? [] : [`more may follow (${unsettled})`];
  return `${field} is ${[values(seen), ...more, ...open].join(", ")}`;
}

function values(all: Value[]): string {
  if (all.length === 0) return "absent";
  return all.map(value).join(", ");
}

function value(one: Value): string {
  if (one !== null && typeof one === "object") return `unknown (${one.unknown})`;
  return typeof one === "string" ? `“${one}”` : String(one);
}
