// A question on the terminal.
import { createInterface } from "node:readline/promises";

/** null: there is no terminal to ask on. */
export async function isConfirmed(question: string): Promise<boolean | null> {
  if (!process.stdin.isTTY) return null;
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(?:es)?$/i.test((await terminal.question(`${question} [y/N] `)).trim());
  } finally {
    terminal.close();
  }
}
