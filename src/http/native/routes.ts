// The family wire-compatible with Ollama's API, on top of the engine's chat completions.

import { createHash } from "node:crypto";
import { performance } from "node:perf_hooks";
import type { FastifyInstance } from "fastify";
import { GatewayError } from "../../core/errors.ts";
import type { Catalogue, ModelView } from "../catalogue.ts";
import { clientLeft } from "../client-left.ts";
import type { Edits } from "../edits/edits.ts";
import { type ExchangeDeps, runGeneration, type Translator } from "../exchange.ts";
import { installFamily } from "../family.ts";
import { createSseParser } from "../sse.ts";
import { type ChatRecord, chatEnd, collect, createChatRecords, isErrorRecord } from "./chat-records.ts";
import { parseChatRequest } from "./chat-request.ts";
import { type ModelFacts, psBody, tagsBody } from "./model-records.ts";

/** The version of Ollama's API that is spoken here; clients refuse to talk to one below 0.6.4. */
const apiVersion = "0.20.0";

export interface NativeRoutesDeps extends ExchangeDeps {
  readonly catalogue: Catalogue;
  readonly edits: Edits;
}

export function nativeRoutes(app: FastifyInstance, deps: NativeRoutesDeps): void {
  installFamily(app, "native");
  app.post("/chat", async (request, reply) => {
    const chat = parseChatRequest(request.body);
    if (!chat.ok) throw new GatewayError("invalid_request", chat.message);
    const model = deps.catalogue.resolve(chat.model);
    const { id, upstreamId } = model;
    if (chat.purpose === "unload") {
      await deps.admission.unload(upstreamId, new AbortController().signal);
      return chatEnd(chat.model, rfc3339(), "unload");
    }
    if (chat.purpose === "load") {
      const lease = await deps.admission.acquire(upstreamId, clientLeft(reply));
      lease.release();
      return chatEnd(chat.model, rfc3339(), "load");
    }
    const body = Buffer.from(JSON.stringify({ ...chat.upstream, model: id }));
    const translator = chat.stream ? streamed(chat.model) : whole(chat.model);
    await runGeneration(deps, reply, {
      model,
      stream: true,
      body,
      path: "/v1/chat/completions",
      translator,
      keepAlive: chat.keepAlive,
      ...(chat.numCtx === undefined ? {} : { contextSize: chat.numCtx }),
    });
    return reply;
  });
  app.get("/tags", () => tagsBody(deps.catalogue.list().map(factsOf)));
  app.get("/ps", () => psBody(deps.catalogue.list().map(factsOf)));
  app.get("/version", () => ({ version: apiVersion }));
}

function rfc3339(): string {
  return new Date().toISOString();
}

function recordsFor(model: string): { parse(chunk: Buffer): ChatRecord[]; end(): ChatRecord[] } {
  const records = createChatRecords({ model, createdAt: rfc3339, now: () => performance.now() });
  let made: ChatRecord[] = [];
  const parser = createSseParser((data) => {
    if (data !== "[DONE]") made.push(...records.push(JSON.parse(data)));
  });
  const take = (): ChatRecord[] => {
    const taken = made;
    made = [];
    return taken;
  };
  return {
    parse: (chunk) => {
      parser.push(chunk);
      return take();
    },
    end: () => {
      parser.end();
      return [...take(), ...records.end()];
    },
  };
}

function streamed(model: string): Translator {
  const records = recordsFor(model);
  const lines = (list: readonly ChatRecord[]): string | null =>
    list.length === 0 ? null : list.map((record) => `${JSON.stringify(record)}\n`).join("");
  return {
    family: "native",
    begin: () => ({ "content-type": "application/x-ndjson", "cache-control": "no-cache", "x-accel-buffering": "no" }),
    chunk: (chunk) => lines(records.parse(chunk)),
    end: () => lines(records.end()),
  };
}

function whole(model: string): Translator {
  const records = recordsFor(model);
  const kept: ChatRecord[] = [];
  return {
    family: "native",
    begin: () => null,
    chunk: (chunk) => {
      kept.push(...records.parse(chunk));
      return null;
    },
    end: () => {
      const answer = collect([...kept, ...records.end()]);
      return isErrorRecord(answer) ? new GatewayError("upstream_failed", answer.error) : JSON.stringify(answer);
    },
  };
}

function factsOf({ model, contextLength, loaded }: ModelView): ModelFacts {
  return {
    id: model.id,
    size: model.bytes,
    modifiedAt: model.modifiedAt,
    // A plain file has no content hash at hand; what is needed is a stable name for this content.
    digest:
      model.digest ??
      createHash("sha256")
        .update(`${model.files[0] ?? ""}:${model.bytes}:${model.modifiedAt}`)
        .digest("hex"),
    ...(model.architecture === null ? {} : { family: model.architecture }),
    quantization: model.tag,
    ...(contextLength === null ? {} : { contextLength }),
    loaded,
  };
}
