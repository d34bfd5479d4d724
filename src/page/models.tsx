// The models: a row each, and a dialog with what can be done to one.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { DiskBody } from "../client/index.ts";
import { bytesText } from "../core/quantities.ts";
import { LoadButton } from "./load-button.tsx";
import { takesText } from "./memory-bars.ts";
import { ModelDialog } from "./model-dialog.tsx";
import { type ModelRow, modelRows } from "./model-row.ts";
import { Ago, Badge, TableHead, useShell } from "./parts.tsx";

const columns = [
  "Model",
  "Desired",
  "Observed",
  "Next step",
  "Size",
  "Memory",
  "Context",
  "In flight",
  "Queue",
  "Last used",
  "Action",
];

export interface ModelsProps {
  readonly disk: DiskBody | null;
  /** The model whose load is about to be asked for; null: none. */
  readonly onPreview: (id: string | null) => void;
}

export function Models({ disk, onPreview }: ModelsProps): JSX.Element | null {
  const { live } = useShell();
  const [open, setOpen] = useState<string | null>(null);
  if (!live.status) return null;
  const rows = modelRows(live.status, live.desired);
  const shown = rows.find(({ model }) => model.id === open);
  if (rows.length === 0) return <p class="dim">No models yet: pull one, or name one in the document.</p>;
  const lastUsed = (id: string): string | null | undefined =>
    live.lastUsed.get(id) ?? disk?.models.find((model) => model.id === id)?.lastUsed;
  return (
    <>
      <table class="cards">
        <TableHead columns={columns} />
        <tbody>
          {rows.map((row) => (
            <Row
              key={row.model.id}
              row={row}
              lastUsed={lastUsed(row.model.id)}
              onOpen={() => setOpen(row.model.id)}
              onPreview={onPreview}
            />
          ))}
        </tbody>
      </table>
      {shown && <ModelDialog row={shown} disk={disk} onClose={() => setOpen(null)} />}
    </>
  );
}

interface RowProps extends Pick<ModelsProps, "onPreview"> {
  readonly row: ModelRow;
  readonly lastUsed: string | null | undefined;
  readonly onOpen: () => void;
}

function Row({ row, lastUsed, onOpen, onPreview }: RowProps): JSX.Element {
  const { model, desiredText, state, tone, next, transfer, inFlight, queued } = row;
  const { id, runtime } = model;
  const share = transfer?.progress ? transfer.progress.completed / Math.max(1, transfer.progress.total) : null;
  return (
    <tr>
      <th scope="row">
        <button type="button" class="link" onClick={onOpen} aria-label={`Open ${id}`}>
          {id}
        </button>
      </th>
      <td data-label="Desired">{desiredText}</td>
      <td data-label="Observed">
        <Badge tone={tone}>{state}</Badge>
      </td>
      <td data-label="Next step" class="wide">
        {next}
        {share !== null && <progress aria-label={`Progress of ${id}`} value={share} max={1} />}
      </td>
      <td data-label="Size" class="amount">
        {runtime ? bytesText(runtime.bytes) : "–"}
      </td>
      <td data-label="Memory" class="amount">
        {takesText(model)}
      </td>
      <td data-label="Context">{runtime?.contextLength ?? "–"}</td>
      <td data-label="In flight">{inFlight}</td>
      <td data-label="Queue">{queued}</td>
      <td data-label="Last used">
        <Ago at={lastUsed} />
      </td>
      <td data-label="Action">
        <LoadButton row={row} onPreview={onPreview} />
      </td>
    </tr>
  );
}
