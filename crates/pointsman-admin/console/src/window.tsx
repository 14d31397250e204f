// What is told in a window before the page, until it is closed.

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

/** Its title is a heading with the id `{name}-title`. */
export function Window({ name, onDone, children }: { name: string; onDone: () => void; children: ComponentChildren }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class={name} aria-labelledby={`${name}-title`} onClose={onDone}>
      {children}
      <div class="buttons">
        <button type="button" onClick={() => dialog.current?.close()}>
          Close
        </button>
      </div>
    </dialog>
  );
}
