// The admin API, as far as the console asks it. Paths are those of docs/reference/admin-api.md.

/** What was counted since the start. `took` has a count for each bound of the answer, and one for all that took longer. */
export interface Counted {
  responses: Record<"none" | "1xx" | "2xx" | "3xx" | "4xx" | "5xx", number>;
  took: number[];
  took_sum_us: number;
}

export interface RuleTraffic extends Counted {
  rule: string;
  hits: number;
  /** Where it may send to; null of what is no rule of the text. */
  pools: string[] | null;
}

/** Handshakes since the start; versions and groups are of those that succeeded. */
export interface Handshakes {
  full: number;
  resumed: number;
  versions: Record<string, number>;
  groups: Record<string, number>;
  failures: Record<string, number>;
}

export interface ListenerTraffic extends Counted {
  name: string;
  protocol: string;
  pool: string | null;
  connections_open: number;
  refusals: number;
  /** Null where it does not end TLS. */
  tls: Handshakes | null;
  rules: RuleTraffic[];
  other_rules: Counted | null;
}

export type State = "up" | "starting" | "draining" | "down" | "disabled" | "ejected";

export interface ServerTraffic extends Counted {
  name: string;
  state: State;
  weight: number;
  in_flight_requests: number;
  failures: number;
}

export interface Traffic {
  generation: number;
  at_us: number;
  took_up_to_us: number[];
  listeners: ListenerTraffic[];
  pools: { name: string; servers: ServerTraffic[] }[];
}

/** A request that stands out. Times are microseconds from its first byte on; null where nobody has noted them. */
export interface Outlier {
  when: string;
  listener: string;
  rule: string | null;
  pool: string | null;
  server: string | null;
  status: number | null;
  error: string | null;
  total_us: number;
  decided_us: number | null;
  queued_us: number | null;
  connected_us: number | null;
  first_byte_us: number | null;
  tries: number;
  request_bytes: number;
  response_bytes: number;
  client: string | null;
  method: string | null;
  host: string | null;
  path: string | null;
  query: string | null;
}

export interface Outliers {
  /** Whether who sent what is told to whoever asks. */
  names_requests: boolean;
  slowest_s: number;
  slowest: Outlier[];
  failed_s: number;
  failed: Outlier[];
}

export type Role = "view" | "change";

export interface Access {
  who: string | null;
  may: Role;
  takes: ("token" | "certificate")[];
}

export interface Server {
  name: string;
  address: string;
  service: string | null;
  weight: number;
  state: State;
  since: string;
  why: string | null;
  admission: "enabled" | "draining" | "disabled";
  health: string;
  in_flight_requests: number;
  idle_connections: number;
  requests: number;
  failures: number;
  ejections: number;
}

/** A server, with what has become of it lately, the newest first. */
export interface ServerInFull extends Server {
  changes: { when: string; state: State; why: string }[];
  /** Before the oldest of those. */
  before: { since: string; state: State } | null;
}

export interface StickyClients {
  clients: { client: string; server: string; is_exception: boolean; idle_s: number }[];
  /** Where to go on; null behind the last. */
  next: number | null;
}

/** What a class of bandwidth had in one direction since the start. */
export interface OneWay {
  bytes: number;
  waits: number;
  waiting: number;
}

export interface BandwidthClass {
  name: string;
  parent: string | null;
  direction: "both" | "to-client" | "to-server";
  guaranteed_bytes_per_second: number;
  ceiling_bytes_per_second: number | null;
  burst_bytes: number;
  to_client: OneWay | null;
  to_server: OneWay | null;
}

export interface Bandwidth {
  at_us: number;
  classes: BandwidthClass[];
}

export interface Certificate {
  id: string;
  listeners: string[];
  pools: string[];
  admin: boolean;
  names: string[];
  subject: string;
  issuer: string;
  not_before: string;
  not_after: string;
  days_left: number | null;
  key: string;
  fingerprint: string;
  chain: number;
  file: string;
  key_file: string;
  concerns: string[];
}

export interface Pool {
  name: string;
  balance: string;
  servers: Server[];
  leaving: { name: string; in_flight_requests: number }[];
}

export interface Pools {
  configuration_version: string;
  pools: Pool[];
}

/** What a change of the configuration is answered with. */
export interface Changed {
  /** What is odd about the configuration, for people. */
  text: string;
  waits_for_restart: string[];
}

/** What the API refuses (RFC 9457), or that it does not answer (status 0). */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    detail: string,
    /** What is wrong with a configuration, for people, in lines with carets. */
    readonly text = "",
    /** Which rules serve instead of those that a change was for. */
    readonly rulesVersion: string | null = null,
    /** Whether it may be done all the same: its answer did not come. */
    readonly mayBeDone = false,
  ) {
    super(detail);
  }
}

/** What there is to say of a change that was not answered as it should. */
export function whyNot(error: Error): string {
  const isUnknown = error instanceof Refusal && error.mayBeDone;
  return isUnknown ? `it is not known whether it was done: ${error.message}` : `not done: ${error.message}`;
}

/** How long an answer may take. Changes of a large configuration are read and checked first, and rules are compared. */
export const PATIENCE_MS = { GET: 5_000, change: 120_000 };

const named = (versions: string[]) => versions.map((version) => `"${version}"`).join(", ");

export type Method = "PUT" | "POST" | "PATCH" | "DELETE";

export class Api {
  /** Held here alone: what the browser stores could be read later, from its disk or by another page of this host. */
  readonly #token: string | null;

  constructor(token: string | null) {
    this.#token = token;
  }

  get hasToken(): boolean {
    return this.#token !== null;
  }

  get<T>(path: string, patienceMs = PATIENCE_MS.GET, over?: AbortSignal): Promise<T> {
    return this.#ask("GET", path, patienceMs, undefined, undefined, over);
  }

  /** What needs a body and changes nothing. Who gives it up by `over` is answered as if the switch were silent. */
  question<T>(method: "POST" | "PUT", path: string, body: unknown, version?: string, over?: AbortSignal): Promise<T> {
    return this.#ask(method, path, PATIENCE_MS.change, body, version, over);
  }

  /**
   * A change, under the version of what was looked at where the API wants one. A text is sent as it is, anything else as
   * JSON.
   */
  async change<T>(method: Method, path: string, body?: unknown, version?: string): Promise<T> {
    try {
      return await this.#ask<T>(method, path, PATIENCE_MS.change, body, version);
    } catch (error) {
      const { status, message } = error as Refusal;
      throw status === 0 ? new Refusal(0, message, "", null, true) : error;
    }
  }

  /** A change of any of those versions that is sent also where the page goes. The status of its answer, 0 where none came. */
  async leave(method: Method, path: string, versions: string[]): Promise<number> {
    const headers = { ...this.#credentials, "If-Match": named(versions) };
    const sent = fetch(`../api/v1/${path}`, { method, headers, keepalive: true, credentials: "same-origin" });
    return sent.then(({ status }) => status, () => 0);
  }

  get #credentials(): Record<string, string> {
    return this.#token === null ? {} : { Authorization: `Bearer ${this.#token}` };
  }

  async #ask<T>(method: string, path: string, patienceMs: number, body?: unknown, version?: string, over?: AbortSignal): Promise<T> {
    const headers = this.#credentials;
    if (body !== undefined) headers["Content-Type"] = typeof body === "string" ? "text/plain" : "application/json";
    if (version !== undefined) headers["If-Match"] = named([version]);
    const request: RequestInit = { method, headers, cache: "no-store", credentials: "same-origin" };
    if (body !== undefined) request.body = typeof body === "string" ? body : JSON.stringify(body);
    const patience = AbortSignal.timeout(patienceMs);
    request.signal = over ? AbortSignal.any([over, patience]) : patience;
    let answer: Response;
    try {
      answer = await fetch(`../api/v1/${path}`, request);
    } catch {
      throw new Refusal(0, "the switch does not answer");
    }
    const said = await answer.json().catch(() => null);
    if (!answer.ok) {
      const detail = said?.detail ?? `the switch answered ${answer.status}`;
      throw new Refusal(answer.status, detail, said?.text ?? "", said?.rules_version ?? null);
    }
    if (said === null) throw new Refusal(answer.status, "what answers there is not the switch");
    return said as T;
  }
}
