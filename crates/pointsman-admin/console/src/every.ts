// What is done again and again.

import { useEffect } from "preact/hooks";

/** One after the other, also where it takes long, until other work is wanted, or none. `isWanted` says whether it still is. */
export function useEvery(periodMs: number, work: ((isWanted: () => boolean) => Promise<void>) | null) {
  useEffect(() => {
    if (!work) return;
    let isOver = false;
    let timer = 0;
    const next = async () => {
      const began = performance.now();
      await work(() => !isOver);
      if (!isOver) timer = window.setTimeout(next, Math.max(0, periodMs - (performance.now() - began)));
    };
    void next();
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [periodMs, work]);
}
