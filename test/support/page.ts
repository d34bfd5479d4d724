// The status page in a real browser, against a gateway of the test: nothing may fail on it unseen.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { chromium, type Page } from "playwright-core";
import { chromiumLaunch } from "./chromium.ts";
import { cleanUp } from "./clean-up.ts";

/** A text for the browser: not imported, as Node would run it. */
const axePath = fileURLToPath(import.meta.resolve("axe-core/axe.min.js"));

/** ms: a person waits no longer. */
const pagePatienceMs = 20_000;

export interface OpenPage {
  readonly page: Page;
  /** Addresses below the gateway's that the page has asked for, in order. */
  readonly asked: readonly string[];
  /** What went wrong on it since the last call: errors of scripts and of the content policy, requests to elsewhere. */
  faults(): string[];
  /** Fails with what axe finds of the page as it is now; by all of its rules, or by one. */
  assertAccessible(what: string, rule?: string): Promise<void>;
  /** As {@link OpenPage.assertAccessible} in light, in the dark and on a narrow screen, where nothing is cut off; with pictures. */
  assertLooks(what: string): Promise<void>;
  /** Writes a picture of the first screen into the folder of `PAGE_SCREENSHOTS`, if that is set. */
  picture(name: string): Promise<void>;
}

const looks = [
  ["light", 1280, 900, "light"],
  ["dark", 1280, 900, "dark"],
  ["medium", 1000, 700, "light"],
  ["narrow", 360, 780, "light"],
] as const;

export async function openPage(t: TestContext, url: string): Promise<OpenPage> {
  const browser = await chromium.launch(chromiumLaunch());
  cleanUp(t, () => browser.close());
  const context = await browser.newContext({
    viewport: { width: 1280, height: 900 },
    colorScheme: "light",
    bypassCSP: false,
  });
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const page = await context.newPage();
  page.setDefaultTimeout(pagePatienceMs);
  const asked: string[] = [];
  let faults: string[] = [];
  page.on("pageerror", (error) => faults.push(`script: ${error.message}`));
  page.on("console", (message) => {
    // The browser reports each refused request; these are looked at by the tests that cause them.
    if (message.type() === "error" && !/Failed to load resource/.test(message.text())) faults.push(message.text());
  });
  page.on("request", (request) => {
    if (request.url().startsWith(url)) asked.push(request.url().slice(url.length));
    else faults.push(`a request to ${request.url()}`);
  });

  async function assertAccessible(what: string, rule?: string): Promise<void> {
    // Half a megabyte, so once per load of the page.
    if (!(await page.evaluate("'axe' in globalThis"))) await page.evaluate(await readFile(axePath, "utf8"));
    const options = { resultTypes: ["violations"], ...(rule === undefined ? {} : { runOnly: [rule] }) };
    // Behind an open dialog nothing can be used.
    const found = await page.evaluate<
      string[]
    >(`axe.run(document.querySelector("dialog[open]") ?? document, ${JSON.stringify(options)}).then(({ violations }) =>
        violations.map(({ id, nodes }) => id + ": " + nodes.map(({ html, failureSummary }) => html + " " + failureSummary).join(" | ")))`);
    assert.deepEqual(found, [], what);
  }

  async function picture(name: string): Promise<void> {
    const folder = process.env["PAGE_SCREENSHOTS"];
    if (folder === undefined) return;
    await page.locator(".notice:not(:empty)").first().waitFor({ state: "detached" });
    await page.evaluate("scrollTo(0, 0)");
    await page.screenshot({ path: join(folder, `${name}.png`) });
  }

  async function assertLooks(what: string): Promise<void> {
    for (const [name, width, height, colorScheme] of looks) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height });
      const isWider = await page.evaluate("document.documentElement.scrollWidth > innerWidth");
      assert.equal(isWider, false, `${name} ${what} is wider than the window`);
      if (name === "medium") continue;
      // In the dark all but the colors is the same, and on a narrow screen all but the tables that become cards.
      if (name !== "narrow" || (await page.locator("table.cards").count()) > 0)
        await assertAccessible(`${name} ${what}`, name === "dark" ? "color-contrast" : undefined);
      await picture(`${what.toLowerCase()}-${name}`);
    }
  }

  return {
    page,
    asked,
    assertAccessible,
    assertLooks,
    picture,
    faults: () => {
      const found = faults;
      faults = [];
      return found;
    },
  };
}
