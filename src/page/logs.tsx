// The engines' output, live, with search.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ErrorNote, Field, Section, useShell } from "./parts.tsx";

/** Lines that are kept, and those that are drawn. */
const mostKept = 5_000;
const mostShown = 1_000;
/** Lines that are asked for first. */
const tail = 1_000;

const engines = ["router", "whisper-server", "speech"];

export function Logs({ argument }: { readonly argument: string }): JSX.Element {
  const { live } = useShell();
  const [source, setSource] = useState(argument);
  const [search, setSearch] = useState("");
  const { lines, error } = useLog(source);
  const wanted = search.trim().toLowerCase();
  const found = wanted === "" ? lines : lines.filter((line) => line.toLowerCase().includes(wanted));
  const ids = live.status?.models.map(({ id }) => id) ?? [];
  return (
    <Section title="Logs" aside={<small role="status">{`${found.length} of ${lines.length} lines`}</small>}>
      <div class="row end">
        <label class="field">
          Engine
          <select value={source} onChange={({ currentTarget }) => setSource(currentTarget.value)}>
            <option value="">all</option>
            {[...ids, ...engines].map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <Field label="Search" type="search" value={search} onValue={setSearch} />
      </div>
      <ErrorNote error={error} />
      <Lines lines={found.slice(-mostShown)} />
    </Section>
  );
}

/** Follows one log; what comes in one turn is drawn at once. */
function useLog(source: string): { readonly lines: readonly string[]; readonly error: unknown } {
  const { client } = useShell();
  const [lines, setLines] = useState<readonly string[]>([]);
  const [error, setError] = useState<unknown>(null);
  useEffect(() => {
    const left = new AbortController();
    let fresh: string[] = [];
    setLines([]);
    setError(null);
    const draw = (): void => {
      const added = fresh;
      fresh = [];
      setLines((before) => [...before, ...added].slice(-mostKept));
    };
    const read = async (): Promise<void> => {
      const model = source === "" ? undefined : source;
      for await (const line of client.followLogs({ model, tail, signal: left.signal })) {
        if (fresh.push(line) === 1) requestAnimationFrame(draw);
      }
    };
    read().catch(setError);
    return () => left.abort();
  }, [client, source]);
  return { lines, error };
}

/** Stays at the end, unless one has scrolled away from it. */
function Lines({ lines }: { readonly lines: readonly string[] }): JSX.Element {
  const box = useRef<HTMLPreElement>(null);
  const isAtEnd = useRef(true);
  useEffect(() => {
    if (isAtEnd.current && box.current) box.current.scrollTop = box.current.scrollHeight;
  });
  return (
    <pre
      class="lines"
      ref={box}
      role="region"
      aria-label="Lines"
      tabIndex={0}
      onScroll={({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) => {
        isAtEnd.current = scrollTop + clientHeight > scrollHeight - 20;
      }}
    >
      {lines.join("\n")}
    </pre>
  );
}
