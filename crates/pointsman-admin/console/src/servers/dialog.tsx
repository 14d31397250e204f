// What is asked before a server is added, changed or removed. The switch judges it, and the dialog stays until it has agreed.

import { useEffect, useRef, useState } from "preact/hooks";
import type { Refusal, Server } from "../api";
import { Lines, useWhyNot } from "../notice";
import type { Change } from "./page";

/** What is asked of somebody before it is done. */
export type Asked =
  | { what: "add"; pool: string; names: string[] }
  | { what: "weight" | "remove"; pool: string; server: Server };

/** Under the version that was seen when it was asked: where it is another one by then the switch refuses. */
export type Draft = Asked & { version: string; number: number };

interface DialogOf {
  draft: Draft;
  change: (change: Change) => Promise<void>;
  refused: (refusal: Error) => void;
  onDone: () => void;
}

export function ServerDialog({ draft, change, refused, onDone }: DialogOf) {
  const dialog = useRef<HTMLDialogElement>(null);
  const opener = useRef<Element | null>(null);
  const [said, setSaid] = useState<Said>({ text: "" });
  const [isBusy, setBusy] = useState(false);
  const whyNot = useWhyNot("the configuration has been changed meanwhile");
  useEffect(() => {
    opener.current = document.activeElement;
    dialog.current?.showModal();
  }, []);
  const send = async (wanted: Change) => {
    setBusy(true);
    setSaid({ text: "" });
    try {
      await change(wanted);
      dialog.current?.close();
    } catch (error) {
      const refusal = error as Refusal;
      setSaid({ text: whyNot(refusal), lines: refusal.text.trimEnd() });
      refused(error as Error);
      setBusy(false);
    }
  };
  const close = () => {
    // What was pressed may have gone with its server.
    if (!opener.current?.isConnected) document.getElementById(`pool-${draft.pool}`)?.focus();
    onDone();
  };
  const name = draft.what === "add" ? "" : draft.server.name;
  const title = { add: `A server for ${draft.pool}`, weight: `Weight of ${name}`, remove: `Remove ${name}` }[draft.what];
  return (
    <dialog ref={dialog} aria-labelledby="draft-title" onClose={close}>
      <h2 id="draft-title">{title}</h2>
      <ServerForm {...{ draft, said, isBusy, send, say: setSaid }} onCancel={() => dialog.current?.close()} />
    </dialog>
  );
}

/** Why it is not done. */
interface Said {
  text: string;
  /** What is wrong with the configuration. */
  lines?: string;
}

interface FormOf {
  draft: Draft;
  said: Said;
  isBusy: boolean;
  send: (change: Change) => void;
  say: (said: Said) => void;
  onCancel: () => void;
}

function ServerForm({ draft, said, isBusy, send, say, onCancel }: FormOf) {
  const server = draft.what === "add" ? null : draft.server;
  const [name, setName] = useState("");
  const [address, setAddress] = useState("");
  const [weight, setWeight] = useState(String(server?.weight ?? 1));
  const submit = (event: Event) => {
    event.preventDefault();
    if (isBusy) return;
    const { pool, version } = draft;
    if (draft.what === "add") {
      // Under a name that is there the API replaces the server.
      if (draft.names.includes(name)) return say({ text: `there is a server \`${name}\` in it already` });
      const body = { address, weight: Number(weight) };
      send({ what: `${pool}/${name} is added`, method: "PUT", pool, name, body, version });
    } else if (draft.what === "remove") {
      const { name } = draft.server;
      send({ what: `${pool}/${name} is removed`, method: "DELETE", pool, name, version });
    } else {
      const { name } = draft.server;
      const body = { weight: Number(weight) };
      send({ what: `${pool}/${name} has weight ${weight}`, method: "PATCH", pool, name, body, version });
    }
  };
  return (
    <form class="fields" onSubmit={submit}>
      {draft.what === "add" && (
        <>
          <label for="server-name">Name</label>
          <input id="server-name" required autofocus value={name} onInput={(event) => setName(event.currentTarget.value)} />
          <label for="server-address">Address and port</label>
          <input
            id="server-address"
            required
            placeholder="10.0.0.3:8080"
            value={address}
            onInput={(event) => setAddress(event.currentTarget.value)}
          />
        </>
      )}
      {draft.what !== "remove" && (
        <>
          <label for="server-weight">Weight</label>
          <input
            id="server-weight"
            type="number"
            min={1}
            max={1000}
            required
            autofocus={draft.what === "weight"}
            value={weight}
            onInput={(event) => setWeight(event.currentTarget.value)}
          />
        </>
      )}
      {draft.what === "remove" && server !== null && (
        <p>
          It is taken out of the configuration. What is on its way there goes on ({server.in_flight_requests} requests now); clients
          that stay with it move.
        </p>
      )}
      <p class="quiet">The configuration is changed as you see it here: where somebody else has changed it meanwhile, nothing is done.</p>
      <div class="said" role="alert">
        {said.text}
        {said.lines && <Lines text={said.lines} />}
      </div>
      <div class="buttons">
        <button type="button" onClick={onCancel}>
          Cancel
        </button>
        <button type="submit" class="main" aria-disabled={isBusy}>
          {isBusy ? "…" : { add: "Add", weight: "Set", remove: "Remove" }[draft.what]}
        </button>
      </div>
    </form>
  );
}
