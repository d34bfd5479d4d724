// The page as a whole: the license key, the sections, and what is said for a moment.
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { Chat } from "./chat.tsx";
import { Clients } from "./clients.tsx";
import { DocumentEditor } from "./document.tsx";
import { History } from "./history.tsx";
import { KeyForm } from "./key-form.tsx";
import { follow } from "./live.ts";
import { nothingYet } from "./live-state.ts";
import { Logs } from "./logs.tsx";
import { Overview } from "./overview.tsx";
import { Notice, ShellContext } from "./parts.tsx";
import { clientWith, storedKey, storeKey } from "./session.ts";

const sections = [
  { path: "", title: "Overview", Part: Overview },
  { path: "document", title: "Document", Part: DocumentEditor },
  { path: "history", title: "History", Part: History },
  { path: "logs", title: "Logs", Part: Logs },
  { path: "chat", title: "Chat", Part: Chat },
  { path: "clients", title: "Clients", Part: Clients },
] as const;

/** ms */
const noticeMs = 4_000;

export function App(): JSX.Element {
  // An object: the same key may be entered again.
  const [session, setSession] = useState(() => ({ licenseKey: storedKey() }));
  const { licenseKey } = session;
  const [live, setLive] = useState(nothingYet);
  const [refusal, setRefusal] = useState<string | null>(null);
  const [notice, setNotice] = useState("");
  const [place, argument] = useHash();
  const client = useMemo(() => clientWith(session.licenseKey), [session]);

  useEffect(() => {
    const left = new AbortController();
    setRefusal(null);
    void follow({
      client,
      signal: left.signal,
      onChange: setLive,
      onRefused: ({ message }) => setRefusal(message),
    });
    return () => left.abort();
  }, [client]);
  useEffect(() => scrollTo(0, 0), [place]);
  useEffect(() => {
    if (notice === "") return;
    const timer = setTimeout(() => setNotice(""), noticeMs);
    return () => clearTimeout(timer);
  }, [notice]);

  if (refusal !== null) {
    const take = (key: string): void => {
      storeKey(key);
      setSession({ licenseKey: key });
    };
    return <KeyForm why={licenseKey === null ? null : refusal} onKey={take} />;
  }
  const { title, Part } = sections.find(({ path }) => path === place) ?? sections[0];
  return (
    <ShellContext.Provider value={{ client, licenseKey, live, notice, notify: setNotice }}>
      <header class="top">
        <a
          class="skip"
          href="#main"
          onClick={(event) => (event.preventDefault(), document.querySelector("main")?.focus())}
        >
          Skip to the content
        </a>
        <h1>Model Gateway</h1>
        <nav aria-label="Sections">
          {sections.map(({ path, title: name }) => (
            <a key={path} href={`#${path}`} aria-current={name === title ? "page" : undefined}>
              {name}
            </a>
          ))}
        </nav>
      </header>
      <main id="main" tabIndex={-1}>
        {!live.isConnected && (
          <p class="note warn" role="alert">
            {live.status ? "Connection lost: what is shown may be old." : "Connecting to the gateway…"}
          </p>
        )}
        {live.status && <Part argument={argument} />}
      </main>
      <Notice text={notice} />
    </ShellContext.Provider>
  );
}

/** `#logs/acme/alpha:Q8_0`: the section, and what it is about. */
function useHash(): readonly [place: string, argument: string] {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const changed = (): void => setHash(location.hash);
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  const [, place = "", argument = ""] = /^#([^/]*)\/?(.*)$/.exec(hash) ?? [];
  return [place, decodeURIComponent(argument)];
}
