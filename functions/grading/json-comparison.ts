import { JsonInteger, type JsonValue, readJson } from "./json-value.ts";

/** An expected value in canonical form. */
export interface ExpectedJson {
  readonly canonical: string;
}

export type ExpectedJsonReading =
  | { readonly kind: "ok"; readonly value: ExpectedJson }
  | { readonly kind: "unreadable"; readonly detail: string };

/** Reads an expected output. `unreadable`: it is not one JSON value, nested too deeply, or nothing can equal it. */
export function readExpectedJson(text: string): ExpectedJsonReading {
  const reading = readJson(text);
  if (reading.kind === "invalid") {
    return { kind: "unreadable", detail: `not one JSON value: ${reading.detail}` };
  }
  const canonical = writeCanonical(reading.value);
  if (canonical === null) {
    const detail = "it holds NaN, Infinity or a number as large, which no output can match";
    return { kind: "unreadable", detail };
  }
  return { kind: "ok", value: { canonical } };
}

/**
 * Whether an output is the expected value: whether `json.dumps(json.loads(x), sort_keys=True, allow_nan=False)` of
 * CPython writes the same for both. So `1`, `1.0` and `true` differ, `1e2` is `100.0`, `-0` is `0` but `-0.0` is not
 * `0.0`, key order and white space don't matter, and the last of equal keys counts. Unlike in CPython, integers may be of
 * any length.
 */
export function compareJson(expected: ExpectedJson, stdout: string): boolean {
  const reading = readJson(stdout);
  return reading.kind === "value" && writeCanonical(reading.value) === expected.canonical;
}

/** A container that is being written: its values in order, with each one's key if it is an object. */
interface Frame {
  readonly keys: readonly string[] | null;
  readonly values: readonly JsonValue[];
  next: number;
}

/** The text that is the same for equal values only; null for a value with NaN or an infinity. Uses no stack. */
function writeCanonical(root: JsonValue): string | null {
  const pieces: string[] = [];
  const frames: Frame[] = [];
  let value: JsonValue | undefined = root;
  for (;;) {
    if (value !== undefined) {
      const frame = openFrame(value);
      if (frame !== null) {
        pieces.push(frame.keys === null ? "[" : "{");
        frames.push(frame);
      } else {
        const scalar = writeScalar(value as Scalar);
        if (scalar === null) return null;
        pieces.push(scalar);
      }
    }
    const frame = frames.at(-1);
    if (frame === undefined) return pieces.join("");
    value = frame.values[frame.next];
    if (value === undefined) {
      pieces.push(frame.keys === null ? "]" : "}");
      frames.pop();
      continue;
    }
    if (frame.next > 0) pieces.push(",");
    const key = frame.keys?.[frame.next];
    if (key !== undefined) pieces.push(JSON.stringify(key), ":");
    frame.next += 1;
  }
}

type Scalar = null | boolean | string | number | JsonInteger;

function openFrame(value: JsonValue): Frame | null {
  if (value instanceof Map) {
    const keys = [...value.keys()].sort();
    return { keys, values: keys.map((key) => value.get(key) ?? null), next: 0 };
  }
  return Array.isArray(value) ? { keys: null, values: value, next: 0 } : null;
}

/** Integers are digits, floats end in `f`; quoting escapes lone surrogates, so each string has one form. */
function writeScalar(value: Scalar): string | null {
  if (value instanceof JsonInteger) return value.digits;
  if (typeof value !== "number") return JSON.stringify(value);
  if (!Number.isFinite(value)) return null;
  return Object.is(value, -0) ? "-0f" : `${value}f`;
}
