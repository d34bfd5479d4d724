// Loads a model or ejects it.
import type { JSX } from "preact";
import type { ModelRow } from "./model-row.ts";
import { ErrorNote, useAction, useShell } from "./parts.tsx";

export function LoadButton({ row: { model } }: { readonly row: ModelRow }): JSX.Element | null {
  const { client, notify } = useShell();
  const { isBusy, error, run } = useAction();
  const { id, runtime } = model;
  if (!runtime) return null;
  const isLoaded = runtime.state !== "unloaded";
  const act = async (): Promise<void> => {
    if (isLoaded) {
      await client.eject(id);
      notify(`${id} is unloaded`);
    } else {
      await client.load(id);
      notify(`${id} is being loaded`);
    }
  };
  return (
    <>
      <button
        type="button"
        disabled={isBusy}
        onClick={() => run(act)}
        aria-label={`${isLoaded ? "Eject" : "Load"} ${id}`}
      >
        {isLoaded ? "Eject" : "Load"}
      </button>
      <ErrorNote error={error} />
    </>
  );
}
