// The bytes that a partial lacks, over as many connections as help, until they are all there or another try is no use.
// If the server has no ranges, or answers them wrong, it is one connection that reads from the beginning.
import { GatewayError } from "../../core/errors.ts";
import type { HubClient, OpenedFile } from "../../hub/client.ts";
import { cancelled, transferError } from "../../hub/errors.ts";
import type { HubPlace } from "../../hub/http.ts";
import type { HubFile } from "../layout/select.ts";
import type { PartialFile } from "./partial-file.ts";
import { coveredBytes, createWorkList, frontOf, gapsOf, type Piece, type WorkList } from "./ranges.ts";
import { createTries, receive, type TryOptions } from "./receive.ts";

export interface TransferTuning extends TryOptions {
  /** Connections for one file, at most. */
  readonly connections: number;
  /** Bytes that one connection fetches before it asks what is next. */
  readonly pieceBytes: number;
  /** Bytes that each connection gathers before they are written. */
  readonly gatherBytes: number;
  /** Less than this is not worth a connection. */
  readonly leastBytes: number;
  /** Bytes per second of all together below which more connections are opened. */
  readonly slowPerSecond: number;
  /** Milliseconds between two checks of the rate. */
  readonly lookMs: number;
}

export const defaultTuning: TransferTuning = {
  connections: 8,
  pieceBytes: 16 * 1024 * 1024,
  gatherBytes: 512 * 1024,
  leastBytes: 1024 * 1024,
  // A full gigabit line: above it more connections cost more work than they bring.
  slowPerSecond: 100e6,
  lookMs: 200,
  tries: 6,
  retryMs: 500,
};

export interface Transfer {
  readonly client: HubClient;
  readonly repo: string;
  readonly commit: string;
  readonly file: HubFile;
  readonly partial: PartialFile;
  readonly signal: AbortSignal;
  readonly tuning: TransferTuning;
  /** Ask for no ranges at all. */
  readonly plain: boolean;
  write(position: number, buffers: readonly Buffer[]): Promise<void>;
  /** Of the whole pull; 0 while it is not known. */
  bytesPerSecond(): number;
  /** Bytes that came in, and how many of the file are there now, those on their way to the disk included. */
  onBytes(received: number, completed: number): void;
}

/** Throws `hub_*`, `checksum_mismatch` if the hub announces another file, `cancelled`, and what `write` throws. */
export async function transfer(options: Transfer): Promise<void> {
  if (!options.plain && (await new RangeTransfer(options).run())) return;
  await fromTheBeginning(options);
}

/** Connections side by side, each with a piece of the file. */
class RangeTransfer {
  readonly #options: Transfer;
  readonly #work: WorkList;
  readonly #over = new AbortController();
  readonly #signal: AbortSignal;
  #completed: number;
  #gained = 0;
  #lanes = 0;
  /** The address of an earlier response: saves requests to the hub. */
  #place: HubPlace | undefined;
  /** Whether the server answers ranges; undefined until the first response. */
  #isFit: boolean | undefined;
  #failure: GatewayError | undefined;
  #end: () => void = () => undefined;

  constructor(options: Transfer) {
    const { partial, file, tuning, signal } = options;
    this.#options = options;
    this.#work = createWorkList({ gaps: gapsOf(partial.extents(), file.size), ...tuning });
    this.#signal = AbortSignal.any([signal, this.#over.signal]);
    this.#completed = coveredBytes(partial.extents());
  }

  /** False if the server proved unfit for ranges. */
  async run(): Promise<boolean> {
    const { tuning, signal, file } = this.#options;
    const ended = new Promise<void>((resolve) => {
      this.#end = resolve;
    });
    const look = setInterval(() => this.#startMore(), tuning.lookMs);
    this.#startLane();
    await ended;
    clearInterval(look);
    if (this.#failure) throw signal.aborted ? cancelled(file.path) : this.#failure;
    return this.#isFit !== false;
  }

  #startMore(): void {
    const { bytesPerSecond, tuning } = this.#options;
    const rate = bytesPerSecond();
    if (!this.#isFit || this.#signal.aborted || rate === 0 || rate >= tuning.slowPerSecond) return;
    const worth = Math.ceil(this.#work.left() / (8 * tuning.leastBytes));
    while (this.#lanes < Math.min(tuning.connections, worth)) this.#startLane();
  }

  #startLane(): void {
    this.#lanes++;
    this.#lane()
      .catch((error: unknown) => {
        const reason = transferError(error, this.#options.file.path, this.#signal);
        if (this.#isFit === false || (reason.code === "cancelled" && this.#work.left() === 0)) return;
        this.#failure ??= reason;
        // A failure for good ends the other lanes: what this one could not get, they could not either.
        this.#over.abort();
      })
      .finally(() => {
        this.#lanes--;
        if (this.#lanes === 0) this.#end();
      });
  }

  async #lane(): Promise<void> {
    const { tuning, file } = this.#options;
    const again = createTries(tuning);
    for (let piece = this.#work.claim(); piece; piece = this.#work.claim()) {
      try {
        await this.#fetch(piece);
        this.#work.release(piece);
        // The others may be waiting for a next try that is not needed any more.
        if (this.#work.left() === 0) this.#over.abort();
      } catch (error) {
        this.#work.release(piece);
        await again(transferError(error, file.path, this.#signal), this.#gained, this.#signal);
      }
    }
  }

  async #fetch(piece: Piece): Promise<void> {
    const { file, tuning, write, onBytes } = this.#options;
    // One connection alone goes on and on; among several it stops at the beginning of the next one's piece.
    const opened = await this.#open(piece, this.#lanes > 1 ? piece.to : this.#work.freeTo(piece));
    this.#isFit = fits(opened, file, piece.at) && this.#isFit !== false;
    if (!this.#isFit) {
      opened.body.destroy();
      this.#over.abort();
      throw cancelled(file.path);
    }
    this.#place = opened.place;
    await receive({
      body: opened.body,
      skip: 0,
      at: () => piece.at,
      until: () => piece.to,
      more: () => this.#work.extend(piece),
      taken: (bytes) => {
        piece.at += bytes;
        this.#completed += bytes;
        this.#gained += bytes;
        onBytes(bytes, this.#completed);
      },
      write,
      gatherBytes: tuning.gatherBytes,
    });
    if (piece.at < piece.to) throw endedEarly(file, piece.at);
  }

  async #open(piece: Piece, to: number): Promise<OpenedFile> {
    const { client, repo, commit, file } = this.#options;
    const range = { from: piece.at, to, signal: this.#signal };
    if (this.#place === undefined) return client.openFile(repo, commit, file.path, range);
    try {
      return await client.openFile(repo, commit, file.path, { ...range, place: this.#place });
    } catch (error) {
      // The address has expired: the hub gives a newer one.
      this.#place = undefined;
      if (this.#signal.aborted || (error instanceof GatewayError && error.code === "hub_rate_limited")) throw error;
      return client.openFile(repo, commit, file.path, range);
    }
  }
}

async function fromTheBeginning(options: Transfer): Promise<void> {
  const { client, repo, commit, file, partial, signal, tuning, write } = options;
  const again = createTries(tuning);
  let gained = 0;
  while (frontOf(partial.extents()) < file.size) {
    try {
      const opened = await client.openFile(repo, commit, file.path, { from: 0, signal });
      checkAnnounced(file, opened);
      // Bytes that are written a second time must not be hashed before that.
      partial.forgetIslands();
      // What is there already is read past: that costs the same, and what is on the disk stays there.
      const skip = frontOf(partial.extents());
      let at = skip;
      await receive({
        body: opened.body,
        skip,
        at: () => at,
        until: () => file.size,
        more: () => false,
        taken(bytes) {
          at += bytes;
          gained += bytes;
          options.onBytes(bytes, at);
        },
        write,
        gatherBytes: tuning.gatherBytes,
      });
      if (at < file.size) throw endedEarly(file, at);
    } catch (error) {
      await again(transferError(error, file.path, signal), gained, signal);
    }
  }
}

/** Whether the response is the requested range of the requested file. */
function fits(opened: OpenedFile, file: HubFile, from: number): boolean {
  checkDigest(file, opened);
  return opened.ranged && opened.from === from && (opened.total === undefined || opened.total === file.size);
}

/** The hub's own headers must agree with its file list: else the list is stale, or the response is for another file. */
function checkAnnounced(file: HubFile, opened: OpenedFile): void {
  checkDigest(file, opened);
  if (opened.total === undefined || opened.total === file.size) return;
  opened.body.destroy();
  throw mismatch(file, `another size (${opened.total})`);
}

function checkDigest(file: HubFile, { body, sha256 }: OpenedFile): void {
  if (file.sha256 === undefined || sha256 === undefined || sha256 === file.sha256) return;
  body.destroy();
  throw mismatch(file, "another digest");
}

/** Bytes that are not those of the file that the hub's list names. */
export function mismatch(file: HubFile, what: string): GatewayError {
  return new GatewayError("checksum_mismatch", `${file.path} came with ${what}; it was not kept.`);
}

function endedEarly(file: HubFile, at: number): GatewayError {
  return new GatewayError("hub_unreachable", `${file.path} ended after ${at} of ${file.size} bytes.`);
}
