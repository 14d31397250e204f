// The pane in which a request is tried out.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Lines } from "../notice";
import type { Circumstances } from "./calls";
import type { Desk } from "./desk";
import { Outcome } from "./outcome";
import { type Kind, type Trial } from "./trial";

const KINDS: [Kind, string][] = [
  ["none", "No body"],
  ["json", "JSON"],
  ["xml", "XML"],
  ["form", "Form"],
];
const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

export function TrySection({ desk }: { desk: Desk }) {
  const { trial } = desk;
  const submit = (event: Event) => {
    event.preventDefault();
    void trial.run();
  };
  return (
    <section class="try" aria-labelledby="try-title">
      <div class="head">
        <h2 id="try-title">Try it</h2>
        {desk.readsRequests && (
          <div class="choice" role="group" aria-labelledby="try-title">
            {[true, false].map((isBuilt) => (
              <button key={String(isBuilt)} type="button" aria-pressed={trial.isBuilt === isBuilt} onClick={() => trial.showParts(isBuilt)}>
                {isBuilt ? "In parts" : "As text"}
              </button>
            ))}
          </div>
        )}
      </div>
      <form class="trial" onSubmit={submit}>
        {desk.readsRequests && (trial.isBuilt ? <Parts trial={trial} /> : <Text trial={trial} />)}
        <From trial={trial} />
        <div class="buttons">
          <button type="submit" class="main" aria-disabled={trial.isBusy}>
            Ask the rules
          </button>
        </div>
      </form>
      <div role="status" class="outcome">
        {trial.isBusy && <p class="quiet">asking…</p>}
        {trial.trouble && (
          <>
            <p class="said">{trial.trouble.text}</p>
            {trial.trouble.lines && <Lines text={trial.trouble.lines} />}
          </>
        )}
        {trial.explained && trial.isOfServing && desk.isChanged && <p class="quiet">By the rules that serve, not by those in the editor.</p>}
        {trial.explained && <Outcome desk={desk} explained={trial.explained} />}
      </div>
    </section>
  );
}

function Parts({ trial }: { trial: Trial }) {
  const { method, target, headers, kind, body } = trial.parts;
  return (
    <>
      <Row>
        <Field id="try-method" name="Method">
          <input id="try-method" list="methods" size={8} required value={method} onInput={(event) => trial.build({ method: event.currentTarget.value })} />
          <datalist id="methods">
            {METHODS.map((name) => (
              <option key={name} value={name} />
            ))}
          </datalist>
        </Field>
        <Field id="try-target" name="Target" isWide>
          <input id="try-target" required value={target} onInput={(event) => trial.build({ target: event.currentTarget.value })} />
        </Field>
      </Row>
      <Field id="try-headers" name="Headers, one a line">
        <textarea id="try-headers" rows={3} spellcheck={false} value={headers} onInput={(event) => trial.build({ headers: event.currentTarget.value })} />
      </Field>
      <div class="choice" role="group" aria-label="Body">
        {KINDS.map(([known, name]) => (
          <button key={known} type="button" data-kind={known} aria-pressed={kind === known} onClick={() => trial.build(withKind(trial, known))}>
            {name}
          </button>
        ))}
      </div>
      {kind !== "none" && (
        <Field id="try-body" name="Body">
          <textarea id="try-body" rows={6} spellcheck={false} value={body} onInput={(event) => trial.build({ body: event.currentTarget.value })} />
        </Field>
      )}
    </>
  );
}

/** What has a body is mostly a POST. */
function withKind(trial: Trial, kind: Kind) {
  const { method } = trial.parts;
  return kind !== "none" && method === "GET" ? { kind, method: "POST" } : { kind };
}

function Text({ trial }: { trial: Trial }) {
  const length = trial.lengthOfBody;
  return (
    <>
      <Field id="try-text" name="The request, as it comes">
        <textarea id="try-text" rows={10} spellcheck={false} required value={trial.text} onInput={(event) => trial.write(event.currentTarget.value)} />
      </Field>
      {trial.base64 !== null && <p class="quiet">Its bytes are not all text: as long as you leave it as it is they are sent as they are.</p>}
      {trial.note && <p class="quiet">{trial.note}</p>}
      {length !== null && (
        <p class="head">
          <span class="quiet">Content-Length says something else.</span>
          <button type="button" onClick={() => trial.correctLength()}>
            Set it to {length}
          </button>
        </p>
      )}
    </>
  );
}

const MORE: [keyof Circumstances, string, string][] = [
  ["srcport", "Its port", "40000"],
  ["dstip", "To address", ""],
  ["dstport", "To port", ""],
  ["proxied", "Client in a PROXY header", ""],
  ["alpn", "ALPN", "h2, http/1.1"],
  ["cipher", "Cipher", ""],
  ["client_subject", "Certificate: subject", "CN=client"],
  ["client_san", "Certificate: further names", "a.example, b.example"],
  ["client_fingerprint", "Certificate: fingerprint", ""],
  ["trusted_proxy", "Proxies to believe", "10.0.0.0/8"],
];

/** Where it comes from, and over what. */
function From({ trial }: { trial: Trial }) {
  const { from } = trial;
  const isOpen = MORE.some(([name]) => shown(from[name]) !== "") || from.resumed === true;
  const [wasOpened, setOpened] = useState(false);
  return (
    <fieldset>
      <legend>It comes</legend>
      <Row>
        <Field id="try-srcip" name="From address">
          <input id="try-srcip" size={14} placeholder="127.0.0.1" value={shown(from.srcip)} onInput={(event) => trial.setFrom(read("srcip", event.currentTarget.value))} />
        </Field>
        <Field id="try-tls" name="Over">
          <select id="try-tls" value={from.tls ?? ""} onChange={(event) => trial.setFrom({ tls: event.currentTarget.value || null })}>
            <option value="">as the listener has it</option>
            <option value="1.3">TLS 1.3</option>
            <option value="1.2">TLS 1.2</option>
          </select>
        </Field>
        <Field id="try-sni" name="Server name">
          <input id="try-sni" size={14} value={shown(from.sni)} onInput={(event) => trial.setFrom(read("sni", event.currentTarget.value))} />
        </Field>
      </Row>
      <details open={isOpen || wasOpened} onToggle={(event) => setOpened(event.currentTarget.open)}>
        <summary>More</summary>
        <div class="more">
          {MORE.map(([name, label, hint]) => (
            <Field key={name} id={`try-${name}`} name={label}>
              <input id={`try-${name}`} placeholder={hint} value={shown(from[name])} onInput={(event) => trial.setFrom(read(name, event.currentTarget.value))} />
            </Field>
          ))}
          <label class="tick">
            <input type="checkbox" checked={from.resumed === true} onChange={(event) => trial.setFrom({ resumed: event.currentTarget.checked })} /> an earlier TLS session goes on
          </label>
        </div>
      </details>
    </fieldset>
  );
}

const LISTS = new Set<keyof Circumstances>(["alpn", "client_san", "trusted_proxy"]);

const shown = (value: Circumstances[keyof Circumstances]) => (Array.isArray(value) ? value.join(", ") : value === null || value === undefined ? "" : String(value));

function read(name: keyof Circumstances, text: string): Circumstances {
  const value = text.trim();
  if (LISTS.has(name)) return { [name]: value === "" ? [] : value.split(/\s*,\s*/) };
  if (name === "srcport" || name === "dstport") return { [name]: /^\d+$/.test(value) ? Number(value) : null };
  return { [name]: value === "" ? null : value };
}

const Row = ({ children }: { children: ComponentChildren }) => <div class="row">{children}</div>;

function Field({ id, name, isWide = false, children }: { id: string; name: string; isWide?: boolean; children: ComponentChildren }) {
  return (
    <div class="field" data-wide={isWide ? "" : undefined}>
      <label for={id}>{name}</label>
      {children}
    </div>
  );
}
