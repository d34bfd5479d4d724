// What a test sends to a gateway with fetch.

/** A POST of JSON. */
export function postWith(body: unknown): RequestInit {
  return { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
}

/** A PATCH of the document. */
export function patchWith(body: object): RequestInit {
  return { method: "PATCH", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
}

/** A chat with one message. */
export function chatWith(model: string, content = "hi", rest: object = {}): RequestInit {
  return {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model, messages: [{ role: "user", content }], ...rest }),
  };
}
