// Asks for the license key.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Field, submitting } from "./parts.tsx";

export interface KeyFormProps {
  /** Why the key before was not enough; null: there was none. */
  readonly why: string | null;
  readonly onKey: (key: string) => void;
}

export function KeyForm({ why, onKey }: KeyFormProps): JSX.Element {
  const [key, setKey] = useState("");
  return (
    <main class="gate">
      <h1>Model Gateway</h1>
      <form
        class="card"
        onSubmit={submitting(() => {
          if (key.trim() !== "") onKey(key.trim());
        })}
      >
        <p>
          This gateway needs a license key of scope “all”. It is kept for this tab only, and forgotten when you close
          it.
        </p>
        {why !== null && (
          <p class="note bad" role="alert">
            {why}
          </p>
        )}
        <Field label="License key" type="password" value={key} onValue={setKey} required />
        <button type="submit">Open</button>
      </form>
    </main>
  );
}
