// Requests in flight, each with its end.
import type { JSX } from "preact";
import { Ago, ErrorNote, Section, useAction, useLoaded, useShell } from "./parts.tsx";

export function Requests(): JSX.Element | null {
  const { client, live, notify } = useShell();
  const { inFlight = {}, waiting = [] } = live.status ?? {};
  const isIdle = Object.keys(inFlight).length === 0 && waiting.length === 0;
  // Read again when the counts change: an event has them.
  const counts = JSON.stringify([inFlight, waiting]);
  const { value, error } = useLoaded((signal) => client.requests.list({ signal }), [client, counts]);
  const { isBusy, error: failure, run } = useAction();
  if (isIdle) return null;
  const cancel = async (id: number): Promise<void> => {
    notify((await client.requests.cancel(id)) ? `Request ${id} is cancelled` : `Request ${id} was over already`);
  };
  return (
    <Section title="Requests in flight">
      <ErrorNote error={error ?? failure} />
      <ul class="plain">
        {value?.map(({ id, model, route, state, startedAt }) => (
          <li key={id} class="row spread">
            <span>
              {model} <small>{route}</small> {state === "waiting" ? "waits for its model" : "is answered"}{" "}
              <small>
                since <Ago at={startedAt} />
              </small>
            </span>
            <button
              type="button"
              disabled={isBusy}
              onClick={() => run(() => cancel(id))}
              aria-label={`Cancel request ${id}`}
            >
              Cancel
            </button>
          </li>
        ))}
      </ul>
    </Section>
  );
}
