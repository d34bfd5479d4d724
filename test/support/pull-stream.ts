// A streamed pull as a client follows it.
import type { TestGateway } from "./gateway.ts";
import { postWith } from "./requests.ts";

export interface PullRecord {
  readonly status?: string;
  readonly error?: string;
}

/** The records of a streamed pull; `onRecord` sees each as it comes. */
export async function streamPull(
  gateway: TestGateway,
  model: string,
  options: {
    readonly signal?: AbortSignal;
    readonly keep?: boolean;
    readonly onRecord?: (record: PullRecord) => void;
  } = {},
): Promise<PullRecord[]> {
  const response = await fetch(`${gateway.url}/alpha/api/pull`, {
    ...postWith({ model, keep: options.keep ?? false }),
    ...(options.signal ? { signal: options.signal } : {}),
  });
  const records: PullRecord[] = [];
  let rest = "";
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    const lines = (rest + decoder.decode(chunk as Uint8Array, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      const record = JSON.parse(line) as PullRecord;
      records.push(record);
      options.onRecord?.(record);
    }
  }
  return records;
}
