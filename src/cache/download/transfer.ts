// The bytes that a partial lacks, over as many connections as help, until they are all there or trying again is no use.
// Where the server does not do ranges, or does them wrong, it is one connection that reads from the beginning.
import { GatewayError } from "../../core/errors.ts";
import type { HubClient, OpenedFile } from "../../hub/client.ts";
import { cancelled, transferError } from "../../hub/errors.ts";
import type { HubPlace } from "../../hub/http.ts";
import type { HubFile } from "../layout/select.ts";
import { coveredBytes, frontOf, gapsOf } from "./extents.ts";
import type { PartialFile } from "./partial-file.ts";
import { receive } from "./receive.ts";
import { createTries, type TryOptions } from "./tries.ts";
import { createWorkList, type Piece } from "./work-list.ts";

export interface TransferTuning extends TryOptions {
  /** Connections for one file, at most. */
  readonly connections: number;
  /** Bytes that one connection fetches before it asks what is next. */
  readonly pieceBytes: number;
  /** Bytes that each connection gathers before they are written. */
  readonly gatherBytes: number;
  /** Less than this is not worth a connection. */
  readonly leastBytes: number;
  /** Bytes per second of all together from which on one of them is enough. */
  readonly enoughPerSecond: number;
  /** Milliseconds between two looks at the rate. */
  readonly lookMs: number;
}

export const defaultTuning: TransferTuning = {
  connections: 8,
  pieceBytes: 16 * 1024 * 1024,
  gatherBytes: 512 * 1024,
  leastBytes: 1024 * 1024,
  // Well above a full gigabit line: there more connections cost more work than they bring.
  enoughPerSecond: 300_000_000,
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
  /** Of the whole pull; 0 while nothing can be said. */
  bytesPerSecond(): number;
  /** Bytes that came in, and how many of the file are there now, those on their way to the disk included. */
  onBytes(received: number, completed: number): void;
}

/** Throws `hub_*`, `checksum_mismatch` where the hub announces another file, `cancelled`, and what `write` throws. */
export async function transfer(options: Transfer): Promise<void> {
  if (!options.plain && (await byRanges(options))) return;
  await fromTheBeginning(options);
}

/** False when the server proved unfit for ranges. */
async function byRanges(options: Transfer): Promise<boolean> {
  const { client, repo, commit, file, partial, tuning } = options;
  const work = createWorkList({ gaps: gapsOf(partial.extents(), file.size), ...tuning });
  const over = new AbortController();
  const signal = AbortSignal.any([options.signal, over.signal]);
  let completed = coveredBytes(partial.extents());
  let gained = 0;
  let place: HubPlace | undefined;
  let fit: boolean | undefined;

  async function open(piece: Piece, to: number): Promise<OpenedFile> {
    const range = { from: piece.at, to, signal };
    if (place === undefined) return client.openFile(repo, commit, file.path, range);
    try {
      return await client.openFile(repo, commit, file.path, { ...range, place });
    } catch (error) {
      // The address was good for a while only: the hub knows a newer one.
      place = undefined;
      if (signal.aborted || (error instanceof GatewayError && error.code === "hub_rate_limited")) throw error;
      return client.openFile(repo, commit, file.path, range);
    }
  }

  async function fetchPiece(piece: Piece): Promise<void> {
    // Alone a connection goes on and on; among several it stops where the next one begins.
    const asked = lanes > 1 ? piece.to : work.freeTo(piece);
    const opened = await open(piece, asked);
    if (fits(opened, file, piece.at)) {
      fit = true;
    } else {
      opened.body.destroy();
      fit = false;
      over.abort();
      throw cancelled(file.path);
    }
    place = opened.place;
    await receive({
      body: opened.body,
      skip: 0,
      at: () => piece.at,
      until: () => piece.to,
      more: () => work.extend(piece),
      taken(bytes) {
        piece.at += bytes;
        completed += bytes;
        gained += bytes;
        options.onBytes(bytes, completed);
      },
      write: options.write,
      gatherBytes: options.tuning.gatherBytes,
    });
    if (piece.at < piece.to) throw endedEarly(file, piece.at);
  }

  async function lane(): Promise<void> {
    const tries = createTries(tuning);
    for (let piece = work.claim(); piece; piece = work.claim()) {
      if (lanes > 1 && options.bytesPerSecond() > tuning.enoughPerSecond) {
        work.release(piece);
        return;
      }
      try {
        await fetchPiece(piece);
        work.release(piece);
        // The others may be waiting for a next try that is not needed any more.
        if (work.left() === 0) over.abort();
      } catch (error) {
        work.release(piece);
        await tries.again(transferError(error, file.path, signal), gained, signal);
      }
    }
  }

  let lanes = 0;
  let failure: GatewayError | undefined;
  let allDone: () => void = () => undefined;
  const done = new Promise<void>((resolve) => {
    allDone = resolve;
  });
  function startLane(): void {
    lanes++;
    lane()
      .catch((error: unknown) => {
        const reason = transferError(error, file.path, signal);
        if (fit === false || (reason.code === "cancelled" && work.left() === 0)) return;
        failure ??= reason;
        // One that fails for good ends the others: what it could not get, they could not either.
        over.abort();
      })
      .finally(() => {
        lanes--;
        if (lanes > 0) return;
        // Those that gave way to each other may all have done so.
        if (work.left() > 0 && !signal.aborted) startLane();
        else allDone();
      });
  }

  function startMore(): void {
    if (signal.aborted) return;
    const worth = Math.ceil(work.left() / (8 * tuning.leastBytes));
    while (lanes < Math.min(tuning.connections, worth)) startLane();
  }

  const look = setInterval(() => {
    const rate = options.bytesPerSecond();
    if (fit && rate > 0 && rate < tuning.enoughPerSecond / 3) startMore();
  }, tuning.lookMs);
  startLane();
  await done;
  clearInterval(look);
  if (failure !== undefined && options.signal.aborted) throw cancelled(file.path);
  if (failure !== undefined) throw failure;
  return fit !== false;
}

async function fromTheBeginning(options: Transfer): Promise<void> {
  const { client, repo, commit, file, partial, signal } = options;
  const tries = createTries(options.tuning);
  let gained = 0;
  while (frontOf(partial.extents()) < file.size) {
    try {
      const opened = await client.openFile(repo, commit, file.path, { from: 0, signal });
      try {
        checkAnnounced(file, opened);
        // Bytes that are written a second time must not be hashed before that.
        partial.forgetIslands();
        // What is there already is read past: that costs the same, and what is on disk stays there.
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
          write: options.write,
          gatherBytes: options.tuning.gatherBytes,
        });
        if (at < file.size) throw endedEarly(file, at);
      } finally {
        opened.body.destroy();
      }
    } catch (error) {
      await tries.again(transferError(error, file.path, signal), gained, signal);
    }
  }
}

/** Whether the answer is the range that was asked for, of the file that was asked for. */
function fits(opened: OpenedFile, file: HubFile, from: number): boolean {
  checkDigest(file, opened);
  return opened.ranged && opened.from === from && (opened.total === undefined || opened.total === file.size);
}

/** The hub's own headers must agree with its file list: else the list is stale, or the answer is for another file. */
function checkAnnounced(file: HubFile, opened: OpenedFile): void {
  checkDigest(file, opened);
  if (opened.total !== undefined && opened.total !== file.size) throw mismatch(file, `another size (${opened.total})`);
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
