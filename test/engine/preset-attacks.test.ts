// A client can have the engine neither run a command nor read or write a file: tried in every spelling, by the file, PATCH,
// PUT and the fields of requests, on the real engine.
import assert from "node:assert/strict";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { cacheModel, cacheTalker, makeFolders } from "../support/folders.ts";
import { startTestGateway, type TestGateway } from "../support/gateway.ts";
import { answersOf, modelBytes, talkingModel } from "../support/models.ts";
import { codeOf, messageOf } from "../support/own-calls.ts";
import { projectorBytes } from "../support/projector.ts";
import { patchWith, postWith } from "../support/requests.ts";

const secret = "TOPSECRET-4711";

interface Target {
  readonly gateway: TestGateway;
  readonly id: string;
  /** Takes pictures. */
  readonly seeing: string;
  readonly document: string;
  /** Has a secret in it. */
  readonly file: string;
  /** Each an option of the engine that reads, writes or runs something, with a value that shows it. */
  readonly attacks: readonly (readonly [key: string, value: string])[];
  /** What stands in the folder that commands and logs would write to. */
  traces(): Promise<string[]>;
}

async function target(t: TestContext): Promise<Target> {
  const folders = await makeFolders(t);
  const id = await cacheTalker(folders, "acme/a");
  await cacheModel(folders, "acme/see", "mmproj-F16.gguf", projectorBytes());
  await cacheModel(folders, "acme/see", "see-Q8_0.gguf", modelBytes(talkingModel("see")));
  const document = `version: 1\nmodels:\n  - { id: "${id}", preset: { threads: 1 } }\n`;
  const gateway = await startTestGateway(t, { folders, yaml: document });
  await gateway.converged();
  const file = join(folders.root, "secret.txt");
  await writeFile(file, secret);
  const traces = (): Promise<string[]> => readdir(folders.root);
  const place = (name: string): string => join(folders.root, name);
  const run = (name: string): string =>
    JSON.stringify({ mcpServers: { x: { command: "/bin/sh", args: ["-c", `touch ${place(name)}`] } } });
  await writeFile(place("mcp.json"), run("ran-config"));
  const commands = [
    "mcp-servers-json",
    "LLAMA_ARG_MCP_SERVERS_JSON",
    "mcp_servers_json",
    "--mcp-servers-json",
    "MCP-SERVERS-JSON",
  ];
  return {
    gateway,
    id,
    seeing: "acme/see:Q8_0",
    document,
    file,
    attacks: [
      ...commands.map((key, index) => [key, run(`ran-${index}`)] as const),
      ["mcp-servers-config", place("mcp.json")],
      ["no-ui-mcp-proxy", "false"],
      ["tools", "all"],
      ["agent", "true"],
      ["ag", "on"],
      ["video-ffmpeg-dir", folders.root],
      ["chat-template-file", file],
      ["chat_template_file", file],
      ["LLAMA_ARG_CHAT_TEMPLATE_FILE", file],
      ["grammar-file", file],
      ["json-schema-file", file],
      ["jf", file],
      ["log-prompts-dir", place("prompts")],
      ["log-file", place("log")],
      ["slot-save-path", folders.root],
      ["lookup-cache-dynamic", place("lookup")],
      ["media-path", "/"],
      ["lora", file],
      ["md", file],
      ["flash-attn", "--agent"],
      ["threads", `1\nmcp-servers-json = ${run("ran-line")}`],
      ["top-k", "1\rmcp-servers-json = {}"],
    ],
    traces,
  };
}

test("as a preset key: by the file, PATCH and PUT refused by name, and the preset stays what it was", async (t) => {
  const { gateway, id, attacks, document, traces } = await target(t);
  const path = join(gateway.stateDir, "router.preset.ini");
  const [preset, before] = [await readFile(path, "utf8"), await traces()];
  for (const [key, value] of attacks) {
    const models = { [id]: { preset: { [key]: value } } };
    const put = { ...patchWith({ version: 1, models: [{ id, preset: { [key]: value } }] }), method: "PUT" };
    for (const [query, init] of [
      ["?wait=true", patchWith({ models })],
      ["?wait=true", put],
      ["?dryRun=true", put],
    ] as const) {
      const answer = await gateway.json(`/api/desired${query}`, init);
      assert.deepEqual([answer.status, codeOf(answer)], [400, "invalid_document"], key);
      assert.ok(messageOf(answer).includes(key), `${key}: ${messageOf(answer)}`);
    }
  }
  // Of more problems than twenty only the first are listed.
  for (let first = 0; first < attacks.length; first += 10) {
    const some = attacks.slice(first, first + 10);
    const lines = some.map(
      ([key, value]) =>
        `  - id: acme/${key.replaceAll(/\W/g, "x")}:Q8_0\n    preset: { ${JSON.stringify(key)}: ${JSON.stringify(value)} }\n`,
    );
    await gateway.writeConfig(`version: 1\nmodels:\n${lines.join("")}`);
    const isTold = (problems: string): boolean =>
      some.every(([key], index) => problems.includes(JSON.stringify(`models[${index}].preset.${key}`)));
    await gateway.until("refused", (status) => isTold(JSON.stringify(status.source.problems)));
  }
  await gateway.writeConfig(document);
  await gateway.until("taken again", (status) => status.source.valid);

  assert.equal(await gateway.ask(id), answersOf("acme/a").hello);
  assert.equal(await readFile(path, "utf8"), preset);
  assert.deepEqual(await traces(), before);
});

test("as a field of a request in OpenAI's, Ollama's or llama.cpp's API, or by a route of the engine's", async (t) => {
  const { gateway, id, seeing, attacks, file, traces } = await target(t);
  const before = await traces();
  const answers: string[] = [];
  const send = async (path: string, body: object): Promise<number> => {
    const response = await fetch(gateway.url + path, postWith(body));
    answers.push(await response.text());
    return response.status;
  };
  const messages = [{ role: "user", content: "hi" }];
  const chat = { model: id, messages, max_tokens: 4 };
  for (const [key, value] of attacks) {
    const field = { [key]: value };
    await send("/v1/chat/completions", { ...chat, ...field });
    await send("/v1/completions", { model: id, prompt: "hi", max_tokens: 4, ...field });
    await send("/v1/responses", { model: id, input: "hi", max_output_tokens: 4, ...field });
    await send("/v1/messages", { ...chat, ...field });
    await send("/completion", { model: id, prompt: "hi", n_predict: 4, ...field });
    await send("/apply-template", { ...chat, ...field });
    await send("/api/chat", { model: id, messages, stream: false, ...field, options: { num_predict: 4, ...field } });
    await send("/api/generate", {
      model: id,
      prompt: "hi",
      stream: false,
      ...field,
      options: { num_predict: 4, ...field },
    });
  }
  for (const extra of [
    { lora: [{ path: file, scale: 1 }] },
    { json_schema: { $ref: `file://${file}` } },
    { response_format: { type: "json_schema", json_schema: { schema: { $ref: `file://${file}` } } } },
    { grammar: `@${file}` },
    { chat_template: `{% include "${file}" %}` },
    { chat_template_kwargs: { x: `{% include "${file}" %}` } },
  ])
    for (const path of ["/v1/chat/completions", "/apply-template"]) await send(path, { ...chat, ...extra });
  for (const url of [`file://${file}`, "file://secret.txt", file, `data:image/png;base64,${file}`]) {
    const content = [
      { type: "image_url", image_url: { url } },
      { type: "input_audio", input_audio: { data: url, format: "wav" } },
    ];
    for (const part of content)
      assert.ok(
        (await send("/v1/chat/completions", { model: seeing, messages: [{ role: "user", content: [part] }] })) >= 400,
      );
    assert.ok((await send("/api/generate", { model: seeing, prompt: "x", images: [url] })) >= 400);
  }
  assert.ok((await send("/api/generate", { model: id, prompt: "x", template: `{{ include "${file}" }}` })) >= 400);

  for (const [path, body] of [
    [`/props?model=${id}`, { model: id, chat_template: "{{ 'changed' }}" }],
    [`/slots/0?action=save&model=${id}`, { model: id, filename: "saved.bin" }],
    [`/slots/0?action=restore&model=${id}`, { model: id, filename: "../secret.txt" }],
    ["/lora-adapters", [{ id: 0, scale: 1, path: file }]],
    ["/models", { model: "acme/other:Q8_0" }],
    ["/tools", { tool: "read_file", params: { path: file } }],
    ["/cors-proxy", { url: "http://127.0.0.1:1/" }],
  ] as const)
    for (const prefix of ["", "/v1", "/beta"]) assert.ok((await send(prefix + path, body)) >= 400, prefix + path);

  assert.ok(answers.length > 200);
  for (const answer of answers) assert.ok(!answer.includes(secret), answer);
  assert.deepEqual(await traces(), before);
  assert.equal(await gateway.ask(id), answersOf("acme/a").hello);
});
