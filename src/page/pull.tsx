// Adds a model: found on the hub, pulled with progress, cancelled.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { HubModels } from "../client/index.ts";
import { memoryText } from "../core/memory-text.ts";
import { bytesText } from "../core/quantities.ts";
import { isWrong } from "../status/attention.ts";
import { Dialog, ErrorNote, Field, submitting, TableHead, useAction, useLoaded, useShell } from "./parts.tsx";
import { kindOf, quantsOf } from "./quants.ts";
import { TransferBar } from "./transfer-bar.tsx";

/** ms without typing before the hub is asked. */
const typingMs = 300;

export function PullDialog({ onClose }: { readonly onClose: () => void }): JSX.Element {
  const { client } = useShell();
  const [text, setText] = useState("");
  const [repo, setRepo] = useState<string | null>(null);
  const [pulled, setPulled] = useState<string | null>(null);
  const { isBusy, error, run } = useAction();
  const pull = (id: string): void =>
    run(async () => {
      await client.desired.patch({ models: { [id]: {} } });
      setPulled(id);
    });
  const kind = kindOf(text.trim());
  return (
    <Dialog title="Pull a model" onClose={onClose}>
      {() => (
        <>
          <form onSubmit={submitting(() => kind === "model" && pull(text.trim()))}>
            <Field
              label="Search the hub, or OWNER/NAME:TAG"
              placeholder="gemma"
              value={text}
              onValue={(value) => {
                setText(value);
                setRepo(kindOf(value.trim()) === "repository" ? value.trim() : null);
              }}
            />
            {kind === "model" && (
              <button type="submit" disabled={isBusy}>
                Pull {text.trim()}
              </button>
            )}
          </form>
          <ErrorNote error={error} />
          {pulled !== null && <Pulled id={pulled} />}
          {repo === null ? (
            <Found text={text} onChoose={setRepo} />
          ) : (
            <Quants repo={repo} isBusy={isBusy} onBack={() => setRepo(null)} onPull={pull} />
          )}
        </>
      )}
    </Dialog>
  );
}

function Found({ text, onChoose }: { readonly text: string; readonly onChoose: (repo: string) => void }): JSX.Element {
  const { client } = useShell();
  const [asked, setAsked] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setAsked(text.trim()), typingMs);
    return () => clearTimeout(timer);
  }, [text]);
  const { value: repos, error } = useLoaded(
    (signal) => client.searchHub(asked, { limit: 20, license: true, signal }),
    [client, asked],
  );
  return (
    <>
      <ErrorNote error={error} />
      <h3>{asked === "" ? "Most downloaded" : "Repositories"}</h3>
      {repos?.length === 0 && <p class="dim">The hub has no GGUF repository of this name.</p>}
      <ul class="plain choices">
        {repos?.map(({ id, downloads, likes, license }) => (
          <li key={id}>
            <button type="button" class="link" onClick={() => onChoose(id)}>
              {id}
            </button>
            <small>
              {downloads.toLocaleString("en")} downloads, {likes.toLocaleString("en")} likes, license{" "}
              {license ?? "not stated"}
            </small>
          </li>
        ))}
      </ul>
    </>
  );
}

interface QuantsProps {
  readonly repo: string;
  readonly isBusy: boolean;
  readonly onBack: () => void;
  readonly onPull: (id: string) => void;
}

function Quants({ repo, isBusy, onBack, onPull }: QuantsProps): JSX.Element {
  const { client, live } = useShell();
  const { value: files, error } = useLoaded((signal) => client.repoFiles(repo, { signal }), [client, repo]);
  // It reads the heads of the files on the hub, which takes a while: sizes are shown before.
  const { value: models } = useLoaded((signal) => client.repoModels(repo, { signal }), [client, repo]);
  const { value: named } = useLoaded(
    (signal) => client.searchHub(repo, { limit: 20, license: true, signal }),
    [client, repo],
  );
  const license = named?.find(({ id }) => id.toLowerCase() === repo.toLowerCase())?.license;
  const memoryOf = (tag: string): string => memoryNote(models?.find((model) => model.tag === tag));
  const here = new Set(live.status?.models.filter(({ runtime }) => runtime).map(({ id }) => id));
  const quants = files && quantsOf(repo, files);
  return (
    <>
      <div class="row spread">
        <h3>{repo}</h3>
        <button type="button" class="quiet" onClick={onBack}>
          Other repositories
        </button>
      </div>
      <p>License: {license ?? (named ? "not stated" : "…")}</p>
      <ErrorNote error={error} />
      {quants?.length === 0 && <p class="dim">It has no whole model in GGUF files.</p>}
      <table>
        <TableHead columns={["Quant", "Size", "Memory", "Action"]} />
        <tbody>
          {quants?.map(({ id, tag, bytes, files: count }) => (
            <tr key={id}>
              <th scope="row">{tag}</th>
              <td>
                {bytesText(bytes)}
                {count > 1 && ` in ${count} files`}
              </td>
              <td>{memoryOf(tag)}</td>
              <td>
                {here.has(id) ? (
                  "here"
                ) : (
                  <button type="button" disabled={isBusy} onClick={() => onPull(id)} aria-label={`Pull ${tag}`}>
                    Pull
                  </button>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}

/** Whether it fits, alone, by an estimate. */
function memoryNote(model: HubModels[number] | undefined): string {
  if (model === undefined) return "…";
  if (model.need === null) return model.why ?? "not known";
  return `${memoryText(model.need.bytes)}, ${model.fits === false ? "too large" : "fits"}`;
}

/** What becomes of it, until it is here. */
function Pulled({ id }: { readonly id: string }): JSX.Element | null {
  const { client, live } = useShell();
  const { isBusy, error, run } = useAction();
  const model = live.status?.models.find((each) => each.id === id);
  if (!model) return null;
  const action = live.status?.running.find((each) => each.model === id && each.kind === "model.pull");
  const wrong = model.conditions.filter(isWrong);
  const isHere = model.conditions.some(({ type, status }) => type === "Present" && status === "True");
  return (
    <section class="card" aria-label="Pull">
      <p role="status">{isHere ? `${id} is here.` : `Pulling ${id}`}</p>
      {!isHere && (
        <>
          {action?.progress && <TransferBar label={`Progress of ${id}`} progress={action.progress} />}
          {wrong.map(({ type, message }) => (
            <p key={type} class="note bad" role="alert">
              {message}
            </p>
          ))}
          <button
            type="button"
            disabled={isBusy}
            onClick={() => run(async () => void (await client.desired.patch({ models: { [id]: null } })))}
          >
            Cancel
          </button>
          <ErrorNote error={error} />
        </>
      )}
    </section>
  );
}
