// Handshakes of TLS by listener: how many, of which versions and groups, and how many went on with a session.

import type { Handshakes } from "../api";
import { rate, share } from "../figures";
import { Parts } from "../parts";
import { type Look, NOW_LOOKS, sum } from "../traffic";
import { Chart, COLOURS } from "./charts";

/** Shares are of all handshakes that are shown: of a second alone they would jump. */
export function TlsPart({ looks }: { looks: Look[] }) {
  const last = looks.at(-1);
  const names = (last?.traffic.listeners ?? []).filter((listener) => listener.tls !== null).map((listener) => listener.name);
  if (names.length === 0) return null;
  const lines = names.slice(0, COLOURS).map((name) => ({ key: name, name }));
  const chart = { looks, lines };
  const perSecond = (index: number, name: string) => handshakesAt(looks, index, name, 1)?.perSecond ?? null;
  const resumed = (index: number, name: string) => {
    const share = handshakesAt(looks, index, name, SHARE_LOOKS)?.resumed ?? null;
    return share === null ? null : share * 100;
  };
  return (
    <section aria-labelledby="tls">
      <h2 id="tls">TLS</h2>
      <div class="charts">
        <Chart title="Handshakes / s" value={perSecond} shown={rate} {...chart} />
        <Chart title="Sessions that go on, % of handshakes" value={resumed} shown={(value) => `${Math.round(value)} %`} most={105} {...chart} />
      </div>
      <div class="scroll" role="region" aria-label="TLS in figures" tabIndex={0}>
        <table class="tls">
          <thead>
            <tr>
              <th scope="col">Listener</th>
              <th scope="col" class="n">Handshakes / s</th>
              <th scope="col" class="n">Failed / s</th>
              <th scope="col" class="n">Sessions that go on</th>
              <th scope="col">Versions</th>
              <th scope="col" class="parts-of">Key exchange</th>
            </tr>
          </thead>
          <tbody>
            {names.map((name, line) => (
              <Row key={name} {...{ looks, name, line }} />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Row({ looks, name, line }: { looks: Look[]; name: string; line: number }) {
  const index = looks.length - 1;
  const now = handshakesAt(looks, index, name, NOW_LOOKS);
  const shares = handshakesAt(looks, index, name, looks.length);
  return (
    <tr data-tls={name}>
      <th scope="row">
        <span class="swatch" data-line={line < COLOURS ? line : undefined} />
        {name}
      </th>
      <td class="n">{rate(now?.perSecond ?? null)}</td>
      <td class="n" data-mood={(now?.failed ?? 0) > 0 ? "bad" : undefined}>
        {rate(now?.failed ?? null)}
      </td>
      <td class="n">{share(shares?.resumed ?? null)}</td>
      <td>
        <Shares of={shares?.versions ?? {}} name={(version) => `TLS ${version}`} />
      </td>
      <td class="parts-of">
        <Shares of={shares?.groups ?? {}} name={(group) => (group === "none" ? "none (a session of 1.2)" : group)} />
      </td>
    </tr>
  );
}

/** Counts as parts, with what is most in words. */
function Shares({ of, name }: { of: Record<string, number>; name: (key: string) => string }) {
  const all = sum(Object.values(of));
  const parts = Object.entries(of).map(([key, value], line) => ({ name: name(key), value, line }));
  const there = parts.filter(({ value }) => value > 0).sort((a, b) => b.value - a.value);
  const said = there.map(({ name, value }) => `${name} ${share(value / all)}`).join(", ") || "none yet";
  return (
    <>
      <Parts parts={parts} said={said} />
      <span class="quiet">{said}</span>
    </>
  );
}

/** Looks that the share of sessions is of, in the chart. */
const SHARE_LOOKS = 10;

interface Came {
  perSecond: number;
  failed: number;
  /** Null where there were none. */
  resumed: number | null;
  versions: Record<string, number>;
  groups: Record<string, number>;
}

/** What came to a listener in so many looks before that one; null where that is not known. */
function handshakesAt(looks: Look[], index: number, name: string, over: number): Came | null {
  const now = looks[index];
  const before = index > 0 ? looks[Math.max(0, index - over)] : undefined;
  const of = (look: Look | undefined) => look?.traffic.listeners.find((listener) => listener.name === name)?.tls ?? null;
  const here = of(now);
  if (!now || !before || !here) return null;
  const then = of(before);
  const less = (kind: (tls: Handshakes) => Record<string, number>) => {
    const old = then ? kind(then) : {};
    return Object.fromEntries(Object.entries(kind(here)).map(([key, value]) => [key, Math.max(0, value - (old[key] ?? 0))]));
  };
  const seconds = (now.traffic.at_us - before.traffic.at_us) / 1e6;
  const sessions = less(({ full, resumed }) => ({ full, resumed }));
  const all = sum(Object.values(sessions));
  return {
    perSecond: all / seconds,
    failed: sum(Object.values(less((tls) => tls.failures))) / seconds,
    resumed: all > 0 ? sessions["resumed"]! / all : null,
    versions: less((tls) => tls.versions),
    groups: less((tls) => tls.groups),
  };
}
