/**
 * Limits as datasets write them: seconds, megabytes, bytes, as numbers or as texts with a unit. What a dataset allows is
 * never cut: milliseconds and mebibytes are rounded up, and a megabyte counts as a mebibyte.
 */
export type LimitReading =
  | { readonly kind: "ok"; readonly value: number }
  | { readonly kind: "unreadable"; readonly detail: string };

const MEBIBYTE = 1_048_576;
const LONGEST_TEXT = 40;
const AMOUNT = /^\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-z]*)\.?\s*$/i;

/** Milliseconds by unit; a bare number is in seconds. */
const timeUnits: Readonly<Record<string, number>> = {
  "": 1_000,
  s: 1_000,
  sec: 1_000,
  secs: 1_000,
  second: 1_000,
  seconds: 1_000,
  ms: 1,
  millisecond: 1,
  milliseconds: 1,
  minute: 60_000,
  minutes: 60_000,
};

/** Bytes by unit; a bare number is in megabytes. */
const memoryUnits: Readonly<Record<string, number>> = {
  "": MEBIBYTE,
  m: MEBIBYTE,
  mb: MEBIBYTE,
  mib: MEBIBYTE,
  megabyte: MEBIBYTE,
  megabytes: MEBIBYTE,
  b: 1,
  byte: 1,
  bytes: 1,
  k: 1_024,
  kb: 1_024,
  kib: 1_024,
  kilobyte: 1_024,
  kilobytes: 1_024,
  g: 1_024 * MEBIBYTE,
  gb: 1_024 * MEBIBYTE,
  gib: 1_024 * MEBIBYTE,
  gigabyte: 1_024 * MEBIBYTE,
  gigabytes: 1_024 * MEBIBYTE,
};

/** `2`, `2.0`, `"2"`, `"2.0 seconds"`, `"1500 ms"`: milliseconds. */
export function readTimeLimit(value: number | string): LimitReading {
  return readAmount(value, timeUnits, 1, 'seconds, such as 2.5, or a text such as "2 seconds" or "500 ms"');
}

/** `256`, `256.0`, `"256 megabytes"`, `"262144 KB"`: mebibytes. */
export function readMemoryLimit(value: number | string): LimitReading {
  return readAmount(
    value,
    memoryUnits,
    MEBIBYTE,
    'megabytes, such as 256, or a text such as "256 megabytes"',
  );
}

/** `268435456`: mebibytes. */
export function readMemoryLimitBytes(value: number | string): LimitReading {
  return readAmount(value, { "": 1, b: 1, byte: 1, bytes: 1 }, MEBIBYTE, "bytes, such as 268435456");
}

function readAmount(
  value: number | string,
  units: Readonly<Record<string, number>>,
  step: number,
  wanted: string,
): LimitReading {
  const unreadable: LimitReading = { kind: "unreadable", detail: `must be ${wanted}` };
  const text = String(value);
  const [, amount = "", unit = ""] = (text.length <= LONGEST_TEXT && AMOUNT.exec(text)) || [];
  const name = unit.toLowerCase();
  const factor = Object.hasOwn(units, name) ? units[name] : undefined;
  if (amount === "" || factor === undefined) return unreadable;
  // Doubles may make a hair more than a whole number of it: 0.0011 s is 1.1 ms, and 1.1 s is 1,100 ms.
  return { kind: "ok", value: Math.ceil(Number(((Number(amount) * factor) / step).toPrecision(12))) };
}
