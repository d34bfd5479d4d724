// How far a transfer is: a bar, bytes, rate and time left.
import type { JSX } from "preact";
import type { StatusBody } from "../client/index.ts";
import { amounts } from "../core/quantities.ts";

type Progress = NonNullable<StatusBody["running"][number]["progress"]>;

export function TransferBar({ label, progress }: { readonly label: string; readonly progress: Progress }): JSX.Element {
  return (
    <div class="transfer">
      <progress aria-label={label} value={progress.completed} max={Math.max(1, progress.total)} />
      <small>{amounts(progress)}</small>
    </div>
  );
}
