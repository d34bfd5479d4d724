// Where a document is wrong, from the message of the error `invalid_document`. Pure.

export interface Problem {
  readonly line: number;
  readonly column: number;
  readonly message: string;
}

const place = /line (\d+), column (\d+): /g;

/** `line 3, column 5: models: must be a list; line 4, …`. Empty: the message names no line. */
export function problemsIn(message: string): Problem[] {
  const places = [...message.matchAll(place)];
  return places.map((found, at) => ({
    line: Number(found[1]),
    column: Number(found[2]),
    message: message.slice(found.index + found[0].length, places[at + 1]?.index).replace(/; $/, ""),
  }));
}
