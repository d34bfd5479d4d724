// The files of the status page as a gateway serves them.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { packageRoot } from "../../src/settings/settings.ts";

/** A browser gets the page with its policy, other clients do not; nothing of it is inline or from elsewhere, and it is small. */
export async function assertPageFiles(url: string): Promise<void> {
  const html = { headers: { accept: "text/html,application/xhtml+xml" } };
  for (const path of ["/", "/ui"]) {
    const response = await fetch(url + path, html);
    assert.equal(response.status, 200);
    assert.match(response.headers.get("content-type") ?? "", /^text\/html/);
    assert.match(
      response.headers.get("content-security-policy") ?? "",
      /^default-src 'none'; script-src 'self'; style-src 'self';/,
    );
    assert.doesNotMatch(response.headers.get("content-security-policy") ?? "", /unsafe|http/);
    assert.doesNotMatch(await response.text(), /<script(?! type="module" src="ui\/page\.js")|<style|style=|https?:/);
  }
  assert.match(await (await fetch(url)).text(), /Ollama is running/);
  const etag = (await fetch(`${url}/ui/page.js`)).headers.get("etag") ?? "";
  assert.equal((await fetch(`${url}/ui/page.js`, { headers: { "if-none-match": etag } })).status, 304);
  assert.equal((await fetch(`${url}/ui/`, { ...html, redirect: "manual" })).headers.get("location"), "../ui");
  assert.equal((await fetch(`${url}/ui/..%2fpackage.json`)).status, 404);
  const files = ["index.html", "page.js", "page.css", "icon.svg"];
  const sizes = files.map(async (name) => gzipSync(await readFile(join(packageRoot, "dist", "page", name))).length);
  const sum = (await Promise.all(sizes)).reduce((all, size) => all + size, 0);
  assert.ok(sum <= 60_000, `${sum} bytes`);
}
