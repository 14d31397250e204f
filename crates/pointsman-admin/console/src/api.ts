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

export interface ListenerTraffic extends Counted {
  name: string;
  protocol: string;
  pool: string | null;
  connections_open: number;
  refusals: number;
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
  ) {
    super(detail);
  }
}

/** How long an answer may take. Changes of a large configuration are read and checked first. */
const PATIENCE_MS = { GET: 5_000, change: 120_000 };

export class Api {
  /** Held here alone: what the browser stores could be read later, from its disk or by another page of this host. */
  readonly #token: string | null;

  constructor(token: string | null) {
    this.#token = token;
  }

  get hasToken(): boolean {
    return this.#token !== null;
  }

  get<T>(path: string): Promise<T> {
    return this.#ask("GET", path);
  }

  /** A change, under the version of what was looked at where the API wants one. */
  change<T>(method: "PUT" | "POST" | "PATCH" | "DELETE", path: string, body?: unknown, version?: string): Promise<T> {
    return this.#ask(method, path, body, version);
  }

  async #ask<T>(method: string, path: string, body?: unknown, version?: string): Promise<T> {
    const headers: Record<string, string> = {};
    if (this.#token !== null) headers["Authorization"] = `Bearer ${this.#token}`;
    if (body !== undefined) headers["Content-Type"] = "application/json";
    if (version !== undefined) headers["If-Match"] = `"${version}"`;
    const request: RequestInit = { method, headers, cache: "no-store", credentials: "same-origin" };
    if (body !== undefined) request.body = JSON.stringify(body);
    request.signal = AbortSignal.timeout(method === "GET" ? PATIENCE_MS.GET : PATIENCE_MS.change);
    let answer: Response;
    try {
      answer = await fetch(`../api/v1/${path}`, request);
    } catch {
      throw new Refusal(0, "the switch does not answer");
    }
    const said = await answer.json().catch(() => null);
    if (!answer.ok) {
      throw new Refusal(answer.status, said?.detail ?? `the switch answered ${answer.status}`, said?.text ?? "");
    }
    if (said === null) throw new Refusal(answer.status, "what answers there is not the switch");
    return said as T;
  }
}
