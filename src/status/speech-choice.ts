// Whether a voice or a transcription model that one chooses can be had, by the plan of that choice. Pure.
import type { PlanBody } from "../../schemas/plan.ts";
import type { SpeechKind } from "../plan/observed.ts";
import { choiceKey } from "../plan/speech.ts";

/** Why it cannot; null: it is here, or the hub has it. An engine that is not installed is no reason. */
export function choiceProblem({ problems, hub }: PlanBody, kind: SpeechKind): string | null {
  const isIts = (key: string): boolean => key.startsWith(choiceKey(kind, ""));
  const problem = problems.find(({ subject }) => isIts(subject));
  return problem?.message ?? hub.unanswered.find(({ question }) => isIts(question))?.why ?? null;
}
