// What two sets of rules decide differently, each way with a request that shows it.

import { type Compared, labelOf, type Way } from "./calls";
import type { Desk } from "./desk";

const WAYS_MAX = 100;

interface DifferenceOf {
  desk: Desk;
  compared: Compared;
  names: [string, string];
}

export function Difference({ desk, compared, names }: DifferenceOf) {
  const { verdict, summary, difference } = compared;
  const ways = difference.compared.flatMap(({ ways, listener }) => ways.map((way) => ({ way, listener })));
  const unknown = difference.compared.flatMap(({ unknown }) => unknown);
  const notes = difference.compared.flatMap(({ notes }) => notes);
  const hasListeners = new Set(ways.map(({ listener }) => listener)).size > 1;
  return (
    <div class="difference" data-verdict={verdict}>
      <p>{verdict === "equal" ? "Every request is decided alike: this is proved." : summary}</p>
      {ways.length > 0 && (
        <div class="scroll" role="region" aria-label="What is decided otherwise" tabIndex={0}>
          <table class="ways">
            <thead>
              <tr>
                {hasListeners && <th scope="col">Listener</th>}
                <th scope="col">{names[0]}</th>
                <th scope="col">{names[1]}</th>
                <th scope="col">For instance</th>
              </tr>
            </thead>
            <tbody>
              {ways.slice(0, WAYS_MAX).map(({ way, listener }, index) => (
                <tr key={index}>
                  {hasListeners && <td>{listener}</td>}
                  <Side side={way.old} />
                  <Side side={way.new} />
                  <td>
                    <WitnessButton desk={desk} way={way} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {unknown.map(({ rules, reason }, index) => (
        <p key={index}>
          not settled: {rules.join(", ")}: {reason.text}
        </p>
      ))}
      {notes.map((note) => (
        <p key={note} class="quiet">
          {note}
        </p>
      ))}
    </div>
  );
}

function Side({ side }: { side: Way["old"] }) {
  return (
    <td>
      <b>{side.rule}</b> <code>{side.action}</code>
      {side.note && <span class="quiet"> {side.note}</span>}
    </td>
  );
}

function WitnessButton({ desk, way: { witness } }: { desk: Desk; way: Way }) {
  const tryOut = () => {
    desk.trial.take(witness);
    void desk.trial.run();
  };
  return (
    <button type="button" class="witness" onClick={tryOut}>
      Try <code>{labelOf(witness)}</code>
    </button>
  );
}
