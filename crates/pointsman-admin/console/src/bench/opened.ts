// Results that were opened: they stay in the memory of the page, while other pages are looked at too, and go nowhere.

import { useCallback, useState } from "preact/hooks";
import { DOCUMENT_BYTES_MAX, type Run, read, RUNS_MAX } from "./document";

export interface Opened {
  number: number;
  run: Run;
  /** The title of its document, and the name of the file. */
  title: string;
  file: string;
  isShown: boolean;
}

/** What could not be opened, and why. */
export interface Fault {
  file: string;
  why: string;
}

/** Other pages come and go before it. */
let kept: Opened[] = [];
let numbers = 0;

export function useOpened() {
  const [opened, setOpened] = useState(kept);
  const [faults, setFaults] = useState<Fault[]>([]);
  const keep = useCallback((next: Opened[]) => setOpened((kept = next)), []);
  const open = useCallback(async (files: File[]) => {
    const wrong: Fault[] = [];
    for (const file of files) {
      try {
        const { title, runs } = read(await textOf(file));
        if (kept.length + runs.length > RUNS_MAX) throw new Error(`with it there are more than ${RUNS_MAX} runs: close some`);
        for (const run of runs) kept = [...kept, { number: ++numbers, run: renamed(run, file.name), title, file: file.name, isShown: true }];
      } catch (error) {
        wrong.push({ file: file.name, why: (error as Error).message });
      }
    }
    setOpened(kept);
    setFaults(wrong);
  }, []);
  return { opened, faults, open, keep };
}

async function textOf(file: File): Promise<string> {
  const tooLong = new Error(`it is too long for a result: ${DOCUMENT_BYTES_MAX} bytes are the most, and twice as many of a report`);
  if (file.size > 2 * DOCUMENT_BYTES_MAX) throw tooLong;
  let text: string;
  try {
    text = await file.text();
  } catch {
    // A folder, or a file that has gone meanwhile.
    throw new Error("it cannot be read");
  }
  if (file.size > DOCUMENT_BYTES_MAX && !text.trimStart().startsWith("<")) throw tooLong;
  return text;
}

/** Under a name that no other run has: with the file that it is from, and a number where that is not enough. */
function renamed(run: Run, file: string): Run {
  const isTaken = (name: string) => kept.some((other) => other.run.name === name);
  const withFile = `${run.name} (${file.replace(/\.[^.]+$/, "")})`;
  let name = isTaken(run.name) ? withFile : run.name;
  for (let number = 2; isTaken(name); number += 1) name = `${withFile} ${number}`;
  return { ...run, name };
}
