// Looks at the classes of bandwidth, a second apart, and what two of them say.

import { useCallback, useState } from "preact/hooks";
import type { Bandwidth, BandwidthClass, OneWay } from "../api";
import { useEvery } from "../every";
import type { Session } from "../session";
import { LOOKS_MAX } from "../traffic";

export interface BandwidthLook {
  /** Seconds since 1970, by the clock of the browser. */
  at: number;
  bandwidth: Bandwidth;
}

export type Way = "to_client" | "to_server";

const EVERY_MS = 1000;

export function useBandwidth({ api, refused }: Session): BandwidthLook[] {
  const [looks, setLooks] = useState<BandwidthLook[]>([]);
  const again = useCallback(
    async (isWanted: () => boolean) => {
      try {
        const bandwidth = await api.get<Bandwidth>("bandwidth");
        if (!isWanted()) return;
        const next = { at: Date.now() / 1000, bandwidth };
        // From the beginning where the switch has begun anew.
        setLooks((looks) => ((looks.at(-1)?.bandwidth.at_us ?? 0) >= bandwidth.at_us ? [next] : [...looks, next].slice(-LOOKS_MAX)));
      } catch (error) {
        // That nothing new comes the bar says.
        if (isWanted()) refused(error as Error);
      }
    },
    [api, refused],
  );
  useEvery(EVERY_MS, again);
  return looks;
}

/** A class, and all that borrow of it or of those. */
export function below(name: string, classes: BandwidthClass[]): string[] {
  return [name, ...classes.filter((known) => known.parent === name).flatMap((known) => below(known.name, classes))];
}

/** How much of something a class had a second in so many looks before that one, with those below it; null where that is not known. */
export function perSecond(looks: BandwidthLook[], index: number, over: number, name: string, way: Way, what: keyof OneWay): number | null {
  const now = looks[index];
  const before = index > 0 ? looks[Math.max(0, index - over)] : undefined;
  if (!now || !before) return null;
  const seconds = (now.bandwidth.at_us - before.bandwidth.at_us) / 1e6;
  const total = (look: BandwidthLook) => totalNow(look, name, way, what) ?? 0;
  return totalNow(now, name, way, what) === null ? null : Math.max(0, total(now) - total(before)) / seconds;
}

/** The same as it stands at a look; null where the class counts nothing of that direction. */
export function totalNow({ bandwidth: { classes } }: BandwidthLook, name: string, way: Way, what: keyof OneWay): number | null {
  const names = new Set(below(name, classes));
  const own = classes.filter((known) => names.has(known.name) && known[way] !== null);
  return own.length === 0 ? null : own.reduce((all, known) => all + known[way]![what], 0);
}
