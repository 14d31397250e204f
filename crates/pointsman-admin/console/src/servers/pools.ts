// A look at the pools every two seconds, and after each change.

import { useCallback, useRef, useState } from "preact/hooks";
import type { Pools } from "../api";
import { useEvery } from "../every";
import type { Session } from "../session";

const EVERY_MS = 2000;

export function usePools({ api, refused }: Session) {
  const [pools, setPools] = useState<Pools | null>(null);
  const [trouble, setTrouble] = useState<string | null>(null);
  const asked = useRef(0);
  const shown = useRef(0);
  const again = useCallback(async () => {
    const mine = ++asked.current;
    // What was asked before a change and answered after it would take the change back for a moment.
    const isNewest = () => mine > shown.current;
    try {
      const pools = await api.get<Pools>("pools");
      if (!isNewest()) return;
      shown.current = mine;
      setPools(pools);
      setTrouble(null);
    } catch (error) {
      if (!isNewest()) return;
      setTrouble((error as Error).message);
      refused(error as Error);
    }
  }, [api, refused]);
  useEvery(EVERY_MS, again);
  return { pools, trouble, again };
}
