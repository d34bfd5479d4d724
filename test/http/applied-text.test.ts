// A document as YAML over HTTP: replaced by it, or applied as a file; and what an ETag saves.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { cacheTalker, makeFolders } from "../support/folders.ts";
import { startTestGateway } from "../support/gateway.ts";
import { codeOf, messageOf } from "../support/own-calls.ts";
import { patchWith } from "../support/requests.ts";

function putText(body: string, headers: Record<string, string> = {}): RequestInit {
  return { method: "PUT", headers: { "content-type": "application/yaml", ...headers }, body };
}

test("the document as YAML over HTTP", async (t) => {
  const folders = await makeFolders(t);
  const model = await cacheTalker(folders, "acme/alpha");
  const gateway = await startTestGateway(t, { folders, yaml: "version: 1\nsuspend: false\n" });
  await gateway.converged();
  const applied = async (): Promise<unknown> => (await gateway.json("/api/desired")).body["applied"];

  await t.test("without apply it is the whole document, as JSON is", async () => {
    const file = await applied();
    const put = await gateway.json("/api/desired", putText(`version: 1 # one\nmodels: ["${model}"]\n`));
    assert.deepEqual([put.status, put.body["document"]], [200, { version: 1, models: [model] }]);
    assert.deepEqual(put.body["applied"], file);
    const asJson = await gateway.json("/api/desired", { method: "PUT", body: JSON.stringify(put.body["document"]) });
    assert.deepEqual(asJson.body["generation"], put.body["generation"]);
    for (const type of ["application/x-yaml", "text/yaml", "text/x-yaml; charset=utf-8"]) {
      const again = await gateway.json("/api/desired", putText("version: 1 # two\n", { "content-type": type }));
      assert.deepEqual([again.status, again.body["document"]], [200, { version: 1 }], type);
    }
    await gateway.json("/api/desired", putText(`version: 1\nmodels: ["${model}"]\n`));
  });

  await t.test("with apply it becomes the applied file, and merges beside what calls have set", async () => {
    await gateway.json("/api/desired", patchWith({ models: { [model]: { ctxSize: 512 } } }));
    const text = `# team\nversion: 1\ncontext: { default: 768 }\n`;
    const put = await gateway.json("/api/desired?apply=true&revision=3f2a9c1&wait=true", putText(text));
    assert.deepEqual(
      [put.status, put.body["converged"], put.body["document"]],
      [200, true, { version: 1, models: [{ id: model, ctxSize: 512 }], context: { default: 768 } }],
    );
    const { sha256, revision, by } = put.body["applied"] as Record<string, string>;
    assert.deepEqual(
      [sha256, revision, by],
      [createHash("sha256").update(text).digest("hex"), "3f2a9c1", "http:PUT /api/desired"],
    );
    assert.deepEqual(await applied(), put.body["applied"]);
  });

  await t.test("a dry run changes nothing", async () => {
    const before = await gateway.json("/api/desired");
    const tried = await gateway.json("/api/desired?apply=true&dryRun=true", putText("version: 1\nprune: true\n"));
    assert.deepEqual([tried.status, tried.body["dryRun"]], [200, true]);
    assert.deepEqual((await gateway.json("/api/desired")).body, before.body);
  });

  await t.test("what is wrong is named with its place, and nothing is changed", async () => {
    const before = await gateway.json("/api/desired");
    for (const [query, init, code, message] of [
      [
        "?apply=true",
        putText("version: 1\nmodles: []\n"),
        "invalid_document",
        /^line 2, column 1: modles: unknown key/,
      ],
      ["", putText("version: [1\n"), "invalid_document", /^line \d, column \d/],
      ["", putText(""), "invalid_document", /the file is empty/],
      ["?revision=abc", putText("version: 1\n"), "invalid_request", /add apply=true/],
      ["?apply=true&revision=a%20b", putText("version: 1\n"), "invalid_request", /^revision "a b" is not of the form/],
      [
        "?apply=true&revision=https://me:pass@h/x",
        putText("version: 1\n"),
        "invalid_request",
        /^revision .* no address with a password/,
      ],
      ["?apply=true", { method: "PUT", body: '{"version":1}' }, "invalid_request", /application\/yaml/],
      ["", putText("version: 1\n", { origin: "http://elsewhere.example" }), "forbidden_origin", /./],
      ["", putText("version: 1\n", { "if-match": '"g0-x"' }), "precondition_failed", /./],
      ["?apply=true", putText(`version: 1\nmodels: [{id: "${model}", mmproj: x}]`), "file_only", /gateway\.yaml/],
      ["", putText(`version: 1\n# ${"x".repeat(300_000)}\n`), "body_too_large", /./],
    ] as const) {
      const answer = await gateway.json(`/api/desired${query}`, init);
      assert.equal(codeOf(answer), code, query);
      assert.match(messageOf(answer), message);
    }
    const elsewhere = { ...putText("a: 1\n", { origin: gateway.url }), method: "POST" };
    assert.equal(codeOf(await gateway.json("/api/eject-model", elsewhere)), "unsupported_media_type");
    assert.deepEqual((await gateway.json("/api/desired")).body, before.body);
  });

  await t.test("If-None-Match: 304 without a body, until something of the response has changed", async () => {
    const etag = (await gateway.json("/api/desired")).headers.get("etag") ?? "";
    const ask = (value: string): Promise<Response> =>
      fetch(`${gateway.url}/api/desired`, { headers: { "if-none-match": value } });
    for (const value of [etag, `W/${etag}`, `"other", ${etag}`, "*"]) {
      const same = await ask(value);
      assert.deepEqual([same.status, await same.text(), same.headers.get("etag")], [304, "", etag]);
    }
    // The document is the same, but not the file that was applied.
    await gateway.json("/api/desired?apply=true", putText("version: 1\ncontext: { default: 768 } # more\n"));
    const other = await ask(etag);
    assert.equal(other.status, 200);
    await other.text();
    // The condition of a change is the document.
    const changed = await gateway.json("/api/desired", {
      ...patchWith({ suspend: false }),
      headers: { "content-type": "application/json", "if-match": etag },
    });
    assert.equal(changed.status, 200);
  });
});
