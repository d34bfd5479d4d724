// The start as a person reads it: a line per stage, a bar while bytes come in, then where it listens and what to try.
import type { WriteStream } from "node:tty";
import type { Gateway } from "../app/gateway.ts";
import type { TransferStep } from "../core/quantities.ts";
import type { InstallProgress } from "../engines/install/build.ts";
import type { JournalEvent } from "../status/journal.ts";
import { paintFor } from "./colors.ts";
import { installProgress, transferProgress } from "./progress.ts";
import { elapsedText, wrapped } from "./text.ts";

/** What the journal has of a step: of its start and end, and of its progress. */
interface ActionEvent extends TransferStep {
  readonly key: string;
  readonly message: string;
  readonly ms?: number;
}

/** Short steps have no time of their own. */
const shownMs = 100;

export function createStartScreen(stream: WriteStream) {
  const paint = paintFor(stream);
  const install = installProgress("llama-server", stream);
  /** Steps under way, by key. */
  const begun = new Map<string, string>();
  /** The bar that is drawn. */
  let bar: { readonly key: string; readonly view: ReturnType<typeof transferProgress> } | null = null;

  function line(text: string): void {
    // Over a bar, which is drawn again below.
    stream.write(`${stream.isTTY ? "\r\u001b[K" : ""}${text}\n`);
  }

  function progress(key: string, step: TransferStep): void {
    if (step.total === 0 || step.completed === step.total) return;
    if (bar?.key !== key) bar = { key, view: transferProgress(begun.get(key) ?? key, stream) };
    bar.view.step(step);
  }

  return {
    title: (text: string): void => line(paint("bold", text)),
    done: (what: string, detail = ""): void =>
      line(`${paint("green", "✓")} ${what}${detail && paint("dim", `  ${detail}`)}`),
    note: (text: string): void =>
      line(wrapped(`${paint("yellow", "!")} ${text}`, stream.isTTY ? stream.columns : undefined, "  ")),
    install: (step: InstallProgress): void => install(step),
    /** A step of the reconciler. A failure is in the log, with its next try. */
    action: ({ type, data }: JournalEvent): void => {
      const { key, message, ms = 0, ...step } = data as ActionEvent;
      if (type === "action.started") begun.set(key, message);
      if (type === "action.progress") progress(key, step);
      if (type !== "action.finished" && type !== "action.failed") return;
      begun.delete(key);
      if (bar?.key === key) bar = null;
      if (type === "action.finished")
        line(`${paint("green", "✓")} ${message}${ms < shownMs ? "" : paint("dim", `  ${elapsedText(ms)}`)}`);
    },
    /** What a person does next. */
    ready: ({ url }: Gateway, document: string, command: string | null): void => {
      const rows = [
        ["Address", url],
        ["Page", `${url}/ui`],
        ["Document", document],
      ];
      line("");
      for (const [name = "", text = ""] of rows) line(`  ${paint("dim", name.padEnd(10))}${paint("bold", text)}`);
      line(
        command === null ? "\nReady. No model yet: add one to the document.\n" : `\nReady. Try it:\n\n  ${command}\n`,
      );
    },
  };
}
