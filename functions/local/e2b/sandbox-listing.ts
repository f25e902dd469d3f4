import { ApiError } from "./api-error.ts";
import type { SandboxRecord } from "./sandbox-record.ts";

export interface ListingPage {
  readonly records: readonly SandboxRecord[];
  /** Null on the last page. */
  readonly nextToken: string | null;
}

const LIMIT_MAX = 100;
const KNOWN_PARAMETERS = new Set(["metadata", "state", "limit", "nextToken"]);

/**
 * One page of a listing, newest first, by the query of `GET /v2/sandboxes`. Both states are listed unless `state`
 * names some. Throws `ApiError` 400, or 501 for a parameter that this server doesn't know.
 */
export function listSandboxes(all: Iterable<SandboxRecord>, query: URLSearchParams): ListingPage {
  for (const name of query.keys()) {
    if (!KNOWN_PARAMETERS.has(name)) throw new ApiError(501, `The parameter "${name}" is not implemented`);
  }
  const states = query.has("state") ? query.getAll("state").flatMap((text) => text.split(",")) : null;
  const wanted = parseMetadataFilter(query.get("metadata"));
  const limit = parseLimit(query.get("limit"));
  const start = query.get("nextToken");
  const matching = [...all]
    .filter((record) => states === null || states.includes(record.state))
    .filter((record) => wanted.every(([key, value]) => record.request.metadata[key] === value))
    .sort((a, b) => compareKeys(keyOf(b), keyOf(a)));
  const from = start === null ? matching : after(matching, decodeToken(start));
  const records = from.slice(0, limit);
  const last = records.at(-1);
  return { records, nextToken: last !== undefined && from.length > limit ? encodeToken(keyOf(last)) : null };
}

/** Metadata is percent-encoded three times: the query's own layer is off already, the pairs and each text follow. */
function parseMetadataFilter(text: string | null): [string, string][] {
  if (text === null) return [];
  try {
    return [...new URLSearchParams(text)].map(([key, value]) => [
      decodeURIComponent(key),
      decodeURIComponent(value),
    ]);
  } catch {
    throw new ApiError(400, "Error when parsing metadata");
  }
}

function parseLimit(text: string | null): number {
  const limit = text === null ? LIMIT_MAX : Number(text);
  if (!Number.isInteger(limit) || limit < 1) throw new ApiError(400, "limit must be a positive integer");
  return Math.min(limit, LIMIT_MAX);
}

/** The order of a listing. It stands still while sandboxes come and go, so no page skips one that stays. */
type Key = readonly [startedAtMs: number, id: string];
const keyOf = (record: SandboxRecord): Key => [record.startedAtMs, record.id];
const compareKeys = (a: Key, b: Key) => a[0] - b[0] || (a[1] < b[1] ? -1 : a[1] > b[1] ? 1 : 0);

const after = (records: readonly SandboxRecord[], key: Key) =>
  records.filter((record) => compareKeys(keyOf(record), key) < 0);

const encodeToken = (key: Key) => Buffer.from(JSON.stringify(key)).toString("base64url");

function decodeToken(token: string): Key {
  try {
    const value: unknown = JSON.parse(Buffer.from(token, "base64url").toString());
    if (Array.isArray(value) && typeof value[0] === "number" && typeof value[1] === "string") {
      return [value[0], value[1]];
    }
  } catch {
    // Falls through to the refusal below.
  }
  throw new ApiError(400, "Invalid nextToken");
}
