// Certificates: how long each is good for, who shows it, what is odd about it; and another one in its place.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { Certificate, Refusal } from "../api";
import { useEvery } from "../every";
import type { Watching } from "../looks";
import { Notice, type Said, useWhyNot } from "../notice";
import { type Part, Parts } from "../parts";
import { type Session, whatIsMissing } from "../session";

const EVERY_MS = 10_000;
/** From so many days on a bar warns. */
const DAYS = { warn: 30, bad: 7 };

export function CertificatesPage({ session, watching }: { session: Session; watching: Watching }) {
  const { api, refused } = session;
  const [certificates, setCertificates] = useState<Certificate[] | null>(null);
  const [trouble, setTrouble] = useState<string | null>(null);
  const [replaced, setReplaced] = useState<Certificate | null>(null);
  const [said, setSaid] = useState<Said | null>(null);
  const mayChange = session.access?.may === "change";
  const again = useCallback(
    async (isWanted: () => boolean) => {
      try {
        const { certificates } = await api.get<{ certificates: Certificate[] }>("certificates");
        if (!isWanted()) return;
        setCertificates([...certificates].sort((a, b) => Date.parse(a.not_after) - Date.parse(b.not_after)));
        setTrouble(null);
      } catch (error) {
        if (!isWanted()) return;
        setTrouble((error as Error).message);
        refused(error as Error);
      }
    },
    [api, refused],
  );
  useEvery(EVERY_MS, again);
  const putAway = useCallback(() => setSaid(null), []);
  const done = async (said: Said) => {
    setSaid(said);
    await again(() => true);
  };
  return (
    <>
      {!mayChange && <p class="quiet">{whatIsMissing(session.access, "replace a certificate")}</p>}
      {trouble && !watching.trouble && <p class="stale">{trouble}: what is shown of certificates is older</p>}
      {!certificates && !trouble && <p class="quiet">looking…</p>}
      {certificates?.length === 0 && <p class="quiet">No listener and no pool shows a certificate.</p>}
      {certificates && certificates.length > 0 && (
        <section aria-labelledby="certificates">
          <h2 id="certificates" tabIndex={-1}>Certificates, those first that end first</h2>
          <Table {...{ certificates, mayChange, replace: setReplaced }} />
        </section>
      )}
      <Notice said={said} forget={putAway} />
      {replaced && <ReplaceDialog key={replaced.id} session={session} old={replaced} done={done} onDone={() => setReplaced(null)} />}
    </>
  );
}

interface TableOf {
  certificates: Certificate[];
  mayChange: boolean;
  replace: (certificate: Certificate) => void;
}

function Table({ certificates, mayChange, replace }: TableOf) {
  return (
    <div class="scroll" role="region" aria-label="Certificates" tabIndex={0}>
      <table class="certificates">
        <thead>
          <tr>
            <th scope="col">Names</th>
            <th scope="col" class="left">Left of its time</th>
            <th scope="col">Shown by</th>
            <th scope="col">Key and issuer</th>
            <th scope="col">What is odd about it</th>
            {mayChange && <th scope="col"><span class="unseen">Change</span></th>}
          </tr>
        </thead>
        <tbody>
          {certificates.map((certificate) => (
            <tr key={certificate.id} data-certificate={certificate.id}>
              <th scope="row">{namesOf(certificate).map((name) => <div key={name}>{name}</div>)}</th>
              <td class="left">
                <Left certificate={certificate} />
              </td>
              <td>{shownBy(certificate).map((who) => <div key={who}>{who}</div>)}</td>
              <td>
                <div>{certificate.key}</div>
                <div class="quiet">{certificate.issuer}</div>
              </td>
              <td class="odd">
                {certificate.concerns.length === 0 ? <span class="quiet">nothing</span> : certificate.concerns.map((concern) => <div key={concern}>{concern}</div>)}
              </td>
              {mayChange && (
                <td class="n">
                  <button type="button" aria-label={`Replace that of ${namesOf(certificate)[0]}`} onClick={() => replace(certificate)}>
                    Replace…
                  </button>
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** What is left of its time, as a bar that warns. */
function Left({ certificate: { days_left, not_before, not_after } }: { certificate: Certificate }) {
  const end = Date.parse(not_after);
  const left = Math.max(0, end - Date.now());
  const days = days_left ?? 0;
  const mood: Part["mood"] = days_left === null || days <= DAYS.bad ? "bad" : days <= DAYS.warn ? "warn" : "good";
  const said = days_left === null ? "its time is over" : `${days} ${days === 1 ? "day" : "days"} left`;
  return (
    <>
      <Parts parts={[{ name: "left", value: left, mood }]} whole={end - Date.parse(not_before)} said={said} />
      <span class="days" data-mood={mood}>{said}</span>
      <span class="quiet">, until {not_after.slice(0, 10)}</span>
    </>
  );
}

const namesOf = ({ names, subject }: Certificate) => (names.length > 0 ? names : [subject]);

function shownBy({ listeners, pools, admin }: Certificate): string[] {
  const who = [...listeners.map((name) => `listener ${name}`), ...pools.map((name) => `pool ${name}, to its servers`)];
  return admin ? [...who, "the admin listener"] : who;
}

interface ReplaceOf {
  session: Session;
  old: Certificate;
  done: (said: Said) => Promise<void>;
  onDone: () => void;
}

/** What is written or chosen there stays in the dialog, and is gone with it. */
function ReplaceDialog({ session: { api, refused }, old, done, onDone }: ReplaceOf) {
  const dialog = useRef<HTMLDialogElement>(null);
  const field = useRef<HTMLTextAreaElement>(null);
  const [said, setSaid] = useState("");
  const [isBusy, setBusy] = useState(false);
  const whyNot = useWhyNot("another certificate serves by now");
  useEffect(() => dialog.current?.showModal(), []);
  const submit = async (event: Event) => {
    event.preventDefault();
    if (isBusy) return;
    setBusy(true);
    setSaid("");
    try {
      const pem = field.current!.value;
      const replaced = await api.change<Certificate & { names_gone: string[]; text: string }>("PUT", `certificates/${old.id}`, pem, old.fingerprint);
      const gone = replaced.names_gone.length > 0 ? `; it is no more for ${replaced.names_gone.join(", ")}` : "";
      const text = `${namesOf(replaced)[0]} has another certificate, until ${replaced.not_after.slice(0, 10)}${gone}`;
      dialog.current?.close();
      await done({ text, lines: replaced.text.trimEnd(), isBad: false });
    } catch (error) {
      setSaid(whyNot(error as Refusal));
      refused(error as Error);
      setBusy(false);
    }
  };
  const read = async (event: Event) => {
    const files = [...((event.currentTarget as HTMLInputElement).files ?? [])];
    field.current!.value = (await Promise.all(files.map((file) => file.text()))).join("\n");
  };
  return (
    <dialog ref={dialog} class="replace" aria-labelledby="replace-title" onClose={onDone}>
      <h2 id="replace-title">Another certificate for {namesOf(old)[0]}</h2>
      <form class="fields" onSubmit={submit}>
        <label for="pem">The chain, the leaf first, and its private key, as PEM. Without a key the one that serves is kept.</label>
        <textarea id="pem" ref={field} rows={12} required autofocus spellcheck={false} autocomplete="off" placeholder="-----BEGIN CERTIFICATE-----" />
        <label for="pem-files">or out of files</label>
        <input id="pem-files" type="file" multiple accept=".pem,.crt,.cer,.key" onChange={read} />
        <p class="quiet">New handshakes get it at once, and it stands in {old.file}. What goes on goes on.</p>
        <div class="said" role="alert">{said}</div>
        <div class="buttons">
          <button type="button" onClick={() => dialog.current?.close()}>
            Cancel
          </button>
          <button type="submit" class="main" aria-disabled={isBusy}>
            {isBusy ? "…" : "Replace"}
          </button>
        </div>
      </form>
    </dialog>
  );
}
