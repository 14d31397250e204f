// Signing in with a token of the admin API.

import { useEffect, useRef, useState } from "preact/hooks";
import type { Session } from "./session";

/** All there is where nothing may be read, or nobody has said so yet. */
export function Gate({ session }: { session: Session }) {
  return (
    <main class="gate">
      <h1>Pointsman</h1>
      {session.is === "stranger" ? (
        <>
          <p class="quiet">To look from here too, the switch wants a token of the admin API, or a client certificate.</p>
          <SignInForm session={session} said={session.note} onDone={() => {}} />
        </>
      ) : (
        <p role="status">{session.is === "asked" ? "asking the switch…" : session.note}</p>
      )}
      {session.is === "silent" && <p class="quiet">It is asked again every two seconds.</p>}
    </main>
  );
}

/** Who is signed in, and the way in or out. */
export function WhoLooks({ session }: { session: Session }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [isOpen, setOpen] = useState(false);
  // Not before the field is there which is to have the focus.
  useEffect(() => void (isOpen && dialog.current?.showModal()), [isOpen]);
  const access = session.access;
  if (!access) return null;
  if (access.may === "change") {
    return (
      <div class="who">
        <span>
          <b>{access.who}</b> may change
        </span>
        {session.api.hasToken ? (
          <button type="button" onClick={session.signOut}>
            Sign out
          </button>
        ) : (
          // The browser shows it with each request: there is no way out but to have it show another one.
          <span>by client certificate</span>
        )}
      </div>
    );
  }
  const close = () => dialog.current?.close();
  return (
    <div class="who">
      {session.note !== null && <span class="note">{session.note}</span>}
      <span>you may look</span>
      {access.takes.includes("token") && (
        <button type="button" onClick={() => setOpen(true)}>
          Sign in
        </button>
      )}
      <dialog ref={dialog} aria-labelledby="sign-in-title" onClose={() => setOpen(false)}>
        <h2 id="sign-in-title">Sign in</h2>
        {isOpen && <SignInForm session={session} said={null} onDone={close} onCancel={close} />}
      </dialog>
    </div>
  );
}

interface FormOf {
  session: Session;
  said: string | null;
  onDone: () => void;
  onCancel?: () => void;
}

function SignInForm({ session, said, onDone, onCancel }: FormOf) {
  const [token, setToken] = useState("");
  const [refused, setRefused] = useState(said);
  const field = useRef<HTMLInputElement>(null);
  const submit = async (event: Event) => {
    event.preventDefault();
    const asked = token.trim();
    const why = asked === "" ? "a token is needed" : await session.signIn(asked);
    if (why === null) return onDone();
    setRefused(why);
    // What went wrong is read with the field that it is about.
    field.current?.focus();
  };
  return (
    <form class="sign-in" onSubmit={submit}>
      {/* Keepers of passwords ask whose it is. */}
      <input class="unseen" type="text" autocomplete="username" tabIndex={-1} aria-hidden="true" value="pointsman" readOnly />
      <label for="token">Token of the admin API</label>
      <input
        id="token"
        ref={field}
        type="password"
        autocomplete="current-password"
        spellcheck={false}
        autofocus
        value={token}
        aria-describedby="token-said"
        aria-invalid={refused !== null}
        onInput={(event) => setToken(event.currentTarget.value)}
      />
      <p id="token-said" class="said" role="alert">
        {refused ?? ""}
      </p>
      <div class="buttons">
        {onCancel && (
          <button type="button" onClick={onCancel}>
            Cancel
          </button>
        )}
        <button type="submit" class="main">
          Sign in
        </button>
      </div>
    </form>
  );
}
