// How messages spell a command of ours.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type OwnCommand, ownCommand } from "../../../src/core/own-command.ts";

function spelling(changes: Partial<Parameters<typeof ownCommand>[0]>): OwnCommand {
  return ownCommand({
    script: "/opt/gateway/dist/program/cli.js",
    isOnPath: false,
    isNpmStart: false,
    workingDir: "/opt/gateway",
    state: { dir: "/opt/gateway/state", isDefault: true },
    where: ["--port", "9000"],
    ...changes,
  });
}

describe("a command of ours in a message", () => {
  it("is the checkout's file, from the working folder where it lies in there", () => {
    const words = ["engine", "install", "whisper"];
    assert.equal(spelling({})(...words), "node dist/program/cli.js engine install whisper");
    assert.equal(
      spelling({ workingDir: "/home/me" })(...words),
      `node /opt/gateway/dist/program/cli.js ${words.join(" ")}`,
    );
    assert.equal(spelling({ workingDir: "/opt/gateway-2" })("help"), "node /opt/gateway/dist/program/cli.js help");
  });

  it("is the program's name where the shell finds it", () => {
    assert.equal(spelling({ isOnPath: true })("key", "create", "NAME"), "model-gateway key create NAME");
  });

  it("names a state folder that is not the default one, quoted where the shell needs it", () => {
    const of = (dir: string): string => spelling({ isOnPath: true, state: { dir, isDefault: false } })("key", "list");
    assert.equal(of("/opt/gateway/other"), "model-gateway key list --state other");
    assert.equal(of("/opt/gateway"), "model-gateway key list --state .");
    assert.equal(of("/tmp/my state's"), String.raw`model-gateway key list --state '/tmp/my state'\''s'`);
    assert.equal(of("/opt/gateway/-x"), "model-gateway key list --state /opt/gateway/-x");
    assert.equal(of("/opt/gateway/..x"), "model-gateway key list --state ..x");
  });

  it("says where the gateway listens to those that ask it, and to no others", () => {
    const command = spelling({ isOnPath: true });
    assert.equal(command("rm", "a/b:Q8_0", "--yes"), "model-gateway rm a/b:Q8_0 --yes --port 9000");
    assert.equal(command("engine", "install", "llama"), "model-gateway engine install llama");
    assert.equal(command("serve", "--port", "N"), "model-gateway serve --port N");
  });

  it("is `npm start` for the gateway that npm runs, with flags where npm passes them on", () => {
    assert.equal(spelling({ isNpmStart: true })("serve"), "npm start");
    assert.equal(spelling({ isNpmStart: true })("serve", "--port", "N"), "npm start -- --port N");
    assert.equal(spelling({ isNpmStart: true })("help"), "node dist/program/cli.js help");
  });
});
