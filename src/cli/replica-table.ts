// Gateways beside each other: which are at the same document, and what each has loaded. Pure.
import type { ShortStatusBody, StatusBody } from "../client/index.ts";

/** What one gateway answered. */
export interface Replica {
  readonly url: string;
  /** Or why there is none. */
  readonly status: StatusBody | ShortStatusBody | { readonly problem: string };
}

export interface ReplicaRow {
  readonly url: string;
  /** null: it answered. */
  readonly problem: string | null;
  readonly ready: boolean;
  readonly sync: StatusBody["sync"] | null;
  /** SHA-256. */
  readonly documentHash: string | null;
  /** It has another document than most of them, or has told none. */
  readonly differs: boolean;
  /** Ids. */
  readonly loaded: readonly string[];
  readonly inFlight: number;
  readonly waiting: number;
}

export interface Comparison {
  /** Of most of them; null: none has told one. */
  readonly documentHash: string | null;
  readonly same: boolean;
  readonly replicas: readonly ReplicaRow[];
}

export function compareReplicas(replicas: readonly Replica[]): Comparison {
  const rows = replicas.map(rowOf);
  const hashes = rows.flatMap(({ documentHash }) => documentHash ?? []);
  const documentHash = mostFrequent(hashes);
  const compared = rows.map((row) => ({
    ...row,
    differs: row.documentHash === null || row.documentHash !== documentHash,
  }));
  return { documentHash, same: compared.every(({ differs }) => !differs), replicas: compared };
}

function rowOf({ url, status }: Replica): Omit<ReplicaRow, "differs"> {
  const none = { url, ready: false, sync: null, documentHash: null, loaded: [], inFlight: 0, waiting: 0 };
  if ("problem" in status) return { ...none, problem: status.problem };
  if (!("conditions" in status)) return { ...none, ready: status.gateway.ready, problem: "needs a license key" };
  return {
    url,
    problem: null,
    ready: status.gateway.ready,
    sync: status.sync,
    documentHash: status.documentHash,
    loaded: status.models.filter(({ runtime }) => runtime?.state === "loaded").map(({ id }) => id),
    inFlight: sum(Object.values(status.inFlight)),
    waiting: sum(status.waiting.map(({ requests }) => requests)),
  };
}

/** Of equally frequent ones the first. */
function mostFrequent(texts: readonly string[]): string | null {
  const counts = new Map<string, number>();
  for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1);
  return [...counts].toSorted(([, a], [, b]) => b - a)[0]?.[0] ?? null;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}

/** Rows of a table, its head first. */
export function replicaTable({ replicas }: Comparison): string[][] {
  const head = ["GATEWAY", "READY", "SYNC", "DOCUMENT", "", "IN FLIGHT", "WAITING", "LOADED"];
  return [head, ...replicas.map(cellsOf)];
}

function cellsOf(row: ReplicaRow): string[] {
  if (row.problem !== null) return [row.url, row.ready ? "yes" : "no", "–", "–", "", "–", "–", row.problem];
  return [
    row.url,
    row.ready ? "yes" : "no",
    row.sync ?? "–",
    shortHash(row.documentHash),
    row.differs ? "differs" : "",
    String(row.inFlight),
    String(row.waiting),
    row.loaded.join(", ") || "–",
  ];
}

/** What the table comes to, in a line. */
export function verdictOf({ documentHash, same, replicas }: Comparison): string {
  if (same) return `All ${replicas.length} are at document ${shortHash(documentHash)}.`;
  const silent = replicas.filter(({ problem }) => problem !== null).map(({ url }) => url);
  const other = replicas.filter(({ problem, differs }) => problem === null && differs).map(({ url }) => url);
  const count = replicas.length - silent.length - other.length;
  return [
    `${count} of ${replicas.length} are at document ${shortHash(documentHash)}`,
    ...(other.length > 0 ? [`another document: ${other.join(", ")}`] : []),
    ...(silent.length > 0 ? [`no answer: ${silent.join(", ")}`] : []),
  ].join("; ");
}

function shortHash(hash: string | null): string {
  return hash?.slice(0, 12) ?? "–";
}
