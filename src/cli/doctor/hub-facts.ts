// Whether the hub answers, what time it has, and what the token may. The token is never shown.
import { GatewayError, toGatewayError } from "../../core/errors.ts";
import { parseJson } from "../../core/json.ts";
import { redactText } from "../../core/redact.ts";
import { createHubHttp } from "../../hub/http.ts";
import type { Settings } from "../../settings/settings.ts";
import type { HubFacts } from "./local-checks.ts";

const stallMs = 4_000;
const mostBytes = 1024 * 1024;

export async function askHub({ hubEndpoint, hubToken, environment }: Settings): Promise<HubFacts> {
  // Its address may carry a password.
  const shown = redactText(hubEndpoint);
  const http = createHubHttp({ endpoint: hubEndpoint, token: undefined, environment, stallMs });
  const tooLong = (): GatewayError => new GatewayError("hub_unreachable", "the response is not from a hub");
  const begun = performance.now();
  try {
    const url = `${hubEndpoint}/api/models?filter=gguf&limit=1`;
    const { answer } = await http.text(url, { what: "the hub's list" }, mostBytes, tooLong);
    const ms = performance.now() - begun;
    const theirs = Date.parse(answer.header("date") ?? "");
    const aheadMs = Number.isNaN(theirs) ? null : Date.now() - theirs;
    return { endpoint: shown, problem: null, ms, aheadMs, token: await tokenFacts() };
  } catch (error) {
    const token = { state: hubToken === undefined ? "none" : "unknown" } as const;
    return { endpoint: shown, problem: toGatewayError(error).message, ms: 0, aheadMs: null, token };
  } finally {
    await http.close();
  }

  async function tokenFacts(): Promise<HubFacts["token"]> {
    if (hubToken === undefined) return { state: "none" };
    const own = createHubHttp({ endpoint: hubEndpoint, token: hubToken, environment, stallMs });
    try {
      const asked = { what: "the token's rights", accept: [401, 403, 404] };
      const { answer, text } = await own.text(`${hubEndpoint}/api/whoami-v2`, asked, mostBytes, tooLong);
      if (answer.status === 401 || answer.status === 403) return { state: "refused" };
      const { name, auth } = (parseJson(text) ?? {}) as {
        readonly name?: string;
        readonly auth?: { readonly accessToken?: { readonly role?: string } };
      };
      if (answer.status !== 200 || typeof name !== "string") return { state: "unknown" };
      return { state: "accepted", account: name, role: auth?.accessToken?.role ?? "what its account may" };
    } catch {
      // The hub answers, and this route of it does not.
      return { state: "unknown" };
    } finally {
      await own.close();
    }
  }
}
