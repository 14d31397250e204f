// The rule language, as far as colours, brackets and indentation need it. What the words are the switch says.

import { HighlightStyle, StreamLanguage, type StringStream, syntaxHighlighting } from "@codemirror/language";
import { tags } from "@lezer/highlight";
import type { Vocabulary, Word } from "./calls";

/** Where the reader is in a text. */
interface Reading {
  isInText: boolean;
  /** In the braces of a `${field}` in a text. */
  isInHole: boolean;
  /** Brackets that are open. */
  round: number;
  braces: number;
  /** What the word before asks for: a label behind `goto`. */
  after: "goto" | null;
  /** The action whose brackets these are. */
  call: string | null;
}

const WORD = /^[A-Za-z_][\w-]*/;
const NUMBER = /^(?:\d{1,3}(?:\.\d{1,3}){3}(?:\/\d+)?|[\da-fA-F]{0,4}:[\da-fA-F:.]*(?:\/\d+)?|0x[\da-fA-F]+|[+-]?\d+(?:\.(?!\.)\d+)?(?:e[+-]?\d+)?)/;
/** What follows `xml.` or `json`. */
const PATH = /^(?:[\w@:./*-]|\[(?:\d+|\*|"[^"]*")\]|"[^"]*")+/;
const OPERATOR = /^(?:&&|\|\||[=!<>]=|->|\.\.|[!<>=])/;
/** What stands in the brackets of actions as the parts of a split do, and labels behind `allow`. */
const NAMING = ["split", "conflict"];
/** Parameters that are names. */
const NAMES = new Set(["target", "pool", "bandwidth", "limit", "word", "labels"]);
/** Words that stand in settings, tests and assertions. */
const INNER = ["on_unknown", "validate", "namespace", "request", "expect", "with", "body", "unknown", "nothing", "default", "never", "always", "skip", "stream", "full"];

export function rulesLanguage(vocabulary: Vocabulary) {
  const known = {
    fields: new Set(names(vocabulary.fields)),
    actions: new Set([...names(vocabulary.actions), ...NAMING]),
    naming: new Set([...names(vocabulary.actions.filter(({ parameters }) => parameters.some(({ of }) => NAMES.has(of)))), ...NAMING]),
    keywords: new Set([...names([...vocabulary.keywords, ...vocabulary.operators, ...vocabulary.functions]), ...INNER]),
  };
  const language = StreamLanguage.define<Reading>({
    name: "rules",
    startState: () => ({ isInText: false, isInHole: false, round: 0, braces: 0, after: null, call: null }),
    token: (stream, reading) => {
      // A text ends on its line.
      if (stream.sol()) reading.isInText = reading.isInHole = false;
      if (stream.eatSpace()) return null;
      return reading.isInText ? text(stream, reading) : token(stream, reading, known);
    },
    indent: ({ braces, round }, after, context) => Math.max(0, braces + round - (/^\s*[})]/.test(after) ? 1 : 0)) * context.unit,
    languageData: { commentTokens: { line: "#" }, closeBrackets: { brackets: ["(", "[", "{", '"'] } },
    tokenTable: {
      label: tags.labelName,
      field: tags.propertyName,
      action: tags.function(tags.variableName),
      name: tags.variableName,
      hole: tags.special(tags.string),
    },
  });
  return [language, syntaxHighlighting(colours)];
}

const names = (words: Word[]) => words.map((word) => word.name);

interface Known {
  fields: Set<string>;
  actions: Set<string>;
  /** Those of the actions that have names in their brackets. */
  naming: Set<string>;
  keywords: Set<string>;
}

function token(stream: StringStream, reading: Reading, known: Known): string | null {
  const sign = stream.peek()!;
  if (sign === "#") {
    stream.skipToEnd();
    return "comment";
  }
  if (sign === '"') {
    stream.next();
    reading.isInText = true;
    return "string";
  }
  if ("(){}".includes(sign)) {
    stream.next();
    bracket(sign, reading);
    return "bracket";
  }
  if (stream.match(/^@[\w-]+/)) return "name";
  if (reading.round === 0 && stream.match(/^[A-Za-z_][\w-]*(?=\s*:)/)) {
    return stream.current().toLowerCase() === "else" ? "keyword" : "label";
  }
  if (reading.round > 0 && stream.match(NUMBER)) return "number";
  const word = stream.match(WORD) as RegExpMatchArray | null;
  if (word) return worded(word[0], stream, reading, known);
  if (stream.match(OPERATOR)) return "operator";
  stream.next();
  if (sign === ";") reading.after = reading.call = null;
  return null;
}

function bracket(sign: string, reading: Reading) {
  if (sign === "(") reading.round += 1;
  if (sign === ")") reading.round = Math.max(0, reading.round - 1);
  if (reading.round === 0) reading.call = null;
  if (sign === "{") reading.braces += 1;
  // Where a bracket was forgotten the next block mends it.
  if (sign === "{" || sign === "}") reading.round = 0;
  if (sign === "}") reading.braces = Math.max(0, reading.braces - 1);
}

function worded(word: string, stream: StringStream, reading: Reading, known: Known): string {
  if (reading.after === "goto") {
    reading.after = null;
    return "label";
  }
  if (known.actions.has(word)) {
    if (word === "goto") reading.after = "goto";
    if (known.naming.has(word)) reading.call = word;
    return word === "goto" ? "keyword" : "action";
  }
  if ((word === "xml" || word === "json") && stream.match(PATH)) return "field";
  if (/^(?:NON_?)?STICKY/.test(word)) return "atom";
  // Pools are called by any word.
  if (reading.call !== null && !known.fields.has(word)) return reading.call === "conflict" ? "label" : "name";
  if (["true", "false", "null", "absent"].includes(word)) return "atom";
  const whole = word + ((stream.match(/^(?:\.[\w-]+)+/, false) as RegExpMatchArray | null)?.[0] ?? "");
  if (known.fields.has(whole)) {
    stream.pos += whole.length - word.length;
    return "field";
  }
  if (known.keywords.has(word.toLowerCase()) || known.keywords.has(word)) return "keyword";
  return known.fields.has(word) ? "field" : "name";
}

function text(stream: StringStream, reading: Reading): string {
  if (reading.isInHole) {
    if (!stream.match(/^(?:[^}"]|"[^"]*")+\}?/)) stream.next();
    reading.isInHole = false;
    return "hole";
  }
  if (stream.match("${")) {
    reading.isInHole = true;
    return "hole";
  }
  while (!stream.eol()) {
    if (stream.match("${", false)) return "string";
    const sign = stream.next();
    if (sign === "\\") stream.next();
    if (sign === '"') {
      reading.isInText = false;
      return "string";
    }
  }
  return "string";
}

const colours = HighlightStyle.define([
  { tag: tags.comment, color: "var(--quiet)", fontStyle: "italic" },
  { tag: tags.keyword, color: "var(--accent)", fontWeight: "600" },
  { tag: tags.labelName, fontWeight: "600" },
  { tag: tags.propertyName, color: "var(--line-3)" },
  { tag: tags.function(tags.variableName), color: "var(--accent)" },
  { tag: tags.variableName, color: "var(--line-4)" },
  { tag: tags.string, color: "var(--good)" },
  { tag: tags.special(tags.string), color: "var(--line-3)" },
  { tag: [tags.number, tags.atom], color: "var(--warn)" },
]);
