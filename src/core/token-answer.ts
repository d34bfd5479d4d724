/** What a model's process did when it was asked for one token. */
export type TokenAnswer =
  | { readonly kind: "given" }
  /** `why`: the engine's own message. */
  | { readonly kind: "refused"; readonly why: string }
  /** No response: the process has ended, is about to, or is not ready. The router's list shows which. */
  | { readonly kind: "none" };
