// One model: its conditions, and what can be done to it.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { DiskBody } from "../client/index.ts";
import { bytesText } from "../core/quantities.ts";
import { isWrong } from "../status/attention.ts";
import { LoadButton } from "./load-button.tsx";
import { loadText, takesText } from "./memory-bars.ts";
import type { ModelRow } from "./model-row.ts";
import { Badge, Dialog, ErrorNote, Field, submitting, useAction, useShell } from "./parts.tsx";

export interface ModelDialogProps {
  readonly row: ModelRow;
  readonly disk: DiskBody | null;
  readonly onClose: () => void;
}

export function ModelDialog({ row, disk, onClose }: ModelDialogProps): JSX.Element {
  const { model, desired } = row;
  const { client, notify } = useShell();
  const { isBusy, error, run } = useAction();
  const isPinned = desired?.pinned === true;
  const pin = async (): Promise<void> => {
    await client.desired.patch({ models: { [model.id]: { pinned: isPinned ? null : true } } });
    notify(isPinned ? `${model.id} may be unloaded again` : `${model.id} stays loaded once it is`);
  };
  return (
    <Dialog title={model.id} onClose={onClose}>
      {(close) => (
        <>
          <p class="row">
            <LoadButton row={row} />
            <button type="button" disabled={isBusy} aria-pressed={isPinned} onClick={() => run(pin)}>
              {isPinned ? "Unpin" : "Pin"}
            </button>
            <a href={`#logs/${encodeURIComponent(model.id)}`} onClick={close}>
              Logs
            </a>
            <a href={`#chat/${encodeURIComponent(model.id)}`} onClick={close}>
              Chat
            </a>
          </p>
          <ErrorNote error={error} />
          {model.runtime && <ContextForm row={row} />}
          <Facts row={row} />
          <Removal row={row} disk={disk} onRemoved={close} />
        </>
      )}
    </Dialog>
  );
}

function ContextForm({ row: { model, desired } }: { readonly row: ModelRow }): JSX.Element {
  const { client, notify } = useShell();
  const { isBusy, error, run } = useAction();
  const [size, setSize] = useState(String(desired?.ctxSize ?? model.runtime?.contextLength ?? ""));
  const set = async (): Promise<void> => {
    const { ctx_size } = await client.setContextSize(model.id, Number(size));
    setSize(String(ctx_size));
    notify(`The context size of ${model.id} is ${ctx_size}`);
  };
  return (
    <form class="row end" onSubmit={submitting(() => run(set))}>
      <Field label="Context size in tokens" type="number" value={size} onValue={setSize} required />
      <button type="submit" disabled={isBusy}>
        {isBusy ? "Applying…" : "Set"}
      </button>
      <ErrorNote error={error} />
    </form>
  );
}

function Facts({ row: { model, next } }: { readonly row: ModelRow }): JSX.Element {
  const { runtime, conditions } = model;
  const load = loadText(model);
  return (
    <>
      <dl class="facts">
        <dt>Next step</dt>
        <dd>{next}</dd>
        <dt>Size</dt>
        <dd>{runtime ? bytesText(runtime.bytes) : "–"}</dd>
        <dt>Memory</dt>
        <dd>
          {[takesText(model), runtime?.need?.source, runtime?.pid && `process ${runtime.pid}`]
            .filter(Boolean)
            .join(", ")}
        </dd>
        {load !== null && (
          <>
            <dt>Load</dt>
            <dd>{load}</dd>
          </>
        )}
      </dl>
      <h3>Conditions</h3>
      <ul class="plain">
        {conditions.map((condition) => (
          <li key={condition.type}>
            <Badge tone={isWrong(condition) ? "bad" : condition.status === "True" ? "good" : "idle"}>
              {condition.type} {condition.status}
            </Badge>{" "}
            {condition.reason}: {condition.message}
          </li>
        ))}
      </ul>
    </>
  );
}

interface RemovalProps {
  readonly row: ModelRow;
  readonly disk: DiskBody | null;
  readonly onRemoved: () => void;
}

/** A model without files is only taken out of the document, which cancels its pull. */
function Removal({ row: { model }, disk, onRemoved }: RemovalProps): JSX.Element {
  const { client, notify } = useShell();
  const { isBusy, error, run } = useAction();
  const [isAsked, setAsked] = useState(false);
  const { id, runtime } = model;
  const bytes = disk?.models.find((each) => each.id === id)?.bytes ?? runtime?.bytes ?? 0;
  const remove = async (): Promise<void> => {
    if (runtime) {
      const { freed_bytes, deleted_files } = await client.remove(id);
      notify(`${id} is deleted: ${bytesText(freed_bytes)} in ${deleted_files} files`);
    } else {
      await client.desired.patch({ models: { [id]: null } });
      notify(`${id} is taken out of the document`);
    }
    onRemoved();
  };
  const what = runtime ? `Delete ${bytesText(bytes)} of files` : "Take it out of the document";
  return (
    <section aria-label="Removal" class="danger">
      {!isAsked && (
        <button type="button" class="quiet" onClick={() => setAsked(true)}>
          Remove…
        </button>
      )}
      {isAsked && (
        <>
          <p>
            {runtime
              ? `This deletes ${bytesText(bytes)} from the disk and takes ${id} out of the document. Responses in flight are awaited first.`
              : `This takes ${id} out of the document, which cancels its download.`}
          </p>
          <p class="row">
            <button type="button" class="bad" disabled={isBusy} onClick={() => run(remove)}>
              {isBusy ? "Removing…" : what}
            </button>
            <button type="button" class="quiet" onClick={() => setAsked(false)}>
              Keep it
            </button>
          </p>
        </>
      )}
      <ErrorNote error={error} />
    </section>
  );
}
