// What can stand where somebody types, and what stands under the pointer: out of the switch's vocabulary and the text.

import type { Completion, CompletionContext, CompletionResult } from "@codemirror/autocomplete";
import type { EditorState, Text } from "@codemirror/state";
import { EditorView, hoverTooltip } from "@codemirror/view";
import type { Vocabulary } from "./calls";
import { argumentsOf, type Place, placeOf } from "./place";

/** Completions are asked for by this: behind these signs too, not only in words. */
const ASKED_BEHIND = /(?:[\w@.-]+|[({,;:]\s*|\b(?:goto|in|if)\s+|&&\s*|\|\|\s*|!\s*)$/;
/** How a word of the language begins and goes on; `header["` and `xml.a/b` are looked at as `header` and `xml.`. */
const WORD = /[@A-Za-z_][\w.-]*$/;

/** What is offered where. */
export function completionOf(vocabulary: Vocabulary) {
  const offered = offers(vocabulary);
  const fields = new Set(vocabulary.fields.map((field) => field.name.replace(/\.$/, "")));
  const known = argumentsOf(vocabulary);
  return (context: CompletionContext): CompletionResult | null => {
    const { state, pos, explicit } = context;
    const line = state.doc.lineAt(pos);
    const before = line.text.slice(0, pos - line.from);
    if (!explicit && !ASKED_BEHIND.test(before) && !/[\w\])"]\s$/.test(before)) return null;
    const from = pos - (WORD.exec(before)?.[0].length ?? 0);
    const place = placeOf(state.doc, from, fields, known);
    const options = place === "label" ? labels(state.doc).map(labelOffer) : offered[place];
    if (options.length === 0) return null;
    // Behind a blank only what must follow is offered unasked: an operator behind a field, a label behind `goto`.
    if (!explicit && from === pos && place === "rule") return null;
    return { from, options, validFor: /^[@\w.-]*$/ };
  };
}

/** What is typed for a word that goes on with a sign. */
const KEYWORDS: Record<string, string> = { if: "if (", else: "else: " };

type Offers = Record<Exclude<Place, "label">, Completion[]>;

function offers(vocabulary: Vocabulary): Offers {
  const fields = vocabulary.fields.map(
    ({ name, spelling, key, type, is_many_valued, doc }): Completion => ({
      label: name,
      displayLabel: spelling,
      detail: is_many_valued ? `${type}, any number` : type,
      info: doc,
      type: "field",
      apply: key === "required" ? `${name}["` : name,
    }),
  );
  const quantifiers = vocabulary.functions.map(
    ({ name, spelling, doc }): Completion => ({ label: name, displayLabel: spelling, info: doc, type: "function", apply: `${name}(` }),
  );
  const operators = vocabulary.operators.map(
    ({ name, spelling, doc }): Completion => ({ label: name, detail: spelling, info: doc, type: "operator", apply: `${name} ` }),
  );
  const actions = vocabulary.actions.map(
    ({ name, spelling, doc }): Completion => ({
      label: name,
      detail: spelling,
      info: doc,
      type: "action",
      apply: spelling.startsWith(`${name}(`) ? `${name}(` : `${name} `,
    }),
  );
  const settings = vocabulary.settings.map(({ spelling, doc }): Completion => ({ label: spelling, info: doc, type: "setting" }));
  const keywords = vocabulary.keywords.map(
    ({ name, spelling, doc }): Completion => ({ label: name, detail: spelling, info: doc, type: "keyword", apply: KEYWORDS[name] ?? `${name} ` }),
  );
  const named = (names: string[], type: string): Completion[] => names.map((label) => ({ label: quoted(label), type }));
  const servers = vocabulary.pools.flatMap((pool) =>
    pool.servers.map((server): Completion => ({ label: `${quoted(pool.name)}.${server}`, detail: "server", type: "server", boost: -1 })),
  );
  const pools = vocabulary.pools.map(
    ({ name, servers }): Completion => ({ label: quoted(name), detail: `pool of ${servers.length}`, info: servers.join(", "), type: "pool" }),
  );
  return {
    nothing: [],
    field: [...fields, ...quantifiers],
    operator: [...operators, { label: "&&", type: "operator" }, { label: "||", type: "operator" }],
    action: actions,
    target: [...pools, ...servers],
    pool: pools,
    stickiness: vocabulary.stickinesses.map(({ name, doc }) => ({
      label: name,
      info: doc,
      type: "constant",
      apply: name === "STICKY_ON" ? "STICKY_ON(" : name,
    })),
    bandwidth: named(vocabulary.bandwidths, "class"),
    limit: named(vocabulary.limits, "class"),
    list: vocabulary.lists.map((name) => ({ label: `@${name}`, type: "list" })),
    rule: [...keywords, ...settings],
  };
}

/** A name that is not a word stands in quotes. */
const quoted = (name: string) => (/^[A-Za-z_][\w-]*$/.test(name) ? name : `"${name}"`);

const LABEL = /^\s*([A-Za-z_][\w-]*)\s*:/;
const labelsOf = new WeakMap<Text, Map<string, number>>();

/** Where each label of a text stands: looked for once in each text. */
function labelLines(doc: Text): Map<string, number> {
  let known = labelsOf.get(doc);
  if (!known) {
    known = new Map();
    let number = 0;
    for (const line of doc.iterLines()) {
      number += 1;
      const label = LABEL.exec(line)?.[1];
      if (label !== undefined && label !== "else" && !known.has(label)) known.set(label, number);
    }
    labelsOf.set(doc, known);
  }
  return known;
}

const labels = (doc: Text) => [...labelLines(doc).keys()];
const labelOffer = (label: string): Completion => ({ label, type: "label" });

/** Says what is under the pointer. */
export function helpOf(vocabulary: Vocabulary) {
  const known = new Map<string, [string, string]>();
  for (const { name, spelling, type, is_many_valued, doc } of vocabulary.fields) {
    known.set(name.replace(/\.$/, ""), [spelling, `${type}, ${is_many_valued ? "any number of values" : "at most one value"}. ${doc}`]);
  }
  const { operators, functions, actions, stickinesses, settings, keywords } = vocabulary;
  for (const { name, spelling, doc } of [...operators, ...functions, ...actions, ...stickinesses, ...settings, ...keywords]) {
    const [spellings, docs] = known.get(name) ?? ["", ""];
    // Of those that are written in several ways each is told.
    known.set(name, spellings === "" ? [spelling, doc] : [`${spellings}  ${spelling}`, `${docs}\n${doc}`]);
  }
  for (const { name, servers } of vocabulary.pools) {
    if (!known.has(name)) known.set(name, [`pool ${name}`, `Its servers: ${servers.join(", ") || "none"}.`]);
  }
  return hoverTooltip((view, pos) => {
    const found = wordAt(view.state, pos, known);
    if (!found) return null;
    const { from, to, help } = found;
    return { pos: from, end: to, above: true, create: () => ({ dom: helpShown(help) }) };
  });
}

function wordAt(state: EditorState, pos: number, known: Map<string, [string, string]>) {
  const line = state.doc.lineAt(pos);
  const isWord = (at: number) => /[\w.@-]/.test(line.text[at] ?? "");
  let [from, to] = [pos - line.from, pos - line.from];
  while (from > 0 && isWord(from - 1)) from -= 1;
  while (isWord(to)) to += 1;
  const word = line.text.slice(from, to);
  if (word === "") return null;
  const there = { from: line.from + from, to: line.from + to };
  // The longest beginning that is known: `json.order.items` is `json`.
  const parts = word.split(".");
  for (let count = parts.length; count > 0; count -= 1) {
    const help = known.get(parts.slice(0, count).join("."));
    if (help) return { ...there, help };
  }
  const at = labelLines(state.doc).get(word);
  if (at === undefined) return null;
  const help: [string, string] = [`rule ${word}`, state.doc.line(at).text.trim().slice(0, 400)];
  return { ...there, help };
}

function helpShown([title, text]: [string, string]): HTMLElement {
  const [box, first, rest] = [document.createElement("div"), document.createElement("code"), document.createElement("p")];
  box.className = "help";
  first.textContent = title;
  rest.textContent = text;
  box.append(first, rest);
  return box;
}

/** What completions and help look like; the rest of the editor's looks stand with it. */
export const wordLooks = EditorView.theme({
  ".help": { maxWidth: "32rem", padding: "6px 10px", font: "13px/1.4 system-ui, sans-serif" },
  ".help p": { margin: "4px 0 0", whiteSpace: "pre-wrap" },
  ".help code": { font: "12px var(--mono)", fontWeight: "600" },
});
