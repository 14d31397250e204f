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

/** Whether somebody has just pressed what is gone now: they are to go on from what stands in its place. */
let hasPressed = false;

/** Who is signed in, and the way in or out. */
export function WhoLooks({ session }: { session: Session }) {
  const box = useRef<HTMLDivElement>(null);
  const [isOpen, setOpen] = useState(false);
  const { access } = session;
  useEffect(() => {
    // Before the window nothing has the focus.
    if (isOpen || !hasPressed || !box.current) return;
    hasPressed = false;
    box.current.querySelector("button")?.focus();
  }, [access?.may, isOpen]);
  const signOut = () => {
    hasPressed = true;
    session.signOut();
  };
  if (!access) return null;
  return (
    <div class="who" ref={box}>
      {access.may === "change" ? <Known session={session} signOut={signOut} /> : <Looking session={session} signIn={() => setOpen(true)} />}
      {isOpen && <SignInDialog session={session} onDone={() => setOpen(false)} />}
    </div>
  );
}

function Known({ session: { api, access }, signOut }: { session: Session; signOut: () => void }) {
  return (
    <>
      <span>
        <b>{access!.who}</b> may change
      </span>
      {api.hasToken ? (
        <button type="button" onClick={signOut}>
          Sign out
        </button>
      ) : (
        // The browser shows it with each request: there is no way out but to have it show another one.
        <span>by client certificate</span>
      )}
    </>
  );
}

function Looking({ session: { note, access }, signIn }: { session: Session; signIn: () => void }) {
  return (
    <>
      {note !== null && <span class="note">{note}</span>}
      <span>you may look</span>
      {access!.takes.includes("token") && (
        <button type="button" onClick={signIn}>
          Sign in
        </button>
      )}
    </>
  );
}

function SignInDialog({ session, onDone }: { session: Session; onDone: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} aria-labelledby="sign-in-title" onClose={onDone}>
      <h2 id="sign-in-title">Sign in</h2>
      <SignInForm session={session} said={null} onDone={onDone} onCancel={() => dialog.current?.close()} />
    </dialog>
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
  const isGone = useRef(false);
  useEffect(() => () => void (isGone.current = true), []);
  const submit = async (event: Event) => {
    event.preventDefault();
    const asked = token.trim();
    const why = asked === "" ? "a token is needed" : await session.signIn(asked, () => !isGone.current);
    if (isGone.current) return;
    if (why === null) {
      hasPressed = true;
      return onDone();
    }
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
