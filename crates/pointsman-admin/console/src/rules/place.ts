// Which part of a rule somebody is in, by what stands before.

import type { Text } from "@codemirror/state";
import type { Vocabulary } from "./calls";

export type Place =
  | "nothing"
  | "rule"
  | "field"
  | "operator"
  | "action"
  | "target"
  | "pool"
  | "stickiness"
  | "bandwidth"
  | "limit"
  | "list"
  | "label";

/** How far back it is looked: a rule is seldom longer, and then nothing worse is offered than something else. */
const BACK_MAX = 2_000;

const TOKEN = /#.*|"(?:[^"\\\n]|\\.)*"?|@[\w-]*|[A-Za-z_][\w.-]*(?:\["[^"\n]*"\]|\[\*\]|\[\d+\]|[/:@](?=[\w"@*/]))*|\d[\w.:/]*|&&|\|\||[=!<>]=|[^\s]/g;

/** What the parameters of actions are. */
export type Arguments = Map<string, Place[]>;

export function argumentsOf(vocabulary: Vocabulary): Arguments {
  const known = new Map(vocabulary.actions.map(({ name, parameters }) => [name, parameters.map(({ of }) => placeNamed(of))]));
  return known.set("split", ["target"]).set("conflict", ["label"]);
}

function placeNamed(of: string): Place {
  if (of === "label" || of === "labels") return "label";
  return of === "target" || of === "pool" || of === "stickiness" || of === "bandwidth" || of === "limit" ? of : "nothing";
}

const BEHIND_WORD = new Set(["exists"]);

interface Open {
  bracket: string;
  /** What stands before it. */
  word: string;
  commas: number;
}

export function placeOf(doc: Text, pos: number, fields: Set<string>, known: Arguments): Place {
  const start = doc.lineAt(Math.max(0, pos - BACK_MAX)).from;
  const stack: Open[] = [];
  let [last, lastWord, isElse] = ["", "", false];
  for (const [token] of doc.sliceString(start, pos).matchAll(TOKEN)) {
    if (token.startsWith("#")) {
      last = token;
      continue;
    }
    if ("([{".includes(token)) stack.push({ bracket: token, word: lastWord, commas: 0 });
    // What was opened before the part that is looked at closes nothing here.
    if (")]}".includes(token)) stack.pop();
    const open = stack.at(-1);
    if (token === "," && open) open.commas += 1;
    if (token !== ":") isElse = token === "else";
    lastWord = /^[A-Za-z_]/.test(token) ? token : "";
    last = token;
  }
  if (isOpenText(last) || (last.startsWith("#") && isOnLine(doc, pos, last))) return "nothing";
  if (isElse && last === ":") return "action";
  return placeIn(stack, last, fields, known);
}

function placeIn(stack: Open[], last: string, fields: Set<string>, known: Arguments): Place {
  const open = stack.at(-1);
  if (last === "goto") return "label";
  if (!open) return "rule";
  if (open.bracket === "{") return "{;}".includes(last) ? "action" : "nothing";
  if (open.bracket === "[") return ["[", ","].includes(last) ? "list" : "nothing";
  const wanted = known.get(open.word);
  if (wanted) {
    const place = wanted[Math.min(open.commas, wanted.length - 1)] ?? "nothing";
    // The shares of a split stand before their targets.
    if (open.word === "split") return last === ":" ? place : "nothing";
    return "(,".includes(last) ? place : "nothing";
  }
  if (stack.some((outer) => outer.bracket === "{") || open.word === "STICKY_ON") return open.word === "STICKY_ON" ? "field" : "nothing";
  if (last === "in") return "list";
  if (["(", "&&", "||", "!"].includes(last)) return "field";
  const isField = fields.has(last.split(/[.["]/)[0]!) || fields.has(last) || last === ")" || last === "]";
  return isField && !BEHIND_WORD.has(last) ? "operator" : "nothing";
}

const isOpenText = (token: string) => token.startsWith('"') && !/^"(?:[^"\\]|\\.)*"$/.test(token);
const isOnLine = (doc: Text, pos: number, comment: string) => {
  const line = doc.lineAt(pos);
  return line.text.slice(0, pos - line.from).endsWith(comment);
};
