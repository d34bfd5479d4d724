// Who makes a change: what sets the fields, and as far as it is known the client behind it.
export interface Author {
  /** `http:PATCH /api/desired`, `file:ed5a9c4a35cb`, `http:chat` */
  readonly by: string;
  /** Name of the license key. */
  readonly key?: string | null;
  /** Address of the client's socket. */
  readonly peer?: string | null;
  /** Its program: `User-Agent`. */
  readonly client?: string | null;
}

export function authorOf(by: Author | string): Author {
  return typeof by === "string" ? { by } : by;
}
