// What the settings say to the planner, in every plan alike: of the loop, of calls, and of commands without a gateway.
import type { PlanContext } from "../plan/actions.ts";
import type { Settings } from "../settings/settings.ts";

export function planRules({
  silenceLimitMs,
  pulls,
}: Pick<Settings, "silenceLimitMs" | "pulls">): Pick<PlanContext, "silenceLimitMs" | "isReader"> {
  return { silenceLimitMs, isReader: pulls === "off" };
}
