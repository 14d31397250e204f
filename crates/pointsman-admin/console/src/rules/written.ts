// A text as it is written: its lines, and how they end, which the document of an editor does not know.

import { invertedEffects } from "@codemirror/commands";
import { Compartment, EditorState, type Extension, StateEffect, StateField, Text } from "@codemirror/state";

/** Where lines end in different ways, or a CR stands alone, a CR is a character of its line, so that none becomes another one. */
export type Ending = "\n" | "\r\n" | "mixed";

export interface Written {
  doc: Text;
  ending: Ending;
}

export function writtenOf(text: string): Written {
  const ending = endingOf(text);
  return { doc: Text.of(text.split(ending === "\r\n" ? "\r\n" : "\n")), ending };
}

export function textOf({ doc, ending }: Written): string {
  return doc.sliceString(0, doc.length, ending === "\r\n" ? "\r\n" : "\n");
}

export const isAlike = (one: Written, other: Written) => one.ending === other.ending && one.doc.eq(other.doc);

function endingOf(text: string): Ending {
  if (!text.includes("\r")) return "\n";
  const isEven = !/\r(?!\n)|(^|[^\r])\n/.test(text);
  return isEven ? "\r\n" : "mixed";
}

const setEnding = StateEffect.define<Ending>();
const lines = new Compartment();
const endings = StateField.define<Ending>({
  create: () => "\n",
  update: (ending, { effects }) => effects.reduce((ending, effect) => (effect.is(setEnding) ? effect.value : ending), ending),
});

const separatorOf = (ending: Ending): Extension => (ending === "mixed" ? EditorState.lineSeparator.of("\n") : []);

/** From now on lines end so. */
export const endWith = (ending: Ending): StateEffect<unknown>[] => [setEnding.of(ending), lines.reconfigure(separatorOf(ending))];

export const writtenIn = (state: EditorState): Written => ({ doc: state.doc, ending: state.field(endings) });

/** Who undoes what has changed how lines end has them end as before. */
export const endingsOf = (ending: Ending): Extension => [
  endings.init(() => ending),
  lines.of(separatorOf(ending)),
  invertedEffects.of(({ effects, startState }) => (effects.some((effect) => effect.is(setEnding)) ? endWith(startState.field(endings)) : [])),
];
