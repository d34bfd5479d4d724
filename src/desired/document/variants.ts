// What a variant may set. Pure.
import { requestMembers, reservedMembers } from "../../../schemas/request-members.ts";
import { isJsonObject } from "../../core/json.ts";
import { nearMatch } from "../../core/near-match.ts";
import { type Found, listIn } from "./problem.ts";

/** Unknown members that are compared with the known ones: a document may have 5,000 of them. */
const mostCompared = 100;

export function variantProblems(models: readonly unknown[]): Found[] {
  let compared = 0;
  /** The engine takes no notice of a member that it does not know, and answers with its default. */
  function memberProblem(member: string): string | null {
    const why = reservedMembers.get(member);
    if (why !== undefined) return `not a member that a variant sets: ${why}`;
    const near =
      requestMembers.has(member) || ++compared > mostCompared ? null : nearMatch(member, requestMembers.keys());
    return near === null ? null : `no member of a request (did you mean ${near}?)`;
  }
  return models.flatMap((entry, index) =>
    listIn(entry, "variants").flatMap((variant, at): Found[] => {
      const path = ["models", index, "variants", at];
      const set = isJsonObject(variant) && isJsonObject(variant["set"]) ? Object.keys(variant["set"]) : [];
      const members = set.flatMap((member): Found[] => {
        const message = memberProblem(member);
        return message === null ? [] : [{ path: [...path, "set", member], message, atKey: true }];
      });
      const unset = listIn(variant, "force").flatMap((member, place): Found[] => {
        if (typeof member !== "string" || set.includes(member)) return [];
        const near = set.length > 0 ? `; it has ${set.slice(0, 20).join(", ")}` : "";
        return [{ path: [...path, "force", place], message: `set has no member ${member}${near}` }];
      });
      return [...members, ...unset];
    }),
  );
}
