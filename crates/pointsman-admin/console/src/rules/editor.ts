// The editor of one listener's rules: CodeMirror in a shadow root of its own. It lives on where its page is left.
//
// In a document CodeMirror writes its styles into a <style>, which the policy of the listener does not let in; in a shadow
// root it hands them to the browser as sheets, which are no text of the page.

import { acceptCompletion, autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab, isolateHistory } from "@codemirror/commands";
import { bracketMatching, indentUnit } from "@codemirror/language";
import { lintKeymap, previousDiagnostic, setDiagnostics } from "@codemirror/lint";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { Compartment, EditorState, type Extension, Prec, StateEffect, StateField, type Text, type Transaction } from "@codemirror/state";
import {
  Decoration,
  type DecorationSet,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  highlightSpecialChars,
  keymap,
  lineNumbers,
  type ViewUpdate,
} from "@codemirror/view";
import type { Finding, Span, Vocabulary } from "./calls";
import { rulesLanguage } from "./language";
import { looks } from "./looks";
import { completionOf, helpOf, wordLooks } from "./words";
import { endingsOf, endWith, textOf, type Written, writtenIn, writtenOf } from "./written";

/** A finding, and where it is in the text as it is now. */
export interface Placed {
  finding: Finding;
  from: number;
  to: number;
  /** Somebody has written in there since it was found. */
  isTouched: boolean;
}

/** How to get out of it, and what else keys do: text of its own, as ids of the page mean nothing in a shadow root. */
export const KEYS = "Tab indents: press Esc, then Tab, to leave the editor. F8 goes to the next finding, Ctrl-Space completes.";

/** What the editor tells of itself. */
export interface Heard {
  changed: () => void;
  format: () => void;
  publish: () => void;
  tryOut: (finding: Finding) => void;
}

const placeFindings = StateEffect.define<Placed[]>();
const findings = StateField.define<Placed[]>({
  create: () => [],
  update: (placed, { changes, docChanged, effects }) => {
    if (docChanged) placed = placed.map((one) => moved(one, changes));
    for (const effect of effects) if (effect.is(placeFindings)) placed = effect.value;
    return placed;
  },
});

function moved(placed: Placed, changes: Transaction["changes"]): Placed {
  const { from, to, isTouched } = placed;
  const isNow = isTouched || changes.touchesRange(from, to) !== false;
  return { ...placed, from: changes.mapPos(from, 1), to: changes.mapPos(to, -1), isTouched: isNow };
}

const markDecided = StateEffect.define<{ from: number; to: number } | null>();
const decided = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update: (marks, { effects, changes, docChanged, state }) => {
    // What was decided was decided by another text.
    if (docChanged) marks = Decoration.none;
    marks = marks.map(changes);
    for (const effect of effects) if (effect.is(markDecided)) marks = effect.value ? linesOf(state.doc, effect.value) : Decoration.none;
    return marks;
  },
  provide: (field) => EditorView.decorations.from(field),
});

function linesOf(doc: Text, { from, to }: { from: number; to: number }): DecorationSet {
  const marks = [];
  for (let at = doc.lineAt(from); ; at = doc.line(at.number + 1)) {
    marks.push(Decoration.line({ class: "decided" }).range(at.from));
    if (at.to >= to || at.number === doc.lines) return Decoration.set(marks);
  }
}

export class RulesEditor {
  /** To be put into the page. */
  readonly host = document.createElement("div");
  readonly view: EditorView;
  readonly #frozen = new Compartment();
  readonly #words = new Compartment();

  constructor(listener: string, text: string, vocabulary: Vocabulary, heard: Heard) {
    const { doc, ending } = writtenOf(text);
    const root = this.host.attachShadow({ mode: "open" });
    this.host.className = "editor";
    const state = EditorState.create({
      doc,
      extensions: [
        this.#frozen.of(frozen(true)),
        endingsOf(ending),
        this.#words.of(wordsOf(vocabulary)),
        extensions(listener, heard),
      ],
    });
    this.view = new EditorView({ state, parent: root, root });
  }

  get doc(): Text {
    return this.view.state.doc;
  }

  get written(): Written {
    return writtenIn(this.view.state);
  }

  get text(): string {
    return textOf(this.written);
  }

  get findings(): Placed[] {
    return this.view.state.field(findings);
  }

  /** Other words: the configuration has other pools, classes and lists. */
  learn(vocabulary: Vocabulary) {
    this.view.dispatch({ effects: this.#words.reconfigure(wordsOf(vocabulary)) });
  }

  freeze(isFrozen: boolean) {
    if (this.view.state.readOnly !== isFrozen) this.view.dispatch({ effects: this.#frozen.reconfigure(frozen(isFrozen)) });
  }

  /** Another text, of which what is alike at both ends stays, and with it where somebody is. */
  replace(text: string) {
    const { doc, ending } = writtenOf(text);
    const effects = ending === this.written.ending ? [] : endWith(ending);
    // A step of its own, however soon it comes behind another one.
    const annotations = isolateHistory.of("full");
    const [old, now] = [this.doc.toString(), doc.toString()];
    let from = 0;
    while (from < old.length && from < now.length && old.charCodeAt(from) === now.charCodeAt(from)) from += 1;
    let end = 0;
    const most = Math.min(old.length, now.length) - from;
    while (end < most && old.charCodeAt(old.length - 1 - end) === now.charCodeAt(now.length - 1 - end)) end += 1;
    if (from + end === old.length && old.length === now.length) return this.view.dispatch({ effects, annotations });
    const line = this.doc.lineAt(this.view.state.selection.main.head).number;
    const changes = { from, to: old.length - end, insert: doc.slice(from, now.length - end) };
    this.view.dispatch({
      changes,
      effects,
      selection: { anchor: doc.line(Math.min(line, doc.lines)).from },
      annotations,
    });
  }

  /** Shows what was found in a text: `Placed` where it is in the one of now. */
  show(placed: Placed[], tryOut: (finding: Finding) => void) {
    const diagnostics = placed.map(({ finding, from, to }) => ({
      from,
      to,
      severity: finding.severity === "note" ? ("info" as const) : finding.severity,
      message: finding.message,
      source: finding.code,
      renderMessage: () => told(finding),
      actions: finding.witness ? [{ name: "Try its request", apply: () => tryOut(finding) }] : [],
    }));
    const { effects = [] } = setDiagnostics(this.view.state, diagnostics);
    this.view.dispatch({ effects: [placeFindings.of(placed)].concat(effects as StateEffect<Placed[]>[]) });
  }

  /** Marks the rule that has decided, and shows it; the keyboard stays where it is. */
  markDecided(span: Span | null, doc: Text = this.doc) {
    if (!span || doc !== this.doc) return this.view.dispatch({ effects: markDecided.of(null) });
    const range = rangeOf(doc, span);
    this.view.dispatch({ effects: [markDecided.of(range), EditorView.scrollIntoView(range.from, { y: "center" })] });
  }

  goTo(from: number, to: number) {
    this.view.dispatch({ selection: { anchor: from, head: to }, effects: EditorView.scrollIntoView(from, { y: "center" }) });
    this.view.focus();
  }
}

function frozen(isFrozen: boolean): Extension {
  const locked = [EditorState.readOnly.of(true), EditorView.contentAttributes.of({ "aria-readonly": "true" })];
  return isFrozen ? locked : keymap.of([indentWithTab]);
}

const wordsOf = (vocabulary: Vocabulary): Extension => [
  autocompletion({ override: [completionOf(vocabulary)], icons: false }),
  rulesLanguage(vocabulary),
  helpOf(vocabulary),
];

function extensions(listener: string, heard: Heard): Extension {
  const own = [
    { key: "Shift-Alt-f", run: () => (heard.format(), true) },
    { key: "Mod-s", run: () => (heard.publish(), true) },
    { key: "Shift-F8", run: previousDiagnostic },
    { key: "Tab", run: acceptCompletion },
  ];
  return [
    Prec.high(keymap.of(own)),
    lineNumbers(),
    highlightActiveLine(),
    highlightActiveLineGutter(),
    highlightSpecialChars(),
    highlightSelectionMatches(),
    history(),
    search({ top: true }),
    indentUnit.of("    "),
    bracketMatching(),
    closeBrackets(),
    findings,
    decided,
    keymap.of([...closeBracketsKeymap, ...completionKeymap, ...defaultKeymap, ...searchKeymap, ...historyKeymap, ...lintKeymap]),
    EditorView.contentAttributes.of({ "aria-label": `Rules of ${listener}`, "aria-description": KEYS, spellcheck: "false", tabindex: "0" }),
    EditorView.updateListener.of((update: ViewUpdate) => {
      if (update.docChanged || writtenIn(update.startState).ending !== writtenIn(update.state).ending) heard.changed();
    }),
    looks,
    wordLooks,
  ];
}

function told(finding: Finding): HTMLElement {
  const [box, message, help] = [document.createElement("div"), document.createElement("p"), document.createElement("p")];
  box.className = "told";
  message.textContent = `${finding.code}: ${finding.message}`;
  help.textContent = finding.help ?? "";
  box.append(message, help);
  return box;
}

/** Where a span of the switch is in a text. */
export function rangeOf(doc: Text, span: Span): { from: number; to: number } {
  const from = offsetOf(doc, span.line, span.column);
  const to = Math.max(from, offsetOf(doc, span.end_line, span.end_column));
  return { from, to };
}

function offsetOf(doc: Text, line: number, column: number): number {
  const there = doc.line(Math.min(Math.max(1, line), doc.lines));
  let at = 0;
  // Signs beyond the basic plane are one character to the switch, and two here.
  for (let seen = 1; seen < column && at < there.length; seen += 1) at += there.text.codePointAt(at)! > 0xffff ? 2 : 1;
  return there.from + at;
}
