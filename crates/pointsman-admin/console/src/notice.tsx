// What came of a change, and lines as the switch writes them.

import { useCallback, useEffect, useRef } from "preact/hooks";
import { type Refusal, whyNot } from "./api";

/** How long it is told that something went well. */
const GOOD_NEWS_MS = 8_000;

export interface Said {
  text: string;
  /** What the switch has to say of the configuration. */
  lines?: string;
  isBad: boolean;
}

/**
 * Why what a dialog asks for was not done. `late` says what is otherwise by now where the switch refuses it for that (412): whoever
 * was not answered before may have done it themselves.
 */
export function useWhyNot(late: string): (refusal: Refusal) => string {
  const mayBeDone = useRef(false);
  return useCallback(
    (refusal) => {
      const wasSent = mayBeDone.current;
      mayBeDone.current ||= refusal.mayBeDone;
      if (refusal.status !== 412) return whyNot(refusal);
      return wasSent ? `it may have been done: ${late}. Cancel, and look.` : `not done: ${late}. Cancel, look again, and do it anew.`;
    },
    [late],
  );
}

/** What came of the last change, where it moves nothing. Bad news stay until they are put away. */
export function Notice({ said, forget }: { said: Said | null; forget: () => void }) {
  useEffect(() => {
    if (!said || said.isBad) return;
    const timer = setTimeout(forget, GOOD_NEWS_MS);
    return () => clearTimeout(timer);
  }, [said, forget]);
  return (
    <div class="notice" role="status" data-mood={said?.isBad ? "bad" : undefined}>
      {said && (
        <>
          <div>
            <p>{said.text}</p>
            {said.lines && <Lines text={said.lines} />}
          </div>
          <button type="button" aria-label="Put the notice away" onClick={forget}>
            ✕
          </button>
        </>
      )}
    </div>
  );
}

/** Lines as the switch has written them, with carets below what they are about. */
export function Lines({ text }: { text: string }) {
  return (
    <pre class="lines" tabIndex={0}>
      {text}
    </pre>
  );
}
