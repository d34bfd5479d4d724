// Asks the hub for the files that a plan pulls, so that a misspelt repository is found before anything runs. Changes nothing.
import type { SpeechLists } from "../cache/download/speech-lists.ts";
import { selectFiles } from "../cache/layout/select.ts";
import { toGatewayError } from "../core/errors.ts";
import { parseModelId, repoOf } from "../core/ids.ts";
import { unlessLeft } from "../core/unless-left.ts";
import type { HubClient } from "../hub/client.ts";
import { failureOf, type HubAnswer, type HubAnswers, type Pull, questionOf } from "../plan/whole/hub-answers.ts";

/** ms for all questions of a plan together. */
const longestMs = 5_000;
/** ms that an answer is taken for current: plans are asked for again and again. */
const freshMs = 60_000;
/** Questions of one plan; those of further pulls stay open. */
const mostQuestions = 64;
const atOnce = 8;

export type AskHub = (pulls: readonly Pull[], signal?: AbortSignal) => Promise<HubAnswers>;

export function createHubQuestions(options: {
  readonly hub: Pick<HubClient, "resolveRevision" | "listTree" | "openFile">;
  readonly lists: Pick<SpeechLists, "officialVoice" | "modelFiles">;
  readonly now: () => number;
}): AskHub {
  const { hub, lists, now } = options;
  const known = new Map<string, { readonly at: number; readonly answer: HubAnswer }>();

  async function ask(pull: Pull, signal: AbortSignal): Promise<HubAnswer> {
    switch (pull.kind) {
      case "model.pull": {
        const id = parseModelId(pull.model);
        if (!id) return { kind: "unknown", why: "it is no identifier of a model" };
        const repo = repoOf(id);
        const commit = await hub.resolveRevision(repo, pull.revision ?? "main", signal);
        const tree = await hub.listTree(repo, commit, signal);
        const { model, projector } = selectFiles(repo, id.tag, tree);
        // Of a gated repository the files are listed without a token, and refused.
        const path = model[0]?.path ?? "";
        (await hub.openFile(repo, commit, path, { from: 0, to: 1, signal })).body.destroy();
        return { kind: "files", commit, files: projector ? [...model, projector] : model, tree };
      }
      case "voice.pull": {
        const { files } = await lists.officialVoice(pull.voice, signal);
        return { kind: "bytes", bytes: files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0) };
      }
      case "transcription.pull": {
        const file = (await lists.modelFiles(signal)).find(({ path }) => path === pull.file);
        return file ? { kind: "bytes", bytes: file.size } : { kind: "unknown", why: "the hub does not list it" };
      }
      default:
        return pull satisfies never;
    }
  }

  async function answerTo(pull: Pull, signal: AbortSignal): Promise<HubAnswer> {
    const question = questionOf(pull);
    const earlier = known.get(question);
    if (earlier && now() - earlier.at < freshMs) return earlier.answer;
    const answer = await unlessLeft(ask(pull, signal), signal).catch(refusalOf);
    // A refusal may be mended at once: the terms are accepted, the name is corrected on the hub.
    if (answer.kind === "files" || answer.kind === "bytes") known.set(question, { at: now(), answer });
    return answer;
  }

  return async (pulls, left) => {
    for (const [question, { at }] of known) if (now() - at >= freshMs) known.delete(question);
    const deadline = AbortSignal.timeout(longestMs);
    const signal = left ? AbortSignal.any([left, deadline]) : deadline;
    const answers = new Map<string, HubAnswer>();
    const open = pulls.slice(0, mostQuestions);
    for (const pull of pulls.slice(mostQuestions))
      answers.set(questionOf(pull), { kind: "unknown", why: `the hub is asked for ${mostQuestions} models at most` });
    const worker = async (): Promise<void> => {
      for (let pull = open.shift(); pull; pull = open.shift())
        answers.set(questionOf(pull), await answerTo(pull, signal));
    };
    await Promise.all(Array.from({ length: atOnce }, worker));
    left?.throwIfAborted();
    return answers;
  };
}

/** Only what another try would not change is a refusal. */
function refusalOf(thrown: unknown): HubAnswer {
  const error = toGatewayError(thrown);
  if (error.reaction === "stall") return { kind: "refused", failure: failureOf(error) };
  const isLate = error.code === "cancelled";
  return { kind: "unknown", why: isLate ? `the hub did not answer within ${longestMs / 1000} s` : error.message };
}
