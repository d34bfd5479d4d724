// A gateway with a license key as a process of its own: what the commands beside it see, and what its log holds.
import assert from "node:assert/strict";
import { createConnection } from "node:net";
import { test } from "node:test";
import { commandHere, runCommand, startCommand } from "../support/command.ts";
import { makeFolders } from "../support/folders.ts";

test("interface 5, Authentication: commands beside a gateway that needs a key, and its log", async (t) => {
  const folders = await makeFolders(t);
  await folders.writeConfig("version: 1\n");
  const key = (await runCommand(t, folders, ["key", "create", "laptop"])).stdout.trim();
  const single = "a-further-key-of-the-tests";
  const serve = await startCommand(t, folders, ["serve", "--log-level", "trace"], { GATEWAY_LICENSE_KEY: single });
  const [, port = ""] = await serve.output(/http:\/\/127\.0\.0\.1:(\d+)/);
  await serve.output(/Ready\./);
  const run = (command: string, licenseKey: string): ReturnType<typeof commandHere> =>
    commandHere(folders, [command, "--port", port], { GATEWAY_LICENSE_KEY: licenseKey });

  await t.test("status tells all with a key, and without one that there is more", async () => {
    const [withKey, without, wrong] = await Promise.all([
      run("status", key),
      run("status", ""),
      run("status", "wrong"),
    ]);
    assert.deepEqual([withKey.code, without.code, wrong.code], [0, 0, 0]);
    assert.match(withKey.stdout, /RouterReady +True/);
    assert.match(without.stdout, /^Model Gateway \S+: ready\nFor more, set GATEWAY_LICENSE_KEY to a license key\.\n$/);
    assert.match(
      wrong.stdout,
      /: ready\nNo more is shown: the license key in GATEWAY_LICENSE_KEY is unknown or expired\.\n$/,
    );
  });

  await t.test("plan needs one", async () => {
    const [withKey, without, wrong] = await Promise.all([run("plan", single), run("plan", ""), run("plan", "wrong")]);
    assert.deepEqual([withKey.code, withKey.stdout], [0, "Nothing to do.\n"]);
    const start = `model-gateway: the gateway on http://127.0.0.1:${port}`;
    assert.deepEqual([without.code, without.stderr], [1, `${start} needs a license key: set GATEWAY_LICENSE_KEY\n`]);
    assert.deepEqual(
      [wrong.code, wrong.stderr],
      [1, `${start} refuses the license key in GATEWAY_LICENSE_KEY: it is unknown, revoked or expired\n`],
    );
  });

  await t.test("no key gets into the log, however a request carries it and however it fails", async () => {
    const url = `http://127.0.0.1:${port}`;
    for (const secret of [key, single]) {
      const headers = { authorization: `Bearer ${secret}`, "x-license-key": secret, "x-api-key": secret };
      const body = { method: "POST", headers: { ...headers, "content-type": "application/json" }, body: "{" };
      await fetch(`${url}/k/${secret}/status`, { headers });
      await fetch(`${url}/k/${secret}/nothing`, { headers });
      await fetch(`${url}/k/${secret}/%zz`, { headers });
      await fetch(`${url}/k/${secret}/beta/v1/chat/completions`, body);
      await fetch(`${url}/k/${secret}/api/hf/search?q=x`, { headers });
      // What the HTTP parser itself refuses.
      await new Promise((resolve) => {
        const socket = createConnection(Number(port), "127.0.0.1");
        socket.resume().on("close", resolve);
        socket.write(`GET /k/${secret}/status HTTP/1.1\r\nAuthorization: Bearer ${secret}\r\nbad header\r\n\r\n`);
      });
    }
    serve.process.kill("SIGTERM");
    const { stdout, stderr } = await serve.exited;
    assert.match(stderr, /"level":10/, "the log is at its finest");
    for (const secret of [key, single]) {
      const bytes = [...Buffer.from(secret)].join(",");
      for (const output of [stdout, stderr]) assert.ok(!output.includes(secret) && !output.includes(bytes), output);
    }
  });
});
