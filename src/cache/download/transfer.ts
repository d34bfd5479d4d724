// The bytes that a partial lacks, over as many connections as help, until they are all there or another try is no use.
// If the server has no ranges, or answers them wrong, it is one connection that reads from the beginning.
import type { Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { backoffDelay } from "../../core/backoff.ts";
import { GatewayError } from "../../core/errors.ts";
import { steadyNow } from "../../core/steady.ts";
import type { HubClient, OpenedFile } from "../../hub/client.ts";
import { cancelled, transferError } from "../../hub/errors.ts";
import type { HubPlace } from "../../hub/http.ts";
import type { HubFile } from "../layout/select.ts";
import { frontOf, gapsOf } from "./extents.ts";
import type { PartialFile } from "./partial-file.ts";
import { createWorkList, type Piece, type PieceSizes, type WorkList } from "./work-list.ts";

export interface TransferTuning extends PieceSizes {
  /** Connections for one file, at most. */
  readonly connections: number;
  /**
   * Bytes that each connection gathers before they are written: small ones would each cost a trip to the file system. With large ones
   * other threads wait, as the kernel leaves no write before its end: 512 KiB cost each hundredth chat 0.6 ms.
   */
  readonly gatherBytes: number;
  /** Bytes per second of all together below which more connections are opened. */
  readonly slowPerSecond: number;
  /** Milliseconds between two checks of the rate. */
  readonly lookMs: number;
  /** Failures in a row, without progress in between, after which the transfer fails. */
  readonly tries: number;
  /** Milliseconds before the second try; doubled for each further one. */
  readonly retryMs: number;
}

export const defaultTuning: TransferTuning = {
  connections: 8,
  pieceBytes: 16 * 1024 * 1024,
  gatherBytes: 64 * 1024,
  leastBytes: 1024 * 1024,
  // A full gigabit line: above it more connections cost more work than they bring.
  slowPerSecond: 100e6,
  lookMs: 200,
  tries: 6,
  retryMs: 500,
};

/** Ms after which what was gathered is written with the next bytes: only what is written counts as progress. */
const gatherMs = 100;
const longestWaitMs = 15_000;
/** If the hub asks for a longer wait, the pull fails. */
const longestAskedMs = 5 * 60_000;
/** Less than this between two failures is no progress. */
const leastGain = 64 * 1024;

export interface Transfer {
  readonly client: HubClient;
  readonly repo: string;
  readonly commit: string;
  readonly file: HubFile;
  readonly partial: Pick<PartialFile, "extents" | "forgetFrom">;
  readonly signal: AbortSignal;
  readonly tuning: TransferTuning;
  /** Ask for no ranges at all. */
  readonly isPlain: boolean;
  /** Writes to the partial. */
  write(position: number, buffers: readonly Buffer[]): Promise<void>;
}

/** Throws `hub_*`, `checksum_mismatch` if the hub announces another file, `cancelled`, and what `write` throws. */
export async function transfer(order: Transfer): Promise<void> {
  if (!order.isPlain && (await new Connections(order).run())) return;
  // Bytes that are written a second time must not be hashed before that.
  order.partial.forgetFrom(frontOf(order.partial.extents()));
  await new Connections({ ...order, isPlain: true }).run();
}

/** Connections side by side, each with a piece of the file; a plain one alone has all of it. */
class Connections {
  readonly #order: Transfer;
  readonly #work: WorkList;
  readonly #over = new AbortController();
  readonly #signal: AbortSignal;
  readonly #lanes = new Set<Promise<void>>();
  #leftBefore: number;
  /** The address of an earlier response: saves requests to the hub. */
  #place: HubPlace | undefined;
  /** The server has no ranges, or answers them wrong. */
  #isUnfit = false;
  #failure: GatewayError | undefined;

  constructor(order: Transfer) {
    this.#order = order;
    this.#work = createWorkList(this.#gaps(), order.tuning);
    this.#signal = AbortSignal.any([order.signal, this.#over.signal]);
    this.#leftBefore = this.#work.left();
  }

  /** False if the server proved unfit for ranges. */
  async run(): Promise<boolean> {
    const { tuning, signal, file } = this.#order;
    const look = setInterval(() => this.#startMore(), tuning.lookMs);
    this.#startLane();
    while (this.#lanes.size > 0) await Promise.race(this.#lanes);
    clearInterval(look);
    if (this.#isUnfit) return false;
    if (this.#gaps().length === 0) return true;
    throw signal.aborted ? cancelled(file.path) : (this.#failure ?? cancelled(file.path));
  }

  #gaps(): ReturnType<typeof gapsOf> {
    return gapsOf(this.#order.partial.extents(), this.#order.file.size);
  }

  #startMore(): void {
    const { tuning, isPlain } = this.#order;
    const left = this.#work.left();
    const perSecond = ((this.#leftBefore - left) * 1000) / tuning.lookMs;
    this.#leftBefore = left;
    if (isPlain || this.#signal.aborted || perSecond === 0 || perSecond >= tuning.slowPerSecond) return;
    const worth = Math.ceil(left / (8 * tuning.leastBytes));
    while (this.#lanes.size < Math.min(tuning.connections, worth)) this.#startLane();
  }

  #startLane(): void {
    const lane = this.#fetchPieces()
      .catch((error: unknown) => {
        this.#failure ??= transferError(error, this.#order.file.path, this.#signal);
        // A failure for good ends the other lanes: what this one could not get, they could not either.
        this.#over.abort();
      })
      .finally(() => this.#lanes.delete(lane));
    this.#lanes.add(lane);
  }

  async #fetchPieces(): Promise<void> {
    let failures = 0;
    let leftBefore = this.#work.left();
    for (let piece = this.#work.claim(); piece; piece = this.#work.claim()) {
      try {
        await this.#fetch(piece);
        this.#work.release(piece);
        // The others may be waiting for a next try that is not needed any more.
        if (this.#work.left() === 0) this.#over.abort();
      } catch (error) {
        this.#work.release(piece);
        const left = this.#work.left();
        failures = leftBefore - left >= leastGain ? 1 : failures + 1;
        leftBefore = left;
        await this.#waitAfter(transferError(error, this.#order.file.path, this.#signal), failures);
      }
    }
  }

  /** Throws the failure if another try is no use. */
  async #waitAfter(failure: GatewayError, failures: number): Promise<void> {
    const { tries, retryMs } = this.#order.tuning;
    const asked = failure.retryAfterMs ?? 0;
    const isPassing = failure.code === "hub_unreachable" || failure.code === "hub_rate_limited";
    if (!isPassing || failures >= tries || asked > longestAskedMs) throw failure;
    const wait = Math.max(asked, backoffDelay(failures, { firstMs: retryMs, maxMs: longestWaitMs }));
    await delay(wait, undefined, { signal: this.#signal });
  }

  async #fetch(piece: Piece): Promise<void> {
    const { file, isPlain } = this.#order;
    const opened = await this.#open(piece);
    const fault = this.#faultOf(opened, piece);
    if (fault) {
      opened.body.destroy();
      throw fault;
    }
    this.#place = opened.place;
    // What is there already is read past: that costs the same, and what is on the disk stays there.
    await this.#receive(opened.body, piece, isPlain ? piece.at : 0);
    if (piece.at < piece.to)
      throw new GatewayError("hub_unreachable", `${file.path} ended after ${piece.at} of ${file.size} bytes.`);
  }

  async #open(piece: Piece): Promise<OpenedFile> {
    const { client, repo, commit, file, isPlain } = this.#order;
    // One connection alone goes on and on; among several it stops at the beginning of the next one's piece.
    const to = this.#lanes.size > 1 ? piece.to : this.#work.freeTo(piece);
    const range = { ...(isPlain ? { from: 0 } : { from: piece.at, to }), signal: this.#signal };
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

  /** What is wrong with a response: the hub's own headers must agree with its file list. */
  #faultOf({ sha256, total, ranged, from }: OpenedFile, { at }: Piece): GatewayError | undefined {
    const { file, isPlain } = this.#order;
    if (file.sha256 !== undefined && sha256 !== undefined && sha256 !== file.sha256)
      return mismatch(file, "another digest");
    const isOther = total !== undefined && total !== file.size;
    if (isPlain) return isOther ? mismatch(file, `another size (${total})`) : undefined;
    if (ranged && from === at && !isOther) return undefined;
    this.#isUnfit = true;
    return cancelled(file.path);
  }

  /** Writes what the body has after its first `skip` bytes, up to the end of the piece, which may change meanwhile. */
  async #receive(body: Readable, piece: Piece, skip: number): Promise<void> {
    const { tuning, write } = this.#order;
    let skipping = skip;
    let gathered: Buffer[] = [];
    let writtenTo = piece.at;
    let writtenAt = Number.NEGATIVE_INFINITY;
    let writing = Promise.resolve();
    /** One write after the other; the next bytes are gathered meanwhile. */
    const flush = async (): Promise<void> => {
      const [buffers, at] = [gathered, writtenTo];
      gathered = [];
      writtenTo = piece.at;
      writtenAt = steadyNow();
      await writing;
      writing = write(at, buffers);
      // Its failure is thrown by the next flush, or at the end.
      writing.catch(() => undefined);
    };
    try {
      for await (const chunk of body as AsyncIterable<Buffer>) {
        let rest = chunk.subarray(skipping);
        skipping = Math.max(0, skipping - chunk.length);
        while (rest.length > 0 && (piece.at < piece.to || this.#work.extend(piece))) {
          const part = rest.subarray(0, piece.to - piece.at);
          rest = rest.subarray(part.length);
          gathered.push(part);
          piece.at += part.length;
        }
        if (rest.length > 0) break;
        if (piece.at - writtenTo >= tuning.gatherBytes || steadyNow() - writtenAt >= gatherMs) await flush();
      }
    } finally {
      if (writtenTo < piece.at) await flush();
      await writing;
    }
  }
}

/** Bytes that are not those of the file that the hub's list names. */
export function mismatch(file: HubFile, what: string): GatewayError {
  return new GatewayError("checksum_mismatch", `${file.path} came with ${what}; it was not kept.`);
}
