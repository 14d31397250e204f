// A request that is tried out: as a text, in its parts, and what the rules make of it.

import type { Refusal } from "../api";
import { asked, type Circumstances, type Explained, ofListener, type Witness } from "./calls";
import type { Desk } from "./desk";

export type Kind = "none" | "json" | "xml" | "form";

export const MEDIA_TYPES: Record<Exclude<Kind, "none">, string> = {
  json: "application/json",
  xml: "application/xml",
  form: "application/x-www-form-urlencoded",
};

export interface Parts {
  method: string;
  target: string;
  /** All but those that the kind of the body asks for. */
  headers: string;
  kind: Kind;
  body: string;
}

const FIRST: Parts = { method: "GET", target: "/", headers: "Host: example.com", kind: "none", body: "" };

export class Trial {
  parts: Parts = FIRST;
  /** As it is on the wire; lines of its head may end in LF alone. */
  text = textOf(FIRST);
  /** Its bytes, where no text has them. */
  base64: string | null = null;
  from: Circumstances = {};
  /** The listener that it comes to, where it is another one with the same rules. */
  listener: string | null = null;
  /** What of a witness is not shown. */
  note: string | null = null;
  isBuilt = true;
  isBusy = false;
  explained: Explained | null = null;
  /** Whether it was asked of what serves, and not of what stands in the editor. */
  isOfServing = false;
  trouble: { text: string; lines: string } | null = null;
  readonly #desk: Desk;
  #over: AbortController | null = null;

  constructor(desk: Desk) {
    this.#desk = desk;
  }

  build(parts: Partial<Parts>) {
    this.parts = { ...this.parts, ...parts };
    this.write(textOf(this.parts));
  }

  write(text: string) {
    [this.text, this.base64, this.note, this.listener] = [text, null, null, null];
    this.forget();
    this.#desk.tell();
  }

  setFrom(from: Circumstances) {
    this.from = { ...this.from, ...from };
    this.forget();
    this.#desk.tell();
  }

  /** Its text and its parts are two looks at the same. */
  showParts(isBuilt: boolean) {
    if (isBuilt && !this.isBuilt && this.base64 === null) this.parts = partsOf(this.text);
    this.isBuilt = isBuilt;
    this.#desk.tell();
  }

  take({ request, request_base64, explain, listener, note, more_bytes }: Witness) {
    [this.text, this.base64, this.from, this.isBuilt] = [request, request_base64 ?? null, explain, false];
    this.listener = listener === undefined || listener === this.#desk.rules.listener ? null : listener;
    const notes = note === undefined ? [] : [note];
    if (this.listener !== null) notes.push(`it comes to the listener ${this.listener}`);
    if (more_bytes) notes.push(`${more_bytes} more bytes of its body are left out here`);
    this.note = notes.length > 0 ? notes.join("; ") : null;
    this.forget();
    this.#desk.tell();
  }

  /** What was explained was another request, or by another text. */
  forget() {
    this.#over?.abort();
    this.#over = null;
    this.isBusy = false;
    if (this.explained) this.#desk.editor.markDecided(null);
    [this.explained, this.trouble] = [null, null];
  }

  async run() {
    const { editor, session, mayChange, isChanged, rules, readsRequests } = this.#desk;
    this.forget();
    const over = (this.#over = new AbortController());
    const { doc } = editor;
    this.isOfServing = !isChanged || !mayChange;
    this.isBusy = true;
    this.#desk.tell();
    const request = this.base64 === null ? { request: onTheWire(this.text) } : { request_base64: this.base64 };
    const body = { ...(readsRequests ? request : {}), ...(this.isOfServing ? {} : { rules: editor.text }), ...this.from };
    const path = ofListener(this.listener ?? rules.listener, `${this.isOfServing ? "explain" : "rules/explain"}?${asked("explain", rules.listener)}`);
    try {
      const explained = await session.api.question<Explained>("POST", path, body, undefined, over.signal);
      if (over !== this.#over) return;
      this.explained = explained;
      // The last that was asked, unless it went on to the default pool from there.
      const last = explained.rules.at(-1);
      if (last && (last.then === "decides" || last.result === "unknown") && !(this.isOfServing && isChanged)) editor.markDecided(last.span, doc);
    } catch (error) {
      if (over !== this.#over) return;
      const { message, text } = error as Refusal;
      this.trouble = { text: message, lines: text.trimEnd() };
      session.refused(error as Error);
    }
    this.isBusy = false;
    this.#desk.tell();
  }

  /** How long the body is, where the head says something else; null where it is right or says nothing. */
  get lengthOfBody(): number | null {
    if (this.base64 !== null || this.note !== null) return null;
    const [head, body] = split(this.text);
    const said = /^content-length:\s*(\d+)\s*$/im.exec(head)?.[1];
    const length = bytesOf(body);
    return said === undefined || Number(said) === length ? null : length;
  }

  correctLength() {
    this.write(this.text.replace(/^(content-length:\s*)\d+/im, `$1${this.lengthOfBody ?? 0}`));
  }
}

export const bytesOf = (text: string) => new TextEncoder().encode(text).length;

/** The head with the empty line, and what follows. */
export function split(text: string): [string, string] {
  const end = /\r?\n\r?\n/.exec(text);
  return end ? [text.slice(0, end.index), text.slice(end.index + end[0].length)] : [text.trimEnd(), ""];
}

function onTheWire(text: string): string {
  const [head, body] = split(text);
  return `${head.replace(/\r?\n/g, "\r\n")}\r\n\r\n${body}`;
}

function textOf({ method, target, headers, kind, body }: Parts): string {
  const lines = [`${method} ${target} HTTP/1.1`, ...headers.split("\n").filter((line) => line.trim() !== "")];
  if (kind === "none") return `${lines.join("\n")}\n\n`;
  return `${lines.join("\n")}\nContent-Type: ${MEDIA_TYPES[kind]}\nContent-Length: ${bytesOf(body)}\n\n${body}`;
}

function partsOf(text: string): Parts {
  const [head, body] = split(text);
  const [line = "", ...headers] = head.split(/\r?\n/);
  const [method = "GET", target = "/"] = line.split(" ");
  const media = headers.find((header) => /^content-type:/i.test(header))?.toLowerCase() ?? "";
  const kind: Kind = body === "" ? "none" : media.includes("xml") ? "xml" : media.includes("form") ? "form" : "json";
  const isTaken = (header: string) => /^content-length:/i.test(header) || (kind !== "none" && /^content-type:/i.test(header));
  return { method, target, headers: headers.filter((header) => !isTaken(header)).join("\n"), kind, body };
}
