import type { Limits } from "../rewards/ports.ts";
import {
  type LimitReading,
  readMemoryLimit,
  readMemoryLimitBytes,
  readTimeLimit,
} from "../tasks/dataset-limits.ts";
import type { Path } from "./json-pointer.ts";
import type { RequestSchemas } from "./request-schemas.ts";
import { type ProblemList, readAgainst } from "./schema-reading.ts";

/** A task's limits with their defaults; those of a dataset are null in a table's empty cell. */
export interface LimitsJson {
  readonly time_ms: number;
  readonly memory_mib: number;
  readonly output_bytes: number;
  readonly time_limit?: number | string | null;
  readonly memory_limit?: number | string | null;
  readonly memory_limit_bytes?: number | string | null;
}

/** Each limit that datasets have, what it stands for, and how it is read. */
const datasetLimits = [
  ["time_limit", "time_ms", readTimeLimit],
  ["memory_limit", "memory_mib", readMemoryLimit],
  ["memory_limit_bytes", "memory_mib", readMemoryLimitBytes],
] as const satisfies readonly (readonly [
  keyof LimitsJson,
  keyof LimitsJson,
  (value: number | string) => LimitReading,
])[];

/**
 * The limits in this project's units. What a dataset says goes before the default, and must be within the same range; both
 * at once are a contradiction. The result may be used only if no problem was added.
 */
export function readLimits(
  schema: RequestSchemas["Limits"],
  json: LimitsJson,
  raw: unknown,
  path: Path,
  problems: ProblemList,
): Limits {
  const limits = { time_ms: json.time_ms, memory_mib: json.memory_mib };
  const given = new Set(typeof raw === "object" && raw !== null ? Object.keys(raw) : []);
  for (const [field, target, read] of datasetLimits) {
    const value = json[field];
    if (value === undefined || value === null) continue;
    const fieldPath = [...path, field];
    if (given.has(target)) {
      problems.add(fieldPath, "limits what another field of 'limits' limits already: give one of them");
      continue;
    }
    given.add(target);
    const reading = read(value);
    if (reading.kind === "unreadable") problems.add(fieldPath, reading.detail);
    else if (isInRange(schema, target, reading.value, fieldPath, problems)) limits[target] = reading.value;
  }
  return { timeMs: limits.time_ms, memoryMib: limits.memory_mib, outputBytes: json.output_bytes };
}

function isInRange(
  schema: RequestSchemas["Limits"],
  target: "time_ms" | "memory_mib",
  value: number,
  path: Path,
  problems: ProblemList,
): boolean {
  const soFar = problems.items.length;
  const unit = target === "time_ms" ? "ms" : "MiB";
  const found = readAgainst(schema.shape[target], value, path, {
    ...problems,
    add: (place, detail) => problems.add(place, `in ${unit}, ${detail}`),
  });
  return found !== undefined && problems.items.length === soFar;
}
