// Which base address and key each client needs, ready to copy.
import type { JSX } from "preact";
import { Section, useShell } from "./parts.tsx";
import { baseUrl } from "./session.ts";

interface Address {
  readonly clients: string;
  /** Where each of them has the key. */
  readonly key: string;
  readonly path: string;
  /** It sends no key: the address has it. */
  readonly isKeyless?: true;
}

const addresses: readonly Address[] = [
  { clients: "OpenAI SDKs, LangChain, Vercel AI SDK, opencode", path: "/v1", key: "apiKey" },
  {
    clients: "Codex, n8n, Open WebUI (OpenAI connection)",
    path: "/v1",
    key: "API key",
  },
  { clients: "Anthropic SDKs", path: "", key: "apiKey" },
  { clients: "Open WebUI (Ollama connection), Cline, Zed, Home Assistant", path: "", key: "API key" },
  { clients: "Ollama libraries", path: "", key: "header Authorization: Bearer KEY" },
  { clients: "Continue (provider ollama)", path: "/", key: "apiKey" },
  { clients: "VS Code Copilot (Ollama endpoint)", path: "", key: "in the address", isKeyless: true },
];

export function Clients(): JSX.Element {
  const { licenseKey, live } = useShell();
  const [model] = live.status?.models ?? [];
  const curl = `curl ${baseUrl}/v1/chat/completions${licenseKey === null ? "" : " -H 'Authorization: Bearer KEY'"} -d '${JSON.stringify({ model: model?.id ?? "MODEL", messages: [{ role: "user", content: "hi" }] })}'`;
  return (
    <Section title="Clients">
      <h3>Base address</h3>
      {addresses.map(({ clients, path, key, isKeyless = false }) => {
        const hasKey = isKeyless && licenseKey !== null;
        const value = `${baseUrl}${hasKey ? `/k/${licenseKey}` : ""}${path}`;
        const label = licenseKey === null ? clients : `${clients} (key: ${key})`;
        return <Copy key={clients} label={label} value={value} isSecret={hasKey} />;
      })}
      <h3>API key</h3>
      {licenseKey === null ? (
        <p>
          This gateway needs none from here: where a client asks for one, any text will do. To let other machines in,
          create a key with <code>model-gateway key create NAME</code>.
        </p>
      ) : (
        <>
          <Copy label="The license key of this page" value={licenseKey} isSecret />
          <p class="dim">
            Better create one per client, of scope chat: <code>model-gateway key create NAME --scope chat</code>. A
            client that can send no key has it in the address: {baseUrl}/k/KEY.
          </p>
        </>
      )}
      <h3>Model names</h3>
      {live.status?.models
        .filter(({ runtime }) => runtime)
        .map(({ id }) => (
          <Copy key={id} label="Model" value={id} />
        ))}
      <h3>Try it</h3>
      <Copy label="In a terminal" value={curl} />
    </Section>
  );
}

interface CopyProps {
  readonly label: string;
  readonly value: string;
  readonly isSecret?: boolean;
}

function Copy({ label, value, isSecret = false }: CopyProps): JSX.Element {
  const { notify } = useShell();
  const copy = async (input: HTMLInputElement | null): Promise<void> => {
    // Absent where the page came without TLS from another machine: then it is selected, to be copied by hand.
    const { clipboard } = navigator as { readonly clipboard?: Clipboard };
    if (!clipboard) return input?.select();
    await clipboard.writeText(value);
    notify("Copied");
  };
  return (
    <div class="row end copy">
      <label class="field">
        {label}
        {isSecret ? <input readOnly type="password" value={value} /> : <input readOnly value={value} />}
      </label>
      <button
        type="button"
        aria-label={`Copy: ${label}`}
        onClick={({ currentTarget }) =>
          void copy(currentTarget.parentElement?.querySelector("input") ?? null).catch((error: unknown) =>
            notify(String(error)),
          )
        }
      >
        Copy
      </button>
    </div>
  );
}
