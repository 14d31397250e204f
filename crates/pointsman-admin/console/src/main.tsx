// The console: a bar, and a page below it.

import "uplot/dist/uPlot.min.css";
import "./style.css";
import "./live/page.css";
import "./rules/page.css";
import "./servers/page.css";
import "./sticky/page.css";
import "./bandwidth/page.css";
import "./certificates/page.css";
import "./bench/page.css";

import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { BandwidthPage } from "./bandwidth/page";
import { BenchPage } from "./bench/page";
import { CertificatesPage } from "./certificates/page";
import { age, clock } from "./figures";
import { type Watching, useLooks } from "./looks";
import { LivePage } from "./live/page";
import { RulesPage } from "./rules/lazy";
import { ServersPage } from "./servers/page";
import { useSession } from "./session";
import { Gate, WhoLooks } from "./sign-in";
import { StickyPage } from "./sticky/page";

/** `isKept`: what it shows is from elsewhere, and as good where the switch is silent. */
const PAGES = [
  { hash: "#/live", name: "Live", page: LivePage, isKept: false },
  { hash: "#/rules", name: "Rules", page: RulesPage, isKept: false },
  { hash: "#/servers", name: "Servers", page: ServersPage, isKept: false },
  { hash: "#/sticky", name: "Sticky table", page: StickyPage, isKept: false },
  { hash: "#/bandwidth", name: "Bandwidth", page: BandwidthPage, isKept: false },
  { hash: "#/certificates", name: "Certificates", page: CertificatesPage, isKept: false },
  { hash: "#/bench", name: "Bench", page: BenchPage, isKept: true },
];

function Console() {
  const session = useSession();
  const hash = useHash();
  const watching = useLooks(session);
  const shown = PAGES.find((page) => page.hash === hash) ?? PAGES[0]!;
  useEffect(() => void (document.title = `${shown.name} · Pointsman`), [shown]);
  if (!session.access) return <Gate session={session} />;
  const Page = shown.page;
  const isStale = watching.trouble !== null && !shown.isKept;
  return (
    <>
      <header class="bar">
        <span class="brand">Pointsman</span>
        <nav aria-label="Pages">
          {PAGES.map(({ hash, name }) => (
            <a key={hash} href={hash} aria-current={hash === shown.hash ? "page" : undefined}>
              {name}
            </a>
          ))}
        </nav>
        <p class="pulse" role="status" data-state={watching.trouble ? "lost" : "live"}>
          {watching.trouble ? "not live" : watching.looks.length > 1 ? "live" : "looking"}
        </p>
        <WhoLooks session={session} />
      </header>
      {isStale && <Stale watching={watching} />}
      <main data-stale={isStale ? "" : undefined}>
        <h1 class="unseen">{shown.name}</h1>
        <Page session={session} watching={watching} />
      </main>
    </>
  );
}

/** That what is shown is no longer so, in front of it. The bar says it to who does not see. */
function Stale({ watching: { looks, trouble } }: { watching: Watching }) {
  const at = looks.at(-1)?.at;
  const since = at === undefined ? "" : `: what is shown is from ${clock(at)}, ${age(Date.now() / 1000 - at)} ago`;
  return (
    <p class="stale">
      {trouble}
      {since}
    </p>
  );
}

function useHash(): string {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const heard = () => setHash(location.hash);
    addEventListener("hashchange", heard);
    return () => removeEventListener("hashchange", heard);
  }, []);
  return hash;
}

render(<Console />, document.getElementById("console")!);
