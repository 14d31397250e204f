// A bar of parts of a whole. What it shows stands beside it, or in its words: never in colours alone.

export interface Part {
  name: string;
  value: number;
  /** The colour of that line, or of that mood. */
  line?: number;
  mood?: "good" | "warn" | "bad" | "off";
}

interface PartsOf {
  parts: Part[];
  /** What the whole is worth; where it is left out, the parts together. */
  whole?: number;
  /** Where something ends or begins, by its worth. */
  marks?: number[];
  said: string;
}

export function Parts({ parts, whole = parts.reduce((all, { value }) => all + value, 0), marks = [], said }: PartsOf) {
  const percent = (value: number) => (whole > 0 ? Math.min(100, (100 * value) / whole) : 0);
  let before = 0;
  return (
    <svg class="parts" role="img" aria-label={said}>
      <title>{said}</title>
      <rect class="ground" x="0" y="0" width="100%" height="100%" rx="2" />
      {parts
        .filter(({ value }) => value > 0)
        .map(({ name, value, line, mood }) => {
          const x = percent(before);
          before += value;
          return <rect key={name} data-line={line} data-mood={mood} x={`${x}%`} y="0" width={`${percent(before) - x}%`} height="100%" />;
        })}
      {marks.map((mark) => (
        <line key={mark} class="mark" x1={`${percent(mark)}%`} x2={`${percent(mark)}%`} y1="-2" y2="12" />
      ))}
    </svg>
  );
}

/** Which colour is what. */
export function Legend({ names }: { names: string[] }) {
  return (
    <p class="legend">
      {names.map((name, line) => (
        <span key={name}>
          <span class="swatch" data-line={line} />
          {name}
        </span>
      ))}
    </p>
  );
}
