// What every part of the page uses: the gateway in hand, dialogs, calls with their errors, times.
import { type ComponentChildren, createContext, type InputHTMLAttributes, type JSX } from "preact";
import { useContext, useEffect, useId, useRef, useState } from "preact/hooks";
import { type GatewayClient, GatewayClientError } from "../client/index.ts";
import { ageText } from "../core/quantities.ts";
import type { Live } from "./live-state.ts";
import type { Tone } from "./model-row.ts";

export interface Shell {
  readonly client: GatewayClient;
  readonly licenseKey: string | null;
  readonly live: Live;
  /** What was said last, for a while. */
  readonly notice: string;
  /** Shown for a while, and read out. */
  readonly notify: (text: string) => void;
}

export const ShellContext = createContext<Shell | null>(null);

export function useShell(): Shell {
  const shell = useContext(ShellContext);
  if (!shell) throw new Error("outside of the shell");
  return shell;
}

export interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: (close: () => void) => ComponentChildren;
}

export function Dialog({ title, onClose, children }: DialogProps): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useId();
  const { notice } = useShell();
  useEffect(() => dialog.current?.showModal(), []);
  // The browser puts the focus back where it was.
  const close = (): void => dialog.current?.close();
  return (
    <dialog ref={dialog} aria-labelledby={heading} onClose={onClose}>
      <header class="row spread">
        <h2 id={heading}>{title}</h2>
        <button type="button" class="quiet" aria-label="Close" onClick={close}>
          ✕
        </button>
      </header>
      {children(close)}
      <Notice text={notice} />
    </dialog>
  );
}

/** An open dialog has its own: all outside of it is inert. */
export function Notice({ text }: { readonly text: string }): JSX.Element {
  return (
    <p class="notice" role="status">
      {text}
    </p>
  );
}

/** One call at a time. */
export function useAction() {
  const [{ isBusy, error }, set] = useState<{ isBusy: boolean; error: unknown }>({ isBusy: false, error: null });
  return {
    isBusy,
    error,
    run: (work: () => Promise<void>): void => {
      if (isBusy) return;
      set({ isBusy: true, error: null });
      work().then(
        () => set({ isBusy: false, error: null }),
        (thrown: unknown) => set({ isBusy: false, error: thrown }),
      );
    },
  };
}

/** Reads again when an input changes; the value before stays until then. */
export function useLoaded<T>(load: (signal: AbortSignal) => Promise<T>, inputs: readonly unknown[]) {
  const [state, set] = useState<{ readonly value: T | null; readonly error: unknown }>({ value: null, error: null });
  useEffect(() => {
    const left = new AbortController();
    load(left.signal).then(
      (value) => !left.signal.aborted && set({ value, error: null }),
      (error: unknown) => !left.signal.aborted && set(({ value }) => ({ value, error })),
    );
    return () => left.abort();
  }, inputs);
  return state;
}

export function ErrorNote({ error }: { readonly error: unknown }): JSX.Element | null {
  if (error === null || error === undefined) return null;
  const hint = error instanceof GatewayClientError ? error.hint : null;
  return (
    <p class="note bad" role="alert">
      {error instanceof Error ? error.message : "it failed"}
      {hint !== null && <small>{hint}</small>}
    </p>
  );
}

export function TableHead({ columns }: { readonly columns: readonly string[] }): JSX.Element {
  return (
    <thead>
      <tr>
        {columns.map((name) => (
          <th key={name} scope="col">
            {name}
          </th>
        ))}
      </tr>
    </thead>
  );
}

/** Drawn again each second while it is young, then each half minute. */
export function Ago({ at }: { readonly at: string | null | undefined }): JSX.Element {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    if (!at) return;
    const timer = setTimeout(() => setNow(Date.now()), now - Date.parse(at) < 60_000 ? 1_000 : 30_000);
    return () => clearTimeout(timer);
  }, [at, now]);
  if (!at) return <>–</>;
  return (
    <time dateTime={at} title={at}>
      {ageText(at, Math.max(now, Date.parse(at)))} ago
    </time>
  );
}

export function Badge({ tone, children }: { readonly tone: Tone; readonly children: ComponentChildren }): JSX.Element {
  return <span class={`badge ${tone}`}>{children}</span>;
}

export interface FieldProps {
  readonly label: string;
  readonly value: string;
  readonly onValue: (value: string) => void;
  readonly type?: string;
  readonly list?: string;
  readonly placeholder?: string;
  readonly required?: boolean;
}

export function Field({ label, onValue, ...rest }: FieldProps): JSX.Element {
  // Preact has a type per kind of input.
  const input = rest as InputHTMLAttributes<HTMLInputElement>;
  return (
    <label class="field">
      {label}
      <input
        {...input}
        autocomplete="off"
        spellcheck={false}
        onInput={({ currentTarget }) => onValue(currentTarget.value)}
      />
    </label>
  );
}

/** For the submit of a form that the page handles itself. */
export function submitting(run: () => void): (event: Event) => void {
  return (event) => {
    event.preventDefault();
    run();
  };
}

/** The heading of a part and its right side. */
export function Section({
  title,
  aside,
  children,
}: {
  readonly title: string;
  readonly aside?: ComponentChildren;
  readonly children: ComponentChildren;
}): JSX.Element {
  const heading = useId();
  return (
    <section aria-labelledby={heading}>
      <div class="row spread">
        <h2 id={heading}>{title}</h2>
        {aside}
      </div>
      {children}
    </section>
  );
}
