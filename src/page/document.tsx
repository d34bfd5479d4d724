// The editor of the document: checked while one types, with the problem at its line; the plan is shown before it is applied.
import type { JSX } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { GatewayClientError, type PlanBody } from "../client/index.ts";
import { type Problem, problemsIn } from "../core/problem-places.ts";
import { Dialog, ErrorNote, Section, useAction, useLoaded, useShell } from "./parts.tsx";
import { Plan } from "./plan.tsx";

/** ms without typing before the text is checked. */
const typingMs = 350;

export function DocumentEditor(): JSX.Element {
  const { client, live } = useShell();
  const [edition, setEdition] = useState(0);
  const { value: read, error } = useLoaded((signal) => client.desired.text({ signal }), [client, edition]);
  const generation = live.status?.generation;
  const { valid = true, path = "", message = "" } = live.status?.source ?? {};
  return (
    <Section title="Document">
      <p class="dim">
        What should be true on this machine. The file <code>{path}</code> and this page change the same document;
        comments stay in the file.
      </p>
      {!valid && <p class="note bad">The file is not applied: {message}</p>}
      <ErrorNote error={error} />
      {read && (
        <Editor
          key={read.etag}
          yaml={read.yaml}
          etag={read.etag}
          generation={generation ?? 0}
          onReload={() => setEdition(edition + 1)}
        />
      )}
    </Section>
  );
}

interface EditorProps {
  readonly yaml: string;
  readonly etag: string;
  readonly generation: number;
  readonly onReload: () => void;
}

type Verdict =
  | { readonly kind: "checking" }
  | { readonly kind: "plan"; readonly plan: PlanBody }
  | { readonly kind: "problems"; readonly problems: readonly Problem[] }
  | { readonly kind: "error"; readonly error: unknown };

function Editor({ yaml, etag, generation, onReload }: EditorProps): JSX.Element {
  const { client, notify } = useShell();
  const [text, setText] = useState(yaml);
  const [verdict, setVerdict] = useState<Verdict>({ kind: "checking" });
  const [since] = useState(generation);
  const [reviewed, setReviewed] = useState<PlanBody | null>(null);
  const { isBusy, error, run } = useAction();
  const area = useRef<HTMLTextAreaElement>(null);
  const isChanged = text !== yaml;

  useEffect(() => {
    setVerdict({ kind: "checking" });
    const left = new AbortController();
    const timer = setTimeout(() => {
      client.desired.planText(text, { offline: true, signal: left.signal }).then(
        (plan) => setVerdict({ kind: "plan", plan }),
        (thrown: unknown) => !left.signal.aborted && setVerdict(verdictOf(thrown)),
      );
    }, typingMs);
    return () => {
      clearTimeout(timer);
      left.abort();
    };
  }, [client, text]);

  // With the sizes that the hub has.
  const review = (): void => run(async () => setReviewed(await client.desired.planText(text)));
  const apply = (close: () => void): void =>
    run(async () => {
      const { generation: made } = await client.desired.putText(text, { etag });
      notify(`Applied: generation ${made} of the document`);
      close();
      onReload();
    });
  return (
    <>
      {generation !== since && (
        <p class="note warn">
          The document has changed since it was read here.{" "}
          <button type="button" onClick={onReload}>
            Read it again
          </button>
        </p>
      )}
      <TextArea
        area={area}
        text={text}
        onText={setText}
        problems={verdict.kind === "problems" ? verdict.problems : []}
      />
      <p class="row">
        <button type="button" disabled={isBusy || !isChanged || verdict.kind !== "plan"} onClick={review}>
          Review and apply
        </button>
        <button type="button" class="quiet" disabled={!isChanged} onClick={() => setText(yaml)}>
          Undo all
        </button>
        <span role="status">{verdictText(verdict, isChanged)}</span>
      </p>
      {reviewed === null && <ErrorNote error={error} />}
      {verdict.kind === "problems" && <Problems problems={verdict.problems} area={area.current} />}
      {verdict.kind === "error" && <ErrorNote error={verdict.error} />}
      {verdict.kind === "plan" && isChanged && (
        <>
          <h3>Plan</h3>
          <Plan plan={verdict.plan} />
        </>
      )}
      {reviewed && (
        <Dialog title="Apply this document?" onClose={() => setReviewed(null)}>
          {(close) => (
            <>
              <Plan plan={reviewed} />
              <ErrorNote error={error} />
              <button type="button" disabled={isBusy} onClick={() => apply(close)}>
                Apply
              </button>
            </>
          )}
        </Dialog>
      )}
    </>
  );
}

interface TextAreaProps {
  readonly area: { current: HTMLTextAreaElement | null };
  readonly text: string;
  readonly onText: (text: string) => void;
  readonly problems: readonly Problem[];
}

/** With the numbers of the lines beside it; a wrong one is marked. */
function TextArea({ area, text, onText, problems }: TextAreaProps): JSX.Element {
  const gutter = useRef<HTMLPreElement>(null);
  const label = useId();
  const lines = text.split("\n");
  const wrong = new Set(problems.map(({ line }) => line));
  return (
    <div class="editor">
      <span id={label} class="hidden">
        The document as YAML
      </span>
      <pre ref={gutter} aria-hidden="true">
        {lines.map((_, at) => (
          <span key={at} class={wrong.has(at + 1) ? "wrong" : ""}>
            {`${at + 1}\n`}
          </span>
        ))}
      </pre>
      <textarea
        ref={area}
        aria-labelledby={label}
        aria-invalid={problems.length > 0}
        spellcheck={false}
        wrap="off"
        rows={Math.min(32, Math.max(12, lines.length + 1))}
        value={text}
        onInput={({ currentTarget }) => onText(currentTarget.value)}
        onScroll={({ currentTarget }) => gutter.current?.scrollTo(0, currentTarget.scrollTop)}
      />
    </div>
  );
}

function Problems({
  problems,
  area,
}: {
  readonly problems: readonly Problem[];
  readonly area: HTMLTextAreaElement | null;
}): JSX.Element {
  const show = ({ line, column }: Problem): void => {
    if (!area) return;
    const before = area.value.split("\n").slice(0, line - 1);
    const at = before.reduce((sum, each) => sum + each.length + 1, 0) + column - 1;
    area.focus();
    area.setSelectionRange(at, at);
  };
  return (
    <ul class="plain" aria-label="Problems">
      {problems.map((problem) => (
        <li key={`${problem.line} ${problem.column} ${problem.message}`} class="note bad">
          <button type="button" class="link" onClick={() => show(problem)}>
            Line {problem.line}
          </button>{" "}
          {problem.message}
        </li>
      ))}
    </ul>
  );
}

function verdictOf(error: unknown): Verdict {
  const problems = error instanceof GatewayClientError ? problemsIn(error.message) : [];
  return problems.length > 0 ? { kind: "problems", problems } : { kind: "error", error };
}

function verdictText({ kind }: Verdict, isChanged: boolean): string {
  if (kind === "problems" || kind === "error") return "This cannot be applied";
  if (!isChanged) return "As it is in force";
  return kind === "checking" ? "Checking…" : "Valid";
}
