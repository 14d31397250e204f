// Who looks, and what they may do.

import { useCallback, useEffect, useLayoutEffect, useMemo, useState } from "preact/hooks";
import { type Access, Api, Refusal } from "./api";

/** How whoever looks stands with the switch. */
interface Standing {
  /** Nobody has answered yet; it does not answer; it wants to see something; it lets nobody in; it lets them in. */
  is: "asked" | "silent" | "stranger" | "barred" | "known";
  /** By which the switch is asked. */
  api: Api;
  /** Null unless it lets them in. */
  access: Access | null;
  /** What there is to say of that. */
  note: string | null;
}

export interface Session extends Standing {
  /** Nothing where it went well, otherwise why not. Who is gone by then is not signed in. */
  signIn: (token: string, isWanted: () => boolean) => Promise<string | null>;
  signOut: () => void;
  /** What another request was refused with: a token may have been taken away. */
  refused: (refusal: Error) => void;
}

/** How long until it is asked again: a token may go, and a switch come back. */
const AGAIN_MS = { asked: 0, silent: 2_000, known: 5_000 };

type Heard = (session: Session) => void;
const attendants: Heard[] = [];

/** Is told who looks whenever that changes, whichever page is shown. */
export const attend = (heard: Heard) => void attendants.push(heard);

export function useSession(): Session {
  const [standing, setStanding] = useState<Standing>(start);
  const { api } = standing;
  const look = useCallback(async () => {
    const next = await standingOf(api);
    setStanding((now) => {
      // Somebody has signed in or out meanwhile.
      if (now.api !== api) return now;
      // A switch that does not answer for a while is told with what was seen last.
      if (now.is === "known" && next.is === "silent") return { ...now };
      if (api !== next.api) return { ...next, note: "your token is no longer known" };
      return now.is === "known" && next.is === "known" ? { ...next, note: now.note } : next;
    });
  }, [api]);
  useEffect(() => {
    // Whom it does not let in it goes on not letting in, and each refusal is an error to the browser.
    if (standing.is === "stranger" || standing.is === "barred") return;
    const timer = setTimeout(look, AGAIN_MS[standing.is]);
    return () => clearTimeout(timer);
  }, [standing, look]);

  const signIn = useCallback(async (token: string, isWanted: () => boolean) => {
    if (/\s/.test(token)) return "the token alone is asked for, without its name";
    // What no header can have is no token.
    if (!/^[!-~]+$/.test(token)) return "the token is not known";
    const next = await standingOf(new Api(token));
    if (next.is !== "known" || !next.api.hasToken) return next.note;
    // Somebody else has come in meanwhile.
    if (isWanted()) setStanding((now) => (now.api === api ? next : now));
    return null;
  }, [api]);
  const signOut = useCallback(() => setStanding(start()), []);
  const refused = useCallback(
    (refusal: Error) => {
      if (refusal instanceof Refusal && refusal.status === 401) void look();
    },
    [look],
  );
  const session = useMemo(() => ({ ...standing, signIn, signOut, refused }), [standing, signIn, signOut, refused]);
  // Before anybody can press anything.
  useLayoutEffect(() => attendants.forEach((heard) => heard(session)), [session]);
  return session;
}

/** What it takes to do something, for whoever may only look. */
export function whatIsMissing(access: Access | null, toDo: string): string {
  if (access?.takes.includes("token")) return `Sign in to ${toDo}.`;
  if (access?.takes.includes("certificate")) return `To ${toDo} show a client certificate.`;
  return "Nothing can be changed from here: the configuration has neither `token_file` nor `client_ca` in `[admin]`.";
}

/** Whoever comes with a client certificate, or on the loopback, has no token to show. */
const start = (): Standing => ({ is: "asked", api: new Api(null), access: null, note: null });

async function standingOf(api: Api): Promise<Standing> {
  let refusal: Refusal;
  try {
    const access = await api.get<Access>("access");
    // Where reading is free, whoever shows a wrong token may read all the same.
    if (!api.hasToken || access.may === "change") return { is: "known", api, access, note: null };
    refusal = new Refusal(401, "the token is not known");
  } catch (error) {
    refusal = error as Refusal;
  }
  if (refusal.status === 401 && api.hasToken) return { ...(await standingOf(new Api(null))), note: refusal.message };
  const is = refusal.status === 401 ? "stranger" : refusal.status === 403 ? "barred" : "silent";
  return { is, api, access: null, note: is === "stranger" ? null : refusal.message };
}
