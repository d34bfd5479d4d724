// What a generation is, and what it takes to run one.
import type { ChatContext } from "../../commands/chat-context.ts";
import type { GatewayError } from "../../core/errors.ts";
import type { KeepAlive } from "../../core/keep-alive.ts";
import type { TokenCounter } from "../../core/token-counts.ts";
import type { Upstream } from "../../engines/llama/upstream.ts";
import type { FamilyMeter } from "../../metrics/requests.ts";
import type { CachedModel } from "../../plan/observed.ts";
import type { PromptQueue } from "../../scheduler/prompt-queue.ts";
import type { Scheduler } from "../../scheduler/scheduler.ts";
import type { Dialect } from "../server/errors.ts";
import type { InFlight } from "./in-flight.ts";

/** How a family turns the engine's answer into its own. */
export interface Translator {
  /** The shape of its errors. */
  readonly family: Dialect;
  /** Headers for a stream; null for an answer that is sent whole, which can then still become a proper error. */
  begin(contentType: string): Record<string, string> | null;
  /** For a stream whose first byte is long in coming: headers, and what may be written any number of times meanwhile. */
  readonly waiting?: { readonly headers: Readonly<Record<string, string>>; readonly tick: string };
  /** What to write for whole lines of the answer; null writes nothing. `block`: the translator's, until that is written. */
  lines(block: Buffer): Uint8Array | string | null;
  /** The number that an error frame gets, in a family whose events are numbered. */
  nextSequence?(): number;
  /**
   * What to write last (the whole answer, where it is sent whole); an error where the answer was cut. `rest`: what came after the last
   * whole line; all of an answer that is no stream.
   */
  end(rest: Buffer): Uint8Array | string | GatewayError | null;
  /** Adds the tokens of the whole answer, after its end, where the engine has counted them. */
  count?(counter: TokenCounter): void;
}

export interface Generation {
  readonly model: CachedModel;
  /** The engine's. */
  readonly path: string;
  /** The client's, below its family's prefix. */
  readonly route: string;
  /** In pieces. */
  readonly body: readonly Uint8Array[];
  /** Whether the engine is asked for a stream. */
  readonly stream: boolean;
  readonly translator: Translator;
  /** The context size that the request carries. */
  readonly contextSize?: number | undefined;
  /** How long the model stays loaded after it. */
  readonly keepAlive?: KeepAlive;
}

export interface ExchangeDeps {
  readonly scheduler: Scheduler;
  readonly upstream: Upstream;
  readonly chatContext: ChatContext;
  readonly prompts: PromptQueue;
  readonly inFlight: InFlight;
  /** The gateway stops: answers still in flight end in an error frame. */
  readonly cutOff: AbortSignal;
  readonly onFailure: (error: GatewayError, model: string) => void;
  /** Of the family whose requests these are. */
  readonly meters: FamilyMeter;
  /** How long a stream's client waits without a byte; the first one comes earlier. */
  readonly tickMs?: number;
  /** ms that a client may leave its answer unread while others wait for the model. */
  readonly unreadMs?: number;
}
