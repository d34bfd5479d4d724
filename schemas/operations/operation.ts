// What the table of operations is made of. Types only.

/** A JSON Schema, in the words that draft-07 and 2020-12 share. */
export type Schema = Readonly<Record<string, unknown>>;

/** `own`: the gateway's; `native`: Ollama's; `compat`: OpenAI's and Anthropic's; `llama`: llama.cpp's; `front`: the bare address. */
export type OperationFamily = "own" | "native" | "compat" | "llama" | "front";

export interface Content {
  /** `application/json` */
  readonly mediaType: string;
  readonly schema: Schema;
}

export interface OperationResponse {
  readonly status: number;
  readonly description: string;
  /** Several where the client chooses, as by `stream`. None: the answer has no body. */
  readonly content: readonly Content[];
}

export interface OperationRequest {
  readonly content: readonly Content[];
  /** Default true. */
  readonly required?: boolean;
}

export interface Operation {
  /** Unique; camelCase. */
  readonly id: string;
  readonly family: OperationFamily;
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Below the family's prefix, parameters as `{name}`. */
  readonly path: string;
  readonly summary: string;
  readonly description?: string;
  /** Without a license key: `required` is refused, `short` says less, `none` answers as always. */
  readonly key: "required" | "short" | "none";
  /** A license key of this scope is enough. Absent: it takes one of scope `all`. */
  readonly scope?: "chat";
  /** Of the parameters in the path. */
  readonly parameters?: Readonly<Record<string, Schema>>;
  /** An object: one property per parameter. */
  readonly query?: Schema;
  /** The headers that matter beside the usual ones, each with what it is for. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly request?: OperationRequest;
  readonly responses: readonly OperationResponse[];
  /** Codes of the error catalogue that this operation may answer with, beside those that every one may. */
  readonly errors: readonly string[];
  /** Its errors have Anthropic's shape. */
  readonly dialect?: "messages";
  /** Reads its body as it comes, whatever type it says it has. */
  readonly anyMediaType?: boolean;
}
