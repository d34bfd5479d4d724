// Ready of one model: whether a request for it is answered. One bad model takes no other's readiness, nor the gateway's. Pure.
import { type Finding, finding, reported, type StatusInput } from "./finding.ts";
import { fetchProblem, loadProblem } from "./health.ts";

/** `own`: what is found of the model; `serving`: why no chat can be served. */
export function modelReady(
  id: string,
  own: readonly Finding[],
  serving: Finding | undefined,
  input: StatusInput,
): Finding {
  const of = (type: string): Finding | undefined => own.find((each) => each.type === type);
  const [present, loaded] = [of("Present"), of("Loaded")];
  // It answers while its router is silent, and while other files or settings for it cannot be had.
  if (loaded?.status === "True") return finding("ModelReady", "Loaded", loaded.message);
  const isHere = present?.status === "True";
  const why = isHere ? (loadProblem(id, input) ?? serving ?? unlisted(loaded)) : (fetchProblem(id, input) ?? present);
  if (!why) return finding("ModelReady", "OnDemand");
  return reported("ModelReady", why.status === "Unknown" ? "Unknown" : "False", why.reason, why.message);
}

/** A model that the router does not list, or whose list cannot be read, cannot be loaded. */
function unlisted(loaded: Finding | undefined): Finding | undefined {
  return loaded && ["NotListed", "NotObserved"].includes(loaded.reason) ? loaded : undefined;
}
