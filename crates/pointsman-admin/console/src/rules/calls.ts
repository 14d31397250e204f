// What the page Rules asks of the admin API, and what it is answered.

export interface Plan {
  /** When the process began whose generations these are. */
  began: string;
  generation: number;
  listeners: { name: string; protocol: string; rules: { file: string; rules_version: string } | null }[];
}

/** The rules of a listener as they serve. */
export interface Rules {
  listener: string;
  /** Who has the same rules, by the same file. */
  listeners: string[];
  file: string;
  rules_version: string;
  text: string;
  rules: { rule: string; hits: number }[];
}

/** Lines and columns begin at 1; columns count characters, not what JavaScript counts. */
export interface Span {
  line: number;
  column: number;
  end_line: number;
  end_column: number;
}

/** What else is to be known of a request than its bytes: where it comes from, and over what. */
export interface Circumstances {
  srcip?: string | null;
  srcport?: number | null;
  dstip?: string | null;
  dstport?: number | null;
  proxied?: string | null;
  tls?: string | null;
  cipher?: string | null;
  sni?: string | null;
  alpn?: string[];
  resumed?: boolean;
  client_subject?: string | null;
  client_san?: string[];
  client_fingerprint?: string | null;
  trusted_proxy?: string[];
}

/** A request that shows something. */
export interface Witness {
  request: string;
  /** Where its text is not its bytes. */
  request_base64?: string;
  /** For people: what `pointsman explain` would be told. */
  options: string;
  explain: Circumstances;
  /** Which listener it is sent to, where there are several with these rules. */
  listener?: string;
  note?: string;
  /** So many bytes of `more_of` are left out of it. */
  more_bytes?: number;
  more_of?: string;
}

const LABEL_MAX = 110;

/** By which one is told from another: its first line, and what else its head and its options say but the host. */
export function labelOf({ request, options }: Witness): string {
  const [first = "", ...lines] = request.split(/\r?\n\r?\n/)[0]!.split(/\r?\n/);
  const more = lines.filter((line) => !/^(host|content-length|content-type):/i.test(line));
  const others = options.replace(/--listener \S+/, "");
  const label = [first, ...more, others].map((part) => part.trim()).filter((part) => part !== "").join(" · ");
  return label.length > LABEL_MAX ? `${label.slice(0, LABEL_MAX)}…` : label;
}

export type Severity = "error" | "warning" | "note";

export interface Finding {
  code: string;
  severity: Severity;
  rule: string | null;
  others: string[];
  span: Span;
  message: string;
  help: string | null;
  witness?: Witness;
}

export interface Checked {
  /** Of what serves. */
  rules_version: string;
  compiles: boolean;
  /** Whether there was time for all of it. */
  is_settled: boolean;
  /** Which rules were looked at; null where it was all of them. */
  changed: string[] | null;
  findings: Finding[];
}

/** A value as `explain` writes it: one that compares with nothing is null. */
export type Value = string | number | boolean | null | { unknown: string };

export interface Test {
  text: string;
  field: string;
  result: "true" | "false" | "unknown";
  span: Span;
  values: Value[];
  values_left_out: number;
  unsettled?: string;
}

export interface Asked {
  rule: string;
  result: "true" | "false" | "unknown";
  cause?: string;
  then: string;
  span: Span;
  tests: Test[];
  tests_left_out: number;
}

export interface Explained {
  notes: string[];
  rules: Asked[];
  decision: {
    rule?: string;
    action?: string;
    /** With its fields filled in. */
    value?: string;
    effects: { action: string; value?: string; comes_to_nothing?: string }[];
    refused?: { status?: number; reason: string };
  };
  /** Left out where there is no body. */
  body_bytes_needed?: number;
  body_end_needed?: boolean;
  body_bytes?: number;
  /** Where the body begins, in bytes of the request. */
  body_from?: number | null;
  misses: { rule: string; changes: { field: string; old: Value[]; new: Value[] }[] }[];
  misses_looked_for: boolean;
  /** Why rules were not looked through; without rules none was. */
  misses_unknown: { rules: string[]; text: string }[];
}

export interface Way {
  old: { rule: string; action: string; note?: string };
  new: { rule: string; action: string; note?: string };
  witness: Witness;
}

/** What rules would decide otherwise than those that serve. */
export interface Compared {
  verdict: "equal" | "different" | "not settled";
  summary: string;
  difference: {
    compared: { listener?: string; ways_count: number; ways: Way[]; unknown_count: number; unknown: { rules: string[]; reason: { text: string } }[]; notes: string[] }[];
  };
  difference_text: string;
  /** What is odd about them, for people. */
  text: string;
}

/** Somebody's place in the text, where the rule decides otherwise. */
export interface Side {
  rule: string;
  outcome: string;
}

export interface DryRun {
  /** No other one has it, nor has one of another process. */
  id: string;
  state: "running" | "ended";
  ended_by: string | null;
  rules_of: string | null;
  who: string;
  seconds: number;
  elapsed_ms: number;
  decisions: number;
  same: number;
  other_rule: number;
  changed: number;
  untold: number;
  groups: {
    listener: string;
    kind: "changed" | "other_rule";
    old: Side;
    new: Side;
    count: number;
    samples: { client: string; method: string; host: string | null; path: string }[];
  }[];
  ungrouped: number;
}

export interface Published {
  generation: number;
  rules_version: string;
  text: string;
}

export interface Version {
  n: number;
  file: string;
  rules_version: string;
  serves: boolean;
  who: string;
  when: string;
  why: string;
  bytes: number;
}

/** A word of the language: how it is written, and what it means. */
export interface Word {
  name: string;
  spelling: string;
  doc: string;
}

/** What can stand in rules. */
export interface Vocabulary {
  fields: (Word & { key: "required" | "optional" | "none" | "path"; type: string; is_many_valued: boolean })[];
  operators: Word[];
  functions: Word[];
  /** `of` says what a parameter is: a target, a pool, a label. */
  actions: (Word & { parameters: { name: string; of: string }[] })[];
  stickinesses: Word[];
  settings: Word[];
  keywords: Word[];
  pools: { name: string; servers: string[] }[];
  bandwidths: string[];
  limits: string[];
  lists: string[];
}

/** By which the switch knows that several questions are of the same page and listener: a newer one ends an older one of its kind. */
const PAGE = crypto.getRandomValues(new Uint32Array(2)).join("-");
const listeners: string[] = [];

/** By which a dry-run is known, also where nobody is told that it has begun. */
export const newId = () => crypto.getRandomValues(new Uint32Array(4)).join("-");

export function asked(kind: "check" | "explain" | "format", listener: string): string {
  if (!listeners.includes(listener)) listeners.push(listener);
  return `client=${PAGE}-${listeners.indexOf(listener)}-${kind}`;
}

export const ofListener = (listener: string, what: string) => `listeners/${encodeURIComponent(listener)}/${what}`;
