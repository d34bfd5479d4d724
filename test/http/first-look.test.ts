// The moments of a start before the world has been looked at: who asks then waits, and is not told that nothing is there.
import assert from "node:assert/strict";
import { test } from "node:test";
import { cacheTalker, makeFolders } from "../support/folders.ts";
import { startTestGateway } from "../support/gateway.ts";
import { onListening } from "../support/listening.ts";
import { answersOf } from "../support/models.ts";
import { chatWith } from "../support/requests.ts";

test("who asks before the first look at the models waits for it", async (t) => {
  const folders = await makeFolders(t);
  const model = await cacheTalker(folders, "acme/alpha");
  const asked: Promise<unknown>[] = [];
  const ask = async (url: string, init?: RequestInit): Promise<unknown> => (await fetch(url, init)).json();
  await startTestGateway(t, {
    folders,
    yaml: `version: 1\nmodels: ["${model}"]\n`,
    ...onListening((url) => {
      asked.push(ask(`${url}/v1/models`), ask(`${url}/api/tags`), ask(`${url}/v1/chat/completions`, chatWith(model)));
    }),
  });
  const [list, tags, chat] = (await Promise.all(asked)) as [
    { data: { id: string }[] },
    { models: { name: string }[] },
    { choices?: { message: { content: string } }[] },
  ];
  assert.deepEqual(
    list.data.map(({ id }) => id),
    [model],
  );
  assert.deepEqual(
    tags.models.map(({ name }) => name),
    [model],
  );
  assert.equal(chat.choices?.[0]?.message.content, answersOf("acme/alpha").hello, JSON.stringify(chat));
});
