import { JsonInteger, type JsonValue } from "./json-value.ts";

/**
 * A value as a JSON text that any reader takes for the same value: integers keep their digits, floats are marked as
 * such (`1.0`). Null for a value with NaN or an infinity in it. The value is nested no deeper than `MAX_JSON_DEPTH`.
 */
export function writeJsonText(value: JsonValue): string | null {
  if (value instanceof JsonInteger) return value.digits;
  if (typeof value === "number") return writeFloat(value);
  if (Array.isArray(value)) return writeAll(value, writeJsonText, "[", "]");
  if (value instanceof Map) {
    return writeAll(
      [...value],
      ([key, member]) => {
        const text = writeJsonText(member);
        return text === null ? null : `${JSON.stringify(key)}:${text}`;
      },
      "{",
      "}",
    );
  }
  return JSON.stringify(value);
}

function writeAll<T>(items: readonly T[], write: (item: T) => string | null, open: string, close: string) {
  const texts: string[] = [];
  for (const item of items) {
    const text = write(item);
    if (text === null) return null;
    texts.push(text);
  }
  return open + texts.join(",") + close;
}

function writeFloat(value: number): string | null {
  if (!Number.isFinite(value)) return null;
  if (Object.is(value, -0)) return "-0.0";
  return Number.isInteger(value) && Math.abs(value) < 1e21 ? `${value}.0` : String(value);
}
