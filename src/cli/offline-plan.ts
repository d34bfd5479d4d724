// What a gateway would do if it were started now: reads the document and the world, and changes nothing.
import { join } from "node:path";
import { GatewayError } from "../core/errors.ts";
import { readIfPresent } from "../desired/atomic-file.ts";
import { type Desired, emptyTree, mergeFile, sparedAfter, standingRemovals, toDesired } from "../desired/document.ts";
import { parseSource } from "../desired/parse.ts";
import { readSavedDocument } from "../desired/saved.ts";
import { createEngineSource } from "../engines/engine-source.ts";
import { createRouter } from "../engines/router.ts";
import { openInventory } from "../execute/inventory.ts";
import { createSpeech } from "../gateway/speech.ts";
import { createHubClient } from "../hub/client.ts";
import { createCacheScanner } from "../observe/cache.ts";
import { createObserver } from "../observe/observe.ts";
import { plan } from "../plan/plan.ts";
import type { Settings } from "../settings.ts";
import { planBody } from "../status/report.ts";

export async function offlinePlan(settings: Settings): Promise<object> {
  const { stateDir, cacheDir, configPath, environment } = settings;
  const nothing = (): void => undefined;
  const presetPath = join(stateDir, "router.preset.ini");
  const engine = createEngineSource({
    explicit: settings.llamaServer,
    enginesDir: join(stateDir, "engines"),
    environment,
    install: false,
    onProgress: nothing,
    onChange: nothing,
  });
  await engine.prepare(new AbortController().signal);
  const router = createRouter({
    presetPath,
    stateDir,
    cacheDir,
    environment,
    startTimeoutMs: 0,
    stopGraceMs: 0,
    reloadTimeoutMs: 0,
    pingMs: 0,
    now: Date.now,
    onOutput: nothing,
    onChange: nothing,
    warn: nothing,
  });
  const inventory = await openInventory(stateDir, nothing);
  const desired = await documentNow(settings);
  const speech = createSpeech({
    settings,
    hub: createHubClient({ endpoint: settings.hubEndpoint, token: settings.hubToken, environment }),
    document: () => desired,
    now: Date.now,
    onOutput: nothing,
    onChange: nothing,
    onFound: nothing,
    warn: nothing,
  });
  const observer = createObserver({
    scanner: createCacheScanner(cacheDir),
    cacheDir,
    presetPath,
    router,
    inventory: inventory.entries,
    engine,
    speech: speech.observe,
    workers: null,
    onNewEngine: nothing,
  });
  const found = plan(desired, await observer.observe(), {
    now: Date.now(),
    backoff: new Map(),
    silenceLimitMs: settings.silenceLimitMs,
  });
  return planBody(found, 0, []);

  async function documentNow({ stateDir: folder }: Settings): Promise<Desired> {
    const saved = await readSavedDocument(folder);
    const text = await readIfPresent(configPath);
    if (text === null) return toDesired(saved.tree, saved.removals, saved.spared);
    const parsed = parseSource(text);
    if (!parsed.ok) {
      const [first] = parsed.problems;
      throw new GatewayError(
        "invalid_document",
        `${configPath}:${first?.line ?? 1}:${first?.column ?? 1}: ${first?.message ?? "invalid"}`,
      );
    }
    const before = saved.applied ?? emptyTree;
    const tree = mergeFile(saved.tree, before, parsed.tree);
    const file = { before, after: parsed.tree };
    const spared = sparedAfter(saved.spared, { before: saved.tree, after: tree, file });
    return toDesired(tree, standingRemovals(saved.removals, tree), spared);
  }
}
