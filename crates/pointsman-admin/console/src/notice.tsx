// What came of a change, and lines as the switch writes them.

import { useEffect } from "preact/hooks";

/** How long it is told that something went well. */
const GOOD_NEWS_MS = 8_000;

export interface Said {
  text: string;
  /** What the switch has to say of the configuration. */
  lines?: string;
  isBad: boolean;
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
