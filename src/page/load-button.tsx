// Loads a model or ejects it.
import type { JSX } from "preact";
import { loadText } from "./memory-bars.ts";
import type { ModelRow } from "./model-row.ts";
import { ErrorNote, useAction, useShell } from "./parts.tsx";

export interface LoadButtonProps {
  readonly row: ModelRow;
  /** While one points at it, or it has the focus. */
  readonly onPreview?: (id: string | null) => void;
}

export function LoadButton({ row: { model }, onPreview = () => undefined }: LoadButtonProps): JSX.Element | null {
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
        onMouseEnter={() => onPreview(id)}
        onFocus={() => onPreview(id)}
        onMouseLeave={() => onPreview(null)}
        onBlur={() => onPreview(null)}
        aria-label={`${isLoaded ? "Eject" : "Load"} ${id}`}
        title={loadText(model) ?? undefined}
      >
        {isLoaded ? "Eject" : "Load"}
      </button>
      <ErrorNote error={error} />
    </>
  );
}
