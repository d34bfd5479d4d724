// The memory of each device: what takes it, and what the load of a model would change.
import type { JSX } from "preact";
import { memoryText } from "../core/memory-text.ts";
import { type Bar, loadText, memoryBars } from "./memory-bars.ts";
import { Section, useShell } from "./parts.tsx";

export function Memory({ previewed }: { readonly previewed: string | null }): JSX.Element | null {
  const { status } = useShell().live;
  if (!status || status.memory.devices.length === 0) return null;
  const model = status.models.find(({ id }) => id === previewed);
  return (
    <Section title="Memory">
      {memoryBars(status, previewed).map((bar) => (
        <DeviceBar key={bar.device} bar={bar} />
      ))}
      <p class="dim preview">
        {(model && loadText(model)) ?? "The Load button of a model shows what its load would change."}
      </p>
    </Section>
  );
}

function DeviceBar({ bar: { device, totalBytes, parts } }: { readonly bar: Bar }): JSX.Element {
  return (
    <div class="device">
      <h3>
        {device} <small>{memoryText(totalBytes)}</small>
      </h3>
      <div class="bar" aria-hidden="true">
        {parts.map(({ kind, label, bytes }) => (
          <span key={label} class={kind} style={{ flexGrow: bytes }} title={label} />
        ))}
      </div>
      <ul class="legend">
        {parts
          .filter(({ kind }) => kind !== "coming")
          .map(({ kind, label, bytes }) => (
            <li key={label} class={`is-${kind}`}>
              <span class={kind} aria-hidden="true" />
              {label} {memoryText(bytes)}
            </li>
          ))}
      </ul>
    </div>
  );
}
