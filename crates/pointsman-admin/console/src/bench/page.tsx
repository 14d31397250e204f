// Results of `pointsman bench` from the disk of who looks: verdicts, figures, charts, and several runs beside each other.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Circumstances, Figures } from "./beside";
import { ChartFigure, spanned, spansOf } from "./chart";
import type { Chart, Colour, Run, Table } from "./document";
import { type Opened, useOpened } from "./opened";
import { number, rounded, shown } from "./scale";

/** So many of a run's figures are drawn large. */
const TILES = 4;
/** Of a table so many rows are drawn. */
const ROWS_MAX = 500;

export function BenchPage() {
  const { opened, faults, open, keep } = useOpened();
  const input = useRef<HTMLInputElement>(null);
  const isOver = useDropped(open);
  const runs = useMemo(() => opened.filter((one) => one.isShown).map((one) => one.run), [opened]);
  const results = useMemo(() => runs.filter((run) => run.colour !== "red"), [runs]);
  const chosen = (event: { currentTarget: HTMLInputElement }) => {
    const files = [...(event.currentTarget.files ?? [])];
    // The same file may be chosen again.
    event.currentTarget.value = "";
    void open(files);
  };
  return (
    <>
      <section class="opening" data-over={isOver ? "" : undefined} aria-labelledby="opening">
        <div class="head">
          <h2 id="opening">Results</h2>
          <button type="button" class={opened.length === 0 ? "main" : undefined} onClick={() => input.current?.click()}>
            Open…
          </button>
          <input ref={input} type="file" hidden multiple accept=".json,.html" aria-label="Results to open" onChange={chosen} />
          <span class="quiet">or drop files here: they stay in this browser.</span>
        </div>
        {opened.length === 0 ? <Invitation /> : <OpenedTable opened={opened} keep={keep} />}
        <div class="said" role="alert">
          {faults.map(({ file, why }) => (
            <p key={file}>{`${shown(file)}: ${shown(why)}`}</p>
          ))}
        </div>
      </section>
      {runs.length > 0 && (
        <section aria-labelledby="answers">
          <h2 id="answers" class="unseen">
            Answers
          </h2>
          <div class="runs">
            {runs.map((run) => (
              <Answer key={run.name} run={run} />
            ))}
          </div>
        </section>
      )}
      <Charts runs={results} />
      <Figures runs={results} />
      {results.some((run) => run.tables.length > 0) && <Tables runs={results} />}
      <Circumstances runs={runs} />
    </>
  );
}

/** Opens what is dropped anywhere on the page: the browser would go away to it. */
function useDropped(open: (files: File[]) => void): boolean {
  const [isOver, setOver] = useState(false);
  useEffect(() => {
    const over = (event: DragEvent) => {
      event.preventDefault();
      setOver(event.type === "dragover");
    };
    const drop = (event: DragEvent) => {
      event.preventDefault();
      setOver(false);
      open([...(event.dataTransfer?.files ?? [])]);
    };
    addEventListener("dragover", over);
    addEventListener("dragleave", over);
    addEventListener("drop", drop);
    return () => {
      removeEventListener("dragover", over);
      removeEventListener("dragleave", over);
      removeEventListener("drop", drop);
    };
  }, [open]);
  return isOver;
}

function Invitation() {
  return (
    <p class="quiet">
      What <code>pointsman bench</code> writes with <code>--save FILE</code> or <code>--report FILE</code>. Several stand beside each other.
    </p>
  );
}

function OpenedTable({ opened, keep }: { opened: Opened[]; keep: (next: Opened[]) => void }) {
  const show = (which: Opened) => keep(opened.map((one) => (one === which ? { ...one, isShown: !one.isShown } : one)));
  const first = (which: Opened) => keep([{ ...which, isShown: true }, ...opened.filter((one) => one !== which)]);
  const close = (which: Opened) => {
    keep(opened.filter((one) => one !== which));
    document.querySelector<HTMLElement>(".opening button")?.focus();
  };
  return (
    <div class="scroll" role="region" aria-label="Opened runs" tabIndex={0}>
      <table class="opened">
        <thead>
          <tr>
            <th scope="col">Shown</th>
            <th scope="col">Verdict</th>
            <th scope="col">
              <span class="unseen">Change</span>
            </th>
            <th scope="col">Of</th>
            <th scope="col">Began</th>
            <th scope="col">File</th>
          </tr>
        </thead>
        <tbody>
          {opened.map((one, at) => {
            const name = shown(one.run.name);
            return (
              <tr key={one.number} data-run={name}>
                <th scope="row">
                  <label>
                    <input type="checkbox" checked={one.isShown} onChange={() => show(one)} /> {name}
                  </label>
                </th>
                <td>
                  <VerdictMark colour={one.run.colour} />
                </td>
                <td>
                  <span class="acts">
                    <button type="button" disabled={at === 0} aria-label={`${name} first`} onClick={() => first(one)}>
                      First
                    </button>
                    <button type="button" aria-label={`Close ${name}`} onClick={() => close(one)}>
                      Close
                    </button>
                  </span>
                </td>
                <td>{shown(one.title)}</td>
                <td class="quiet">{shown(one.run.started)}</td>
                <td class="quiet">{shown(one.file)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

const VERDICTS: Record<Colour, string> = {
  green: "the client was in control",
  amber: "the client was in control, with reservations",
  red: "this run is not a result",
};

function VerdictMark({ colour }: { colour: Colour }) {
  return (
    <span class="verdict" data-colour={colour}>
      {colour}
    </span>
  );
}

/** A run in front: whether it may be believed, why not, its answer and its first figures. A red one is no result, and has none. */
function Answer({ run }: { run: Run }) {
  const isResult = run.colour !== "red";
  return (
    <article class="answer" data-colour={run.colour}>
      <h3>
        {shown(run.name)} <span class="quiet">{shown(run.started)}</span>
      </h3>
      <p>
        <VerdictMark colour={run.colour} /> {VERDICTS[run.colour]}
      </p>
      {run.reasons.length > 0 && (
        <ul>
          {run.reasons.map((reason, at) => (
            <li key={at}>{shown(reason)}</li>
          ))}
        </ul>
      )}
      {isResult && run.answer !== "" && <p class="told">{shown(run.answer)}</p>}
      {isResult && run.figures.length > 0 && (
        <dl class="tiles">
          {run.figures.slice(0, TILES).map(({ name, unit, value, interval }, at) => (
            <div key={at}>
              <dt>{shown(name)}</dt>
              <dd>
                {value === null ? "–" : rounded(value)} <small>{shown(unit)}</small>
              </dd>
              <dd class="quiet">{interval && `${rounded(interval[0])} to ${rounded(interval[1])}`}</dd>
            </div>
          ))}
        </dl>
      )}
    </article>
  );
}

/** What makes charts of several runs the same. */
const keyOf = ({ id, x, y }: Chart) => JSON.stringify([id, x.label, x.isLog, y.label, y.isLog]);

/** Those of one run stand in a grid; those of several beside each other, on axes that span all of them where they are the same. */
function Charts({ runs }: { runs: Run[] }) {
  const rows = useMemo(() => {
    const rows = new Map<string, { run: Run; chart: Chart }[]>();
    for (const run of runs) {
      for (const chart of run.charts) {
        const row = rows.get(keyOf(chart)) ?? [];
        rows.set(keyOf(chart), row);
        // The first of a run that has several is shown.
        if (row.at(-1)?.run !== run) row.push({ run, chart });
      }
    }
    return [...rows].map(([key, drawn]) => ({ key, drawn, spans: drawn.map(({ chart }) => spansOf(chart)).reduce(spanned, null) }));
  }, [runs]);
  if (rows.length === 0) return null;
  const isAlone = runs.length === 1;
  const figures = rows.map(({ key, drawn, spans }) => ({
    key,
    row: drawn.map(({ run, chart }) => (
      <ChartFigure key={`${run.name} ${key}`} chart={chart} spans={spans} run={isAlone ? null : run.name} />
    )),
  }));
  return (
    <section aria-labelledby="charts">
      <h2 id="charts">Charts</h2>
      {isAlone ? (
        <div class="drawn">{figures.map(({ row }) => row)}</div>
      ) : (
        figures.map(({ key, row }) => (
          <div key={key} class="drawn">
            {row}
          </div>
        ))
      )}
    </section>
  );
}

function Tables({ runs }: { runs: Run[] }) {
  return (
    <section aria-labelledby="tables">
      <h2 id="tables">Tables</h2>
      {runs.flatMap((run) => run.tables.map((table, at) => <TableDrawn key={`${run.name} ${at}`} table={table} run={run.name} />))}
    </section>
  );
}

function TableDrawn({ table: { title, columns, rows }, run }: { table: Table; run: string }) {
  const name = `${shown(title)} – ${shown(run)}`;
  const isNumber = (column: number) => typeof rows[0]?.[column] === "number";
  const left = rows.length - ROWS_MAX;
  return (
    <div class="scroll" role="region" aria-label={name} tabIndex={0}>
      <table class="beside">
        <caption>{name}</caption>
        <thead>
          <tr>
            {columns.map((column, at) => (
              <th key={at} scope="col" class={isNumber(at) ? "n" : undefined}>
                {shown(column)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, ROWS_MAX).map((row, at) => (
            <tr key={at}>
              {row.map((cell, column) => (
                <td key={column} class={typeof cell === "string" ? undefined : "n"}>
                  {cell === null ? "–" : typeof cell === "number" ? number(cell) : shown(cell)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {left > 0 && <p class="none">and {left} rows more, which are in the file</p>}
    </div>
  );
}
