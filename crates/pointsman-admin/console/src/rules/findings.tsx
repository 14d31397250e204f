// What the analyst finds, below the editor: errors first, in the order of the text.

import { useState } from "preact/hooks";
import { type Finding, labelOf, type Severity } from "./calls";
import { CodeDialog, hasPage } from "./codes";
import type { Desk } from "./desk";
import type { Placed } from "./editor";

/** Rows that are shown; the rest is underlined all the same. */
const ROWS_MAX = 200;

export function Findings({ desk }: { desk: Desk }) {
  const { findings, doc } = desk.editor;
  const [code, setCode] = useState<string | null>(null);
  const isError = ({ finding }: Placed) => finding.severity === "error";
  const shown = [...findings.filter(isError), ...findings.filter((placed) => !isError(placed))].slice(0, ROWS_MAX);
  return (
    <>
      <div class="head">
        <h2 id="findings">Findings</h2>
        <span class="quiet" role="status" data-looking={desk.looking ?? undefined}>
          {saidOf(desk)}
        </span>
      </div>
      {shown.length > 0 && (
        <ul class="findings" aria-labelledby="findings">
          {shown.map((placed, index) => (
            <Row key={index} placed={placed} line={doc.lineAt(Math.min(placed.from, doc.length)).number} desk={desk} tell={setCode} />
          ))}
        </ul>
      )}
      {findings.length > shown.length && <p class="quiet">{findings.length - shown.length} more are underlined in the text.</p>}
      {code !== null && <CodeDialog code={code} onDone={() => setCode(null)} />}
    </>
  );
}

function saidOf({ looking, checked, checkTrouble, editor: { findings } }: Desk): string {
  if (checkTrouble) return `not looked at: ${checkTrouble}`;
  if (looking) return looking === "all" ? "looking at all rules…" : "looking at what was changed…";
  if (!checked) return "";
  const count = (severity: Severity, word: string) => {
    const many = findings.filter(({ finding }) => finding.severity === severity).length;
    return many === 0 ? [] : [`${many} ${word}${many === 1 ? "" : "s"}`];
  };
  const counts = [...count("error", "error"), ...count("warning", "warning"), ...count("note", "note")];
  const rest = checked.is_settled ? "" : "; there was not time for all of it";
  return `${counts.join(", ") || "none"}${rest}`;
}

function Row({ placed, line, desk, tell }: { placed: Placed; line: number; desk: Desk; tell: (code: string) => void }) {
  const { finding, from, to } = placed;
  const { code } = finding;
  return (
    <li data-severity={finding.severity} data-code={finding.code} data-touched={placed.isTouched ? "" : undefined}>
      <p>
        <span class="severity">{finding.severity}</span>{" "}
        {hasPage(code) ? (
          <button type="button" class="plain" aria-haspopup="dialog" onClick={() => tell(code)}>
            <code>{code}</code>
          </button>
        ) : (
          <code>{code}</code>
        )}{" "}
        <button type="button" class="plain" onClick={() => desk.editor.goTo(from, to)}>
          {placeOf(finding, line)}
        </button>
      </p>
      <p>{finding.message}</p>
      {finding.help && <p class="quiet">{finding.help}</p>}
      {finding.witness && (
        <button type="button" class="witness" onClick={() => desk.tryOut(finding)}>
          Try its request: <code>{labelOf(finding.witness)}</code>
        </button>
      )}
    </li>
  );
}

const placeOf = ({ rule }: Finding, line: number) => (rule === null ? `line ${line}` : `${rule}, line ${line}`);
