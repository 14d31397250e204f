// A look at the traffic every second.

import { useCallback, useState } from "preact/hooks";
import type { Traffic } from "./api";
import { useEvery } from "./every";
import type { Session } from "./session";
import { type Look, look, withLook } from "./traffic";

export interface Watching {
  looks: Look[];
  /** Why there is no newer one. */
  trouble: string | null;
}

const EVERY_MS = 1000;

export function useLooks({ api, access, refused }: Session): Watching {
  const [watching, setWatching] = useState<Watching>({ looks: [], trouble: null });
  const isAllowed = access !== null;
  const again = useCallback(
    async (isWanted: () => boolean) => {
      try {
        const traffic = await api.get<Traffic>("traffic");
        if (!isWanted()) return;
        const seen = look(traffic, Date.now() / 1000);
        setWatching(({ looks }) => ({ looks: withLook(looks, seen), trouble: null }));
      } catch (error) {
        if (!isWanted()) return;
        setWatching(({ looks }) => ({ looks, trouble: (error as Error).message }));
        refused(error as Error);
      }
    },
    [api, refused],
  );
  useEvery(EVERY_MS, isAllowed ? again : null);
  return watching;
}
