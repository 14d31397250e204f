// From values to places, where the ticks are, and numbers for people: as in reports, which a test holds this to.

export interface Range {
  low: number;
  high: number;
}

/** The range of values that are shown; null where there are none. */
export function rangeOf(values: Iterable<number>, isLog: boolean): Range | null {
  let range: Range | null = null;
  for (const value of values) {
    if (isShown(value, isLog)) range = range ? joined(range, { low: value, high: value }) : { low: value, high: value };
  }
  return range;
}

export const joined = (one: Range, other: Range): Range => ({
  low: Math.min(one.low, other.low),
  high: Math.max(one.high, other.high),
});

/** What is greater is not shown, nor on a logarithmic axis what is not greater than the least. */
const GREATEST = 1e15;
const LEAST = 1e-9;

/** The greatest that is. */
export const GREATEST_SHOWN = GREATEST - 0.125;

export const isShown = (value: number, isLog: boolean) =>
  Number.isFinite(value) && Math.abs(value) < GREATEST && (!isLog || value > LEAST);

/** A range with ticks at round values, which it begins and ends with. */
export interface Scale {
  ticks: number[];
  /** Where a value is, from 0 at the beginning to 1 at the end. */
  place: (value: number) => number;
  /** The value, or where a logarithmic scale begins, which has nothing below. */
  atLeast: (value: number) => number;
}

const TICKS_WANTED = 6;
/** What an axis spans at least, beside its values: they are told from each other by so much. */
const SPREAD_MIN = 1e-9;

export const scaleOf = (range: Range, isLog: boolean): Scale => (isLog ? logarithmic(range) : linear(range));

/** It begins at 0 where the range is not far from it. */
function linear({ low, high }: Range): Scale {
  const from = low > 0 && low < 0.7 * high ? 0 : low;
  // Between values that are hardly apart there are no round ones.
  const least = Math.max(Math.abs(from), Math.abs(high), 1) * SPREAD_MIN;
  const spread = Math.max(high > from ? high - from : Math.max(Math.abs(high), 1), least);
  const step = roundStep(spread / TICKS_WANTED);
  const first = Math.floor(from / step);
  const last = Math.max(Math.ceil(high / step), first + 1);
  const [begin, end] = [first * step, last * step];
  const ticks = Array.from({ length: last - first + 1 }, (_, at) => (first + at) * step);
  return { ticks, place: (value) => (value - begin) / (end - begin), atLeast: (value) => value };
}

function logarithmic({ low, high }: Range): Scale {
  const power = (value: number) => Math.log10(Math.min(Math.max(value, LEAST), GREATEST));
  const first = Math.floor(power(low));
  const last = Math.max(Math.ceil(power(high)), first + 1);
  const steps = last - first <= 2 ? [1, 2, 5] : [1];
  const [begin, end] = [10 ** first, 10 ** last];
  const powers = Array.from({ length: last - first + 1 }, (_, at) => 10 ** (first + at));
  const ticks = powers.flatMap((power) => steps.map((step) => step * power)).filter((tick) => tick <= end * 1.000_001);
  const place = (value: number) => Math.log(value / begin) / Math.log(end / begin);
  return { ticks, place, atLeast: (value) => Math.max(value, begin) };
}

/** 1, 2 or 5 times a power of ten, not less than what is wanted. */
function roundStep(wanted: number): number {
  const power = 10 ** Math.floor(Math.log10(wanted));
  return ([1, 2, 5, 10].find((step) => step * power >= wanted * 0.999_999) ?? 10) * power;
}

const DECIMALS_MAX = 9;

/** A number for people: six digits that count at most, thousands apart. */
export function number(value: number): string {
  if (!Number.isFinite(value)) return "–";
  const [whole = "", rest = ""] = value.toFixed(decimalsOf(value, 5)).split(".");
  const fraction = rest.replace(/0+$/, "");
  return whole.replace(/\B(?=(\d{3})+(?!\d))/g, ",") + (fraction === "" ? "" : `.${fraction}`);
}

/** A number for who looks once: three digits that count, or all before the point. */
export function rounded(value: number): string {
  if (!Number.isFinite(value) || value === 0) return number(value);
  const power = 10 ** decimalsOf(value, 2);
  return number((Math.sign(value) * Math.round(Math.abs(value) * power)) / power);
}

const decimalsOf = (value: number, behindTheFirst: number) =>
  Math.min(DECIMALS_MAX, Math.max(0, behindTheFirst - (value === 0 ? 0 : Math.floor(Math.log10(Math.abs(value))))));

/** A text of a result is cut behind so many characters. */
const CHARACTERS_MAX = 2_000;

/** A text as it may be shown: nothing in it acts on what stands around it. */
export function shown(text: string): string {
  const cut = text.length > CHARACTERS_MAX ? `${text.slice(0, CHARACTERS_MAX)}…` : text;
  return cut.replace(/[\n\t]/g, " ").replace(/[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, "\ufffd");
}
