// The models of the tests: each names itself in what it says, so a test knows from the text which one answered and
// whether the answer is whole. Run by the real engine.
import { open } from "node:fs/promises";
import { poolings } from "../../src/core/gguf-facts.ts";
import { type ScriptedModel, scriptedModel, scriptedModelImage } from "./scripted/scripted-model.ts";

/** The only tool that the models call, always with these arguments. Offer it under this name with one string `city`. */
export const weatherTool = {
  type: "function",
  function: {
    name: "get_weather",
    description: "The weather of a city",
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  },
} as const;
export const weatherArguments = { city: "Paris" } as const;

export interface Answers {
  /** To anything that is not below. */
  readonly hello: string;
  /** After a tool's result. */
  readonly afterTool: string;
  /** To a message that contains "think": the reasoning, and the answer after it. */
  readonly reasoning: string;
  readonly afterReasoning: string;
  /** To a message that contains "long": 151 pieces, so that many frames. */
  readonly long: string;
  /** To a message that contains "forever": repeated until somebody stops it or the context is full. */
  readonly forever: string;
}

/** What the models of this name say, to the letter. */
export function answersOf(name: string): Answers {
  const words = Array.from({ length: 150 }, (_, index) => `w${index + 1}`);
  return {
    hello: `Hello from ${name}, running on the real engine.`,
    afterTool: `The tool has answered, says ${name}.`,
    reasoning: `${name} thinks before it speaks.`,
    afterReasoning: `And this is what ${name} found.`,
    long: `${words.join(" ")} end.`,
    forever: `${name} goes on and on, `,
  };
}

export interface ModelOptions {
  /** Trained context in tokens; default 8192. */
  readonly contextLength?: number;
  readonly fileType?: number;
}

/** A small model (0.5 MB, 10,000 to 20,000 tokens per second). */
export function talkingModel(name: string, options: ModelOptions = {}): ScriptedModel {
  const answers = answersOf(name);
  return {
    name,
    contextLength: options.contextLength ?? 8192,
    ...(options.fileType === undefined ? {} : { fileType: options.fileType }),
    scripts: [
      { when: "default", says: answers.hello },
      { when: "toolResult", says: answers.afterTool },
      {
        when: { tool: weatherTool.function.name },
        says: '<tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}</tool_call>',
      },
      { when: { word: "think" }, says: `<think>${answers.reasoning}</think>${answers.afterReasoning}` },
      { when: { word: "forever" }, says: answers.forever, endless: true },
      { when: { word: "long" }, says: answers.long },
    ],
  };
}

/**
 * Says the same slowly: 27 MB, nearly all of it zeros to multiply with. About 300 tokens per second on an idle core, 60 on
 * busy ones. A stream that must last for longer: ask it "forever", or hold it with SIGSTOP.
 */
export function slowModel(name: string, options: ModelOptions = {}): ScriptedModel {
  return { ...talkingModel(name, options), width: 1024, feedForward: 32_768 };
}

/**
 * Answers embeddings: 64 numbers that differ by the text. Its file says how it pools, so the gateway has the engine embed
 * with it. `last` takes the last token's vector and needs no batch that holds the whole text.
 */
export function embeddingModel(
  name: string,
  options: ModelOptions & { readonly pooling?: keyof typeof poolings } = {},
): ScriptedModel {
  return {
    name,
    contextLength: options.contextLength ?? 8192,
    template: "none",
    metadata: [["llama.pooling_type", { type: "uint32", value: poolings[options.pooling ?? "mean"] }]],
    scripts: [{ when: "default", says: "An embedding model has nothing to say." }],
  };
}

/** Says hello, and its template knows neither tools nor thinking. */
export function plainModel(name: string, options: ModelOptions = {}): ScriptedModel {
  const { hello, long } = answersOf(name);
  return {
    ...talkingModel(name, options),
    template: "plain",
    scripts: [
      { when: "default", says: hello },
      { when: { word: "long" }, says: long },
    ],
  };
}

/** What an {@link insertModel} puts into every gap. */
export const gapFiller = "return a + b;";

/** A talking model that also fills a gap between two texts. */
export function insertModel(name: string, options: ModelOptions = {}): ScriptedModel {
  const model = talkingModel(name, options);
  return { ...model, scripts: [...model.scripts, { when: "gap", says: gapFiller }] };
}

const slowBytes = new Map<string, Uint8Array>();

/** The file of a model, in memory; of a slow one computed once, as it is 27 MB. */
export function modelBytes(model: ScriptedModel): Uint8Array {
  if (model.feedForward === undefined) return scriptedModel(model);
  const key = JSON.stringify(model);
  const bytes = slowBytes.get(key) ?? scriptedModel(model);
  slowBytes.set(key, bytes);
  return bytes;
}

/** Writes the model's file, of so many bytes; the zeros that a slow one ends with stay a hole where the filesystem has holes. */
export async function writeModelFile(path: string, model: ScriptedModel): Promise<number> {
  const image = scriptedModelImage(model);
  const file = await open(path, "w");
  try {
    await file.writeFile(image.head);
    await file.truncate(image.size);
    return image.size;
  } finally {
    await file.close();
  }
}
