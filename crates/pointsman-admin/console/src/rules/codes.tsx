// The page of a finding's code, as the reference has it: what it means, an example, and what to do.

import { useEffect, useRef, useState } from "preact/hooks";
import { Window } from "../window";

// The folder is a link to that of the reference.
const FOLDER = "../../findings/";
const PAGES = import.meta.glob<string>("../../findings/*.md", {
  eager: true,
  query: "?raw",
  import: "default",
});

export const hasPage = (code: string) => addressOf(code) in PAGES;

const addressOf = (code: string) => `${FOLDER}${code.replaceAll(" ", "-")}.md`;

export function CodeDialog({ code, onDone }: { code: string; onDone: () => void }) {
  const title = useRef<HTMLHeadingElement>(null);
  const [shown, setShown] = useState(code);
  // Whoever follows a link begins at the top.
  useEffect(() => title.current?.focus(), [shown]);
  return (
    <Window name="code" onDone={onDone}>
      <h2 id="code-title" ref={title} tabIndex={-1}>
        <code>{shown}</code>
      </h2>
      <Markdown text={PAGES[addressOf(shown)] ?? ""} follow={setShown} />
    </Window>
  );
}

type Follow = (code: string) => void;

/** As much of Markdown as those pages are written in. */
function Markdown({ text, follow }: { text: string; follow: Follow }) {
  // The title is that of the dialog.
  const blocks = text.replace(/^# .*\n/, "").match(/^```[^]*?^```$|(?:(?!```).+\n?)+/gm) ?? [];
  return (
    <>
      {blocks.map((block, index) => (
        <Block key={index} block={block} follow={follow} />
      ))}
    </>
  );
}

function Block({ block, follow }: { block: string; follow: Follow }) {
  if (block.startsWith("```")) {
    return (
      <pre class="lines" tabIndex={0}>
        {block.replace(/^.*\n/, "").replace(/```$/, "")}
      </pre>
    );
  }
  if (block.startsWith("#")) return <h3>{block.replace(/^#+ /, "").trim()}</h3>;
  if (block.startsWith("|")) return <Table block={block} follow={follow} />;
  return (
    <p>
      <Words text={block} follow={follow} />
    </p>
  );
}

function Table({ block, follow }: { block: string; follow: Follow }) {
  // A bar within code is none between cells.
  const cells = (line: string) => line.trim().replace(/^\||\|$/g, "").match(/(?:`[^`]*`|[^|`])+/g) ?? [];
  const [head = [], , ...rows] = block.trim().split("\n").map(cells);
  return (
    <div class="scroll" role="region" aria-label={head.join(" ").trim()} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {head.map((cell, index) => (
              <th key={index} scope="col">
                <Words text={cell} follow={follow} />
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={index}>
              {row.map((cell, index) => (
                <td key={index}>
                  <Words text={cell} follow={follow} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Code as code, what is stressed as that; a link to another page of these leads there, and of any other its words are there. */
function Words({ text, follow }: { text: string; follow: Follow }) {
  const parts = text.split(/(\[[^\]]*\]\([^)]*\)|`[^`]*`|\*[^*]+\*)/);
  return (
    <>
      {parts.map((part, index) => {
        if (/^\*.+\*$/.test(part)) return <em key={index}>{part.slice(1, -1)}</em>;
        if (part.startsWith("`")) return <code key={index}>{part.slice(1, -1)}</code>;
        const link = /^\[([^\]]*)\]\(([^)]*)\)$/.exec(part);
        if (!link) return part;
        const [, words = "", target = ""] = link;
        const code = /^([a-z-]+)\.md/.exec(target)?.[1]?.replaceAll("-", " ");
        const said = words.replaceAll("`", "");
        if (code === undefined || !hasPage(code)) return said;
        return (
          <button key={index} type="button" class="plain" onClick={() => follow(code)}>
            {said}
          </button>
        );
      })}
    </>
  );
}
