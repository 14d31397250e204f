// Somebody else has published meanwhile: nothing is lost, and it is said who.

import { useEffect, useState } from "preact/hooks";
import { PATIENCE_MS } from "../api";
import type { Compared, Version } from "./calls";
import type { Desk } from "./desk";
import { Difference } from "./difference";

export function Newer({ desk }: { desk: Desk }) {
  const { newer } = desk;
  const [theirs, setTheirs] = useState<Version | null>(null);
  const [mine, setMine] = useState<Version | null>(null);
  const [compared, setCompared] = useState<Compared | null>(null);
  useEffect(() => {
    [setTheirs, setMine].forEach((set) => set(null));
    setCompared(null);
    if (newer === null) return;
    desk.session.api.get<{ versions: Version[] }>("versions").then(({ versions }) => {
      const own = versions.filter(({ file }) => file === desk.rules.file);
      setTheirs(own.find(({ serves }) => serves) ?? null);
      setMine(own.find(({ rules_version }) => rules_version === desk.rules.rules_version) ?? null);
    }, desk.session.refused);
  }, [desk, newer]);
  if (newer === null) return null;
  const look = async () => {
    const path = `versions/${theirs!.n}/diff?of=${theirs!.rules_version}&from=${mine!.n}&from_of=${mine!.rules_version}`;
    const { api } = desk.session;
    try {
      setCompared(await api.get<Compared>(path, PATIENCE_MS.change));
    } catch (error) {
      desk.refused(error, api);
    }
  };
  return (
    <section class="newer" role="alert" aria-labelledby="newer-title">
      <h2 id="newer-title">Other rules serve by now than you began from</h2>
      {theirs && (
        <p>
          {theirs.who === "-" ? "They serve since" : `${theirs.who} has published them at`} {theirs.when}
          {theirs.why && `: ${theirs.why}`}.
        </p>
      )}
      <p>What you have written is kept.</p>
      {compared && <Difference desk={desk} compared={compared} names={["before", "theirs"]} />}
      <p class="head">
        {theirs && mine && !compared && (
          <button type="button" onClick={look}>
            What they have changed
          </button>
        )}
        {desk.mayChange && (
          <>
            <button type="button" onClick={() => desk.goOnFromTheirs()}>
              Keep mine, compare with theirs
            </button>
            <button type="button" onClick={() => desk.takeTheirs()}>
              Take theirs
            </button>
          </>
        )}
      </p>
    </section>
  );
}
