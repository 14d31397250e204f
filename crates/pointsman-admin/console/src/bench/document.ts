// Reads what `pointsman bench` has written, by the schema that docs/guide/bench.md tells: of what is anything else it says
// where it is not so, and nothing of it is drawn.

export interface Axis {
  label: string;
  isLog: boolean;
  isFromZero: boolean;
}

export interface Line {
  name: string;
  points: [x: number, y: number][];
  band: [x: number, low: number, high: number][];
  isStepped: boolean;
  isScattered: boolean;
}

export interface Layer {
  name: string;
  values: number[];
}

export interface Chart {
  id: string;
  title: string;
  x: Axis;
  y: Axis;
  /** Lines, or bars: one for each category, of layers on top of each other. */
  content: { lines: Line[] } | { categories: string[]; layers: Layer[] };
}

export interface Figure {
  name: string;
  unit: string;
  value: number | null;
  interval: [low: number, high: number] | null;
}

export type Cell = string | number | null;

export interface Table {
  title: string;
  columns: string[];
  rows: Cell[][];
}

export type Colour = "green" | "amber" | "red";
const COLOURS: Colour[] = ["green", "amber", "red"];

export interface Run {
  name: string;
  started: string;
  machine: Map<string, string>;
  versions: Map<string, string>;
  settings: Map<string, string>;
  colour: Colour;
  reasons: string[];
  answer: string;
  figures: Figure[];
  charts: Chart[];
  tables: Table[];
}

export interface Document {
  title: string;
  runs: Run[];
}

const SCHEMA = "pointsman-bench/1";
/** Of a report, which has its document in it, twice as many. */
export const DOCUMENT_BYTES_MAX = 64 * 1024 * 1024;
export const RUNS_MAX = 32;
/** What is more is no result of ours, and would take the page its breath. `pointsman bench report` draws it. */
const ENTRIES_MAX = 500;
const POINTS_MAX = 500_000;
const ROWS_MAX = 200_000;

/** What stands before the document in a report. */
const BEFORE_DOCUMENT = '<script type="application/json" id="document">';

/** What is wrong with a document, and where. */
export class BadDocument extends Error {
  constructor(place: string, what: string) {
    super(place === "" ? what : `\`${place}\`: ${what}`);
  }
}

/** Reads a document, or a report that was made of one. */
export function read(text: string): Document {
  if (!text.trimStart().startsWith("<")) return document(text);
  const begin = text.indexOf(BEFORE_DOCUMENT);
  if (begin < 0) throw new BadDocument("", "this page is no report: there is no document in it");
  const rest = text.slice(begin + BEFORE_DOCUMENT.length);
  // In the document `<` is written in another way.
  return document(rest.slice(0, rest.indexOf("<")));
}

function document(text: string): Document {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new BadDocument("", `this is no JSON: ${(error as Error).message}`);
  }
  const top = new Keys(value, "");
  const schema = top.need("schema", text_);
  if (schema !== SCHEMA) throw new BadDocument("schema", `\`${schema}\` is not known; \`${SCHEMA}\` is`);
  return top.whole({ title: top.need("title", text_), runs: top.list("runs", run, RUNS_MAX) });
}

type Read<T> = (value: unknown, place: string) => T;

/** An object whose keys are taken one after the other. */
class Keys {
  readonly #entries: Map<string, unknown>;

  constructor(
    value: unknown,
    readonly place: string,
  ) {
    if (typeof value !== "object" || value === null || Array.isArray(value)) throw new BadDocument(place, "an object is wanted");
    this.#entries = new Map(Object.entries(value));
  }

  need<T>(key: string, read: Read<T>): T {
    if (!this.#entries.has(key)) throw new BadDocument(this.#below(key), "it is missing");
    return read(this.#take(key), this.#below(key));
  }

  or<T>(key: string, read: Read<T>, otherwise: T): T {
    const value = this.#take(key);
    return value === undefined || value === null ? otherwise : read(value, this.#below(key));
  }

  list<T>(key: string, read: Read<T>, max = ENTRIES_MAX): T[] {
    return this.or(key, listOf(read, max), []);
  }

  has(key: string): boolean {
    return this.#entries.has(key);
  }

  /** What was read of it, if nothing is left. */
  whole<T>(found: T): T {
    for (const key of this.#entries.keys()) throw new BadDocument(this.#below(key), "this key is not known");
    return found;
  }

  #take(key: string): unknown {
    const value = this.#entries.get(key);
    this.#entries.delete(key);
    return value;
  }

  #below(key: string): string {
    return this.place === "" ? key : `${this.place}.${key}`;
  }
}

const listOf =
  <T>(read: Read<T>, max: number): Read<T[]> =>
  (value, place) => {
    if (!Array.isArray(value)) throw new BadDocument(place, "a list is wanted");
    if (value.length > max) throw new BadDocument(place, `${value.length} are too many to be shown here: ${max} are the most`);
    return value.map((one, at) => read(one, `${place}[${at}]`));
  };

const text_: Read<string> = (value, place) => {
  if (typeof value !== "string") throw new BadDocument(place, "a text is wanted");
  return value;
};

const flag: Read<boolean> = (value, place) => {
  if (typeof value !== "boolean") throw new BadDocument(place, "true or false is wanted");
  return value;
};

/** `null` is what JSON has for what is no number. */
const number_: Read<number> = (value, place) => {
  if (value === null) return NaN;
  if (typeof value !== "number") throw new BadDocument(place, "a number is wanted");
  return value;
};

const numbers =
  <T extends number[]>(count: number): Read<T> =>
  (value, place) => {
    if (!Array.isArray(value) || value.length !== count) throw new BadDocument(place, `a list of ${count} numbers is wanted`);
    return value.map((one, at) => number_(one, `${place}[${at}]`)) as T;
  };

const textsByName: Read<Map<string, string>> = (value, place) => {
  const keys = new Keys(value, place);
  const names = Object.keys(value as object);
  if (names.length > ENTRIES_MAX) throw new BadDocument(place, `${names.length} are too many to be shown here: ${ENTRIES_MAX} are the most`);
  return new Map(names.map((name) => [name, keys.need(name, text_)]));
};

const run: Read<Run> = (value, place) => {
  const keys = new Keys(value, place);
  const { colour, reasons } = keys.need("verdict", verdict);
  const texts = () => new Map<string, string>();
  // Everything that was measured, for programs.
  keys.or("outcome", () => null, null);
  return keys.whole({
    name: keys.need("name", text_),
    started: keys.or("started", text_, ""),
    machine: keys.or("machine", textsByName, texts()),
    versions: keys.or("versions", textsByName, texts()),
    settings: keys.or("settings", textsByName, texts()),
    colour,
    reasons,
    answer: keys.or("answer", text_, ""),
    figures: keys.list("figures", figure),
    charts: keys.list("charts", chart),
    tables: keys.list("tables", table),
  });
};

const verdict: Read<Pick<Run, "colour" | "reasons">> = (value, place) => {
  const keys = new Keys(value, place);
  const said = keys.need("colour", text_);
  const colour = COLOURS.find((known) => known === said);
  if (!colour) throw new BadDocument(`${place}.colour`, `\`${said}\` is no colour: green, amber and red are`);
  return keys.whole({ colour, reasons: keys.list("reasons", text_) });
};

const figure: Read<Figure> = (value, place) => {
  const keys = new Keys(value, place);
  const [low, high] = [keys.or("low", number_, NaN), keys.or("high", number_, NaN)];
  const hasInterval = Number.isFinite(low) && Number.isFinite(high);
  return keys.whole({
    name: keys.need("name", text_),
    unit: keys.need("unit", text_),
    value: keys.or<number | null>("value", number_, null),
    interval: hasInterval ? ([low, high] as [number, number]) : null,
  });
};

const axis: Read<Axis> = (value, place) => {
  const keys = new Keys(value, place);
  const [label, isLog, isFromZero] = [keys.need("label", text_), keys.or("log", flag, false), keys.or("from_zero", flag, false)];
  return keys.whole({ label, isLog, isFromZero });
};

const line: Read<Line> = (value, place) => {
  const keys = new Keys(value, place);
  return keys.whole({
    name: keys.need("name", text_),
    points: keys.list("points", numbers<[number, number]>(2), POINTS_MAX),
    band: keys.list("band", numbers<[number, number, number]>(3), POINTS_MAX),
    isStepped: keys.or("stepped", flag, false),
    isScattered: keys.or("scattered", flag, false),
  });
};

const layer: Read<Layer> = (value, place) => {
  const keys = new Keys(value, place);
  return keys.whole({ name: keys.need("name", text_), values: keys.list("values", number_) });
};

const chart: Read<Chart> = (value, place) => {
  const keys = new Keys(value, place);
  const head = { id: keys.need("id", text_), title: keys.need("title", text_), x: keys.need("x", axis), y: keys.need("y", axis) };
  if (keys.has("lines")) return keys.whole({ ...head, content: { lines: keys.list("lines", line) } });
  // Bars stand on 0, which no logarithmic axis has.
  const y = { ...head.y, isLog: false };
  return keys.whole({ ...head, y, content: { categories: keys.list("categories", text_), layers: keys.list("layers", layer) } });
};

const cell: Read<Cell> = (value, place) => (typeof value === "string" || value === null ? value : number_(value, place));

const table: Read<Table> = (value, place) => {
  const keys = new Keys(value, place);
  return keys.whole({
    title: keys.need("title", text_),
    columns: keys.list("columns", text_),
    rows: keys.list("rows", listOf(cell, ENTRIES_MAX), ROWS_MAX),
  });
};
