// What is made for a listener is made at its own pace and waits for him: the first of it in memory, the rest on the disk.
// So whoever makes it is free again soon, however slowly it is listened to.
import type { FileHandle } from "node:fs/promises";
import type { Spool } from "./spool.ts";

export interface ReadAhead {
  /** Resolves when the source is through, whichever way. */
  readonly made: Promise<void>;
  /** All of it, at the reader's pace; then what the source threw, or the disk. */
  read(): AsyncGenerator<Uint8Array, void>;
  /** Ends what is still being made, and forgets the rest. */
  close(): Promise<void>;
}

interface FilePart {
  readonly at: number;
  readonly length: number;
}

/** Half a minute of sound: a listener who takes it as it comes never needs the disk. */
const memoryBytes = 1024 * 1024;
const readBytes = 64 * 1024;

export function readAhead(source: AsyncIterable<Uint8Array>, spool: Spool): ReadAhead {
  const parts: (Uint8Array | FilePart)[] = [];
  let inMemory = 0;
  let file: FileHandle | null = null;
  let fileBytes = 0;
  let failure: { readonly error: unknown } | null = null;
  let isMade = false;
  let isClosed = false;
  let wake = (): void => undefined;

  async function keep(bytes: Uint8Array): Promise<void> {
    if (inMemory + bytes.length <= memoryBytes) {
      inMemory += bytes.length;
      parts.push(bytes);
      return;
    }
    await spool.take(bytes.length);
    const at = fileBytes;
    fileBytes += bytes.length;
    file ??= await spool.open();
    await file.appendFile(bytes);
    parts.push({ at, length: bytes.length });
  }

  async function make(): Promise<void> {
    try {
      for await (const bytes of source) {
        if (isClosed) break;
        await keep(bytes);
        wake();
      }
    } catch (error) {
      failure = { error };
    }
    isMade = true;
    wake();
  }

  async function* fromFile({ at, length }: FilePart): AsyncGenerator<Uint8Array, void> {
    for (let done = 0; done < length; ) {
      const bytes = Buffer.allocUnsafe(Math.min(readBytes, length - done));
      const { bytesRead } = (await file?.read(bytes, 0, bytes.length, at + done)) ?? { bytesRead: 0 };
      if (bytesRead === 0) throw new Error("what was written is not there");
      yield bytes.subarray(0, bytesRead);
      done += bytesRead;
    }
  }

  const made = make();
  return {
    made,
    read: async function* () {
      for (;;) {
        const part = parts.shift();
        if (part instanceof Uint8Array) {
          inMemory -= part.length;
          yield part;
        } else if (part) yield* fromFile(part);
        else if (isMade) break;
        else {
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
      }
      if (failure) throw failure.error;
    },
    close: async () => {
      isClosed = true;
      parts.length = 0;
      await made;
      await file?.close();
      spool.giveBack(fileBytes);
    },
  };
}
