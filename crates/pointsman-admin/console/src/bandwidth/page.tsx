// Classes of bandwidth: what each had lately, of how much, and what waits there.

import type { BandwidthClass } from "../api";
import { bytesPerSecond, count, rate, share } from "../figures";
import { Chart, COLOURS } from "../live/charts";
import type { Watching } from "../looks";
import { Parts } from "../parts";
import type { Session } from "../session";
import { type BandwidthLook, perSecond, totalNow, useBandwidth, type Way } from "./looks";

/** What is now: a class sends in bursts. */
const NOW_LOOKS = 5;

const WAYS: [Way, string][] = [
  ["to_client", "To clients"],
  ["to_server", "To servers"],
];

export function BandwidthPage({ session }: { session: Session; watching: Watching }) {
  const looks = useBandwidth(session);
  const last = looks.at(-1);
  if (!last) return <p class="quiet">looking…</p>;
  const rows = inOrder(last.bandwidth.classes);
  if (rows.length === 0) return <p class="quiet">The configuration has no classes of bandwidth.</p>;
  const lines = rows.slice(0, COLOURS).map(({ known: { name } }) => ({ key: name, name }));
  return (
    <section aria-labelledby="bandwidth">
      <h2 id="bandwidth">Classes of bandwidth</h2>
      <div class="charts">
        {WAYS.map(([way, title]) => (
          <Chart
            key={way}
            title={`${title}, bytes / s`}
            looks={looks}
            lines={lines}
            value={(index, name) => perSecond(looks, index, 1, name, way, "bytes")}
            shown={bytesPerSecond}
          />
        ))}
      </div>
      <div class="scroll" role="region" aria-label="Classes in figures" tabIndex={0}>
        <table class="classes">
          <thead>
            <tr>
              <th scope="col">Class</th>
              {WAYS.map(([way, title]) => (
                <th key={way} scope="col" class="had">{title}, of what it may have</th>
              ))}
              <th scope="col" class="n">Guaranteed</th>
              <th scope="col" class="n">Ceiling</th>
              <th scope="col" class="n">Waiting now</th>
              <th scope="col" class="n">Waits / s</th>
            </tr>
          </thead>
          <tbody>
            {rows.map(({ known, depth, bound }, line) => (
              <Row key={known.name} {...{ looks, last, known, depth, bound, line }} />
            ))}
          </tbody>
        </table>
      </div>
      <p class="quiet">A class is shown with those that borrow of it. The mark on a bar is what is guaranteed, its end the ceiling, its own or the next one above.</p>
    </section>
  );
}

interface RowOf {
  looks: BandwidthLook[];
  last: BandwidthLook;
  known: BandwidthClass;
  depth: number;
  /** What bounds it: bytes a second. */
  bound: number;
  line: number;
}

function Row({ looks, last, known, depth, bound, line }: RowOf) {
  const { name, guaranteed_bytes_per_second: guaranteed, ceiling_bytes_per_second: ceiling } = known;
  const index = looks.length - 1;
  const both = (of: (way: Way) => number | null) => {
    const known = WAYS.map(([way]) => of(way)).filter((value) => value !== null);
    return known.length === 0 ? null : known.reduce((all, value) => all + value, 0);
  };
  const waiting = both((way) => totalNow(last, name, way, "waiting"));
  return (
    <tr data-class={name}>
      <th scope="row">
        {Array.from({ length: depth }, (_, step) => (
          <span key={step} class="step" />
        ))}
        <span class="swatch" data-line={line < COLOURS ? line : undefined} />
        {name}
      </th>
      {WAYS.map(([way]) => (
        <td key={way} class="had">
          <Had had={perSecond(looks, index, NOW_LOOKS, name, way, "bytes")} isCounted={totalNow(last, name, way, "bytes") !== null} {...{ bound, guaranteed }} />
        </td>
      ))}
      <td class="n">{guaranteed > 0 ? bytesPerSecond(guaranteed) : "–"}</td>
      <td class="n">{ceiling === null ? <span class="quiet">as above</span> : bytesPerSecond(ceiling)}</td>
      <td class="n" data-mood={(waiting ?? 0) > 0 ? "warn" : undefined}>{count(waiting)}</td>
      <td class="n">{rate(both((way) => perSecond(looks, index, NOW_LOOKS, name, way, "waits")))}</td>
    </tr>
  );
}

/** What a class had, drawn against what it may have: amber where it borrows. */
function Had({ had, isCounted, bound, guaranteed }: { had: number | null; isCounted: boolean; bound: number; guaranteed: number }) {
  if (!isCounted) return <span class="quiet">does not count</span>;
  const value = had ?? 0;
  const mood = guaranteed > 0 && value > guaranteed ? "warn" : "good";
  const said = had === null ? "–" : `${bytesPerSecond(value)}, ${share(value / bound)}`;
  return (
    <>
      <Parts parts={[{ name: "had", value, mood }]} whole={bound} marks={guaranteed > 0 && guaranteed < bound ? [guaranteed] : []} said={said} />
      <span>{said}</span>
    </>
  );
}

/** As a tree: each behind that which it borrows of. */
function inOrder(classes: BandwidthClass[], parent: string | null = null, depth = 0, above = Infinity): { known: BandwidthClass; depth: number; bound: number }[] {
  return classes
    .filter((known) => known.parent === parent)
    .flatMap((known) => {
      const bound = Math.min(above, known.ceiling_bytes_per_second ?? Infinity);
      return [{ known, depth, bound }, ...inOrder(classes, known.name, depth + 1, bound)];
    });
}
