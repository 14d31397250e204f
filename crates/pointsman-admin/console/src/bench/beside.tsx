// What of several runs stands beside each other: figures with how many times the first they are, and what they were made on,
// with and how.

import type { Figure, Run } from "./document";
import { number, rounded, shown } from "./scale";

/** Of runs that are results. */
export function Figures({ runs }: { runs: Run[] }) {
  const rows = new Map<string, { name: string; unit: string }>();
  for (const { name, unit } of runs.flatMap((run) => run.figures)) rows.set(JSON.stringify([name, unit]), { name, unit });
  if (rows.size === 0) return null;
  return (
    <section aria-labelledby="figures">
      <h2 id="figures">Figures</h2>
      <p class="quiet">Below each figure its interval at 95 %.{runs.length > 1 && " × is times the first of its row."}</p>
      <div class="scroll" role="region" aria-labelledby="figures" tabIndex={0}>
        <table class="beside">
          <Heads runs={runs} isNumber />
          <tbody>
            {[...rows].map(([key, row]) => (
              <FigureRow key={key} {...row} figures={runs.map((run) => run.figures.find(isOf(row)) ?? null)} />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

const isOf = (row: { name: string; unit: string }) => (figure: Figure) => figure.name === row.name && figure.unit === row.unit;

function FigureRow({ name, unit, figures }: { name: string; unit: string; figures: (Figure | null)[] }) {
  const firstAt = figures.findIndex((figure) => figure !== null);
  const first = figures[firstAt]?.value;
  return (
    <tr data-figure={shown(name)}>
      <th scope="row">
        {shown(name)} <span class="quiet">{shown(unit)}</span>
      </th>
      {figures.map((figure, at) => {
        if (!figure) return <td key={at} />;
        const ratio = at === firstAt || !first || figure.value === null ? null : figure.value / first;
        return (
          <td key={at} class="n">
            {figure.value === null ? "–" : number(figure.value)}
            {ratio !== null && <span class="ratio"> × {rounded(ratio)}</span>}
            {figure.interval && <div class="quiet">{`${number(figure.interval[0])} to ${number(figure.interval[1])}`}</div>}
          </td>
        );
      })}
    </tr>
  );
}

const GROUPS: [string, (run: Run) => Map<string, string>][] = [
  ["Machine", (run) => run.machine],
  ["Versions", (run) => run.versions],
  ["Settings", (run) => run.settings],
];

/** Of all runs, those that are no results too. */
export function Circumstances({ runs }: { runs: Run[] }) {
  const groups = GROUPS.map(([title, of]) => ({ title, of, names: [...new Set(runs.flatMap((run) => [...of(run).keys()]))].sort() }));
  if (groups.every(({ names }) => names.length === 0)) return null;
  return (
    <section aria-labelledby="circumstances">
      <h2 id="circumstances">Made on, with and how</h2>
      {runs.length > 1 && <p class="quiet">What differs is marked with ≠.</p>}
      <div class="scroll" role="region" aria-labelledby="circumstances" tabIndex={0}>
        <table class="beside">
          <Heads runs={runs} />
          {groups
            .filter(({ names }) => names.length > 0)
            .map(({ title, of, names }) => (
              <tbody key={title}>
                <tr>
                  <th scope="rowgroup" class="group" colSpan={runs.length + 1}>
                    {title}
                  </th>
                </tr>
                {names.map((name) => {
                  const values = runs.map((run) => of(run).get(name) ?? "");
                  const differs = values.some((value) => value !== values[0]);
                  return (
                    <tr key={name} data-differs={differs ? "" : undefined}>
                      <th scope="row">
                        {shown(name)}
                        {differs && <span title="differs"> ≠</span>}
                      </th>
                      {values.map((value, at) => (
                        <td key={at}>{shown(value)}</td>
                      ))}
                    </tr>
                  );
                })}
              </tbody>
            ))}
        </table>
      </div>
    </section>
  );
}

function Heads({ runs, isNumber = false }: { runs: Run[]; isNumber?: boolean }) {
  return (
    <thead>
      <tr>
        <td />
        {runs.map((run) => (
          <th key={run.name} scope="col" class={isNumber ? "n" : undefined}>
            {shown(run.name)}
          </th>
        ))}
      </tr>
    </thead>
  );
}
