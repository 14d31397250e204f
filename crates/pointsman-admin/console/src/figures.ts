// Figures for people.

/** A rate, a second: `0.4`, `12`, `1,234`. */
export function rate(value: number | null): string {
  if (value === null) return "–";
  if (value > 0 && value < 10) return value.toFixed(1);
  return Math.round(value).toLocaleString("en");
}

/** How many there are. */
export const count = (value: number | null) => value?.toLocaleString("en") ?? "–";

/** A duration of so many microseconds: `85 µs`, `1.2 ms`, `3.4 s`. */
export function duration(us: number | null): string {
  if (us === null) return "–";
  if (us < 1_000) return `${Math.round(us)} µs`;
  if (us < 1e6) return `${short(us / 1e3)} ms`;
  return `${short(us / 1e6)} s`;
}

/** `3 s`, `4 min`, `5 h`, `6 d`. */
export function age(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min`;
  if (whole < 86_400) return `${Math.floor(whole / 3600)} h`;
  return `${Math.floor(whole / 86_400)} d`;
}

/** The time of day, of seconds since 1970. */
export const clock = (at: number) => new Date(at * 1000).toTimeString().slice(0, 8);

/** A share of a whole: `4 %`, `less than 1 %`. */
export function share(value: number | null): string {
  if (value === null) return "–";
  if (value > 0 && value < 0.005) return "less than 1 %";
  return `${Math.round(value * 100)} %`;
}

/** `850 B/s`, `1.2 MB/s`. */
export function bytesPerSecond(bytes: number | null): string {
  if (bytes === null) return "–";
  const units = ["B/s", "kB/s", "MB/s", "GB/s"];
  const power = bytes < 1000 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(bytes) / 3));
  const value = bytes / 1000 ** power;
  return `${power === 0 ? Math.round(value) : short(value)} ${units[power]}`;
}

const short = (value: number) => (value < 10 ? value.toFixed(1) : Math.round(value).toString());
