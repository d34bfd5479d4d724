// Which voice has the engine: all who want one voice share its turn, and the voices take turns in the order of their asking.
// Pure. Knows no engine.
import { GatewayError } from "../core/errors.ts";

export interface VoiceTurns {
  /** Resolves when it is this voice's turn. Throws `cancelled`. */
  enter(voice: string, signal: AbortSignal): Promise<VoiceTurn>;
  /** What the turn that is on has replaced, as long as it is not known whether its voice speaks; null: nothing. */
  replaced(): string | null;
}

/** One request's part in it. */
export interface VoiceTurn {
  /** False once another voice has its turn: nobody new is begun then. */
  isOn(): boolean;
  /** Nobody else has part in it. */
  isAlone(): boolean;
  /** The voice can be used: it keeps the engine so many ms from now where others wait. The first call counts. */
  begun(ms: number): void;
  /** What the turn replaced, for whoever finds that it was in vain; null: nothing. All who have part share it. */
  replaced: string | null;
  /** Call it once. Without anybody left the turn is over. */
  leave(): void;
}

interface Turn {
  readonly voice: string;
  readonly waiting: Set<() => void>;
  /** Those who wait among them. */
  users: number;
  /** ms */
  until: number;
  replaced: string | null;
}

export function createVoiceTurns(now: () => number): VoiceTurns {
  const line: Turn[] = [];
  let current: Turn | null = null;
  let timer: NodeJS.Timeout | undefined;

  function advance(): void {
    clearTimeout(timer);
    if (current && current.users > 0) {
      if (line.length === 0) return;
      const left = current.until - now();
      if (left > 0) {
        if (Number.isFinite(left)) timer = setTimeout(advance, left);
        return;
      }
    }
    current = line.shift() ?? null;
    for (const letIn of current?.waiting ?? []) letIn();
  }

  function leave(turn: Turn): void {
    turn.users--;
    if (turn.users === 0 && line.includes(turn)) line.splice(line.indexOf(turn), 1);
    advance();
  }

  function turnOf(voice: string): Turn {
    const found = [current, ...line].find((turn) => turn?.voice === voice);
    if (found) return found;
    const turn: Turn = { voice, waiting: new Set(), users: 0, until: Number.POSITIVE_INFINITY, replaced: null };
    line.push(turn);
    return turn;
  }

  function partIn(turn: Turn): VoiceTurn {
    return {
      isOn: () => turn === current,
      isAlone: () => turn.users === 1,
      begun: (ms) => {
        if (turn.until !== Number.POSITIVE_INFINITY) return;
        turn.until = now() + ms;
        advance();
      },
      get replaced() {
        return turn.replaced;
      },
      set replaced(voice) {
        turn.replaced = voice;
      },
      leave: () => leave(turn),
    };
  }

  return {
    replaced: () => current?.replaced ?? null,
    enter: async (voice, signal) => {
      if (signal.aborted) throw gone();
      // A timer may be late.
      advance();
      const turn = turnOf(voice);
      turn.users++;
      if (turn === current) return partIn(turn);
      return new Promise((resolve, reject) => {
        const letIn = (): void => {
          signal.removeEventListener("abort", giveUp);
          resolve(partIn(turn));
        };
        const giveUp = (): void => {
          turn.waiting.delete(letIn);
          reject(gone());
          leave(turn);
        };
        turn.waiting.add(letIn);
        signal.addEventListener("abort", giveUp, { once: true });
        advance();
      });
    },
  };
}

function gone(): GatewayError {
  return new GatewayError("cancelled", "the client left");
}
