// The page Rules, which is loaded when it is wanted: the editor is larger than all the rest.

import type { FunctionComponent } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Watching } from "../looks";
import type { Session } from "../session";

interface PageOf {
  session: Session;
  watching: Watching;
}

let loaded: FunctionComponent<PageOf> | null = null;

export function RulesPage(props: PageOf) {
  const [Page, setPage] = useState(() => loaded);
  const [isMissing, setMissing] = useState(false);
  useEffect(() => {
    if (loaded) return;
    import("./page").then(
      (module) => {
        loaded = module.RulesPage;
        setPage(() => loaded);
      },
      () => setMissing(true),
    );
  }, []);
  if (Page) return <Page {...props} />;
  // Another version of the switch has other files.
  return <p role="status">{isMissing ? "The editor cannot be loaded: load the console again." : "looking…"}</p>;
}
