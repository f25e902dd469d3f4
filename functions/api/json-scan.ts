/**
 * What JavaScript's own JSON reader does not tell of a text that it has read: keys that an object has twice, of which it
 * keeps the last, and numbers that it has changed (`1.0` is `1` to it, and large integers are rounded).
 */

/** Names and numbers from the outermost value in. */
export type Place = readonly (string | number)[];

export interface RepeatedKey {
  readonly place: Place;
  /** Where both begin, in characters. */
  readonly at: readonly [number, number];
}

export interface Scanned {
  readonly repeated: RepeatedKey | null;
  /** Values that were asked for and hold a number that was changed. */
  readonly changed: readonly { readonly place: Place; readonly text: string }[];
}

/** A container that is open. `keys` are an object's, with where they begin. */
interface Open {
  readonly startsAt: number;
  readonly keys: Map<string, number> | null;
  key: string;
  index: number;
  hasChanged: boolean;
}

/**
 * Reads the text in one pass; it must be JSON. `isAskedFor` is called with the open containers' places, the innermost
 * value's last, for containers that hold a changed number.
 */
export function scanJson(text: string, isAskedFor: (place: Place) => boolean): Scanned {
  const open: Open[] = [];
  const changed: { place: Place; text: string }[] = [];
  let isKeyNext = false;
  for (let at = 0; at < text.length; at += 1) {
    const container = open.at(-1);
    switch (text.charCodeAt(at)) {
      case 0x22: {
        const end = endOfString(text, at);
        if (isKeyNext && container?.keys) {
          const key = readString(text, at, end);
          const before = container.keys.get(key);
          container.key = key;
          if (before !== undefined) return { repeated: { place: placeOf(open), at: [before, at] }, changed };
          container.keys.set(key, at);
        }
        at = end;
        break;
      }
      case 0x7b: // {
      case 0x5b: {
        const isObject = text.charCodeAt(at) === 0x7b;
        open.push({ startsAt: at, keys: isObject ? new Map() : null, key: "", index: 0, hasChanged: false });
        isKeyNext = isObject;
        break;
      }
      case 0x7d: // }
      case 0x5d: {
        open.pop();
        if (container?.hasChanged) {
          const place = placeOf(open);
          if (isAskedFor(place)) changed.push({ place, text: text.slice(container.startsAt, at + 1) });
          else noteChange(open);
        }
        isKeyNext = false;
        break;
      }
      case 0x3a: // :
        isKeyNext = false;
        break;
      case 0x2c: // ,
        if (container !== undefined) container.index += 1;
        isKeyNext = container?.keys !== null;
        break;
      default: {
        const end = endOfNumber(text, at);
        if (end === at) break;
        if (isChanged(text, at, end)) noteChange(open);
        at = end - 1;
      }
    }
  }
  return { repeated: null, changed };
}

function noteChange(open: readonly Open[]): void {
  const container = open.at(-1);
  if (container !== undefined) container.hasChanged = true;
}

function placeOf(open: readonly Open[]): Place {
  return open.map(({ keys, key, index }) => (keys === null ? index : key));
}

/** Where the string that begins here ends: its closing quote. */
function endOfString(text: string, startsAt: number): number {
  let end = text.indexOf('"', startsAt + 1);
  while (isEscaped(text, end)) end = text.indexOf('"', end + 1);
  return end;
}

function isEscaped(text: string, at: number): boolean {
  let backslashes = 0;
  while (text.charCodeAt(at - 1 - backslashes) === 0x5c) backslashes += 1;
  return backslashes % 2 === 1;
}

function readString(text: string, startsAt: number, end: number): string {
  const written = text.slice(startsAt + 1, end);
  return written.includes("\\") ? (JSON.parse(`"${written}"`) as string) : written;
}

/** Where the number that begins here ends; here, where none begins. */
function endOfNumber(text: string, startsAt: number): number {
  let end = startsAt;
  while (isOfNumber(text.charCodeAt(end), end > startsAt)) end += 1;
  return end;
}

/** A digit or a sign; inside, a point or an exponent's letter too. */
function isOfNumber(code: number, isInside: boolean): boolean {
  if (code >= 0x30 && code <= 0x39) return true;
  return code === 0x2d || (isInside && (code === 0x2e || code === 0x2b || code === 0x65 || code === 0x45));
}

/** Fewer digits than that are exact in any case. */
const exactDigits = 15;

/** Whether JavaScript's number is not all that was written. */
function isChanged(text: string, startsAt: number, end: number): boolean {
  const isShort = end - startsAt <= exactDigits;
  if (isShort && isPlainInteger(text, startsAt, end)) return false;
  const number = text.slice(startsAt, end);
  const value = Number(number);
  if (/[.eE]/.test(number)) return Number.isInteger(value) || !Number.isFinite(value);
  return !Number.isSafeInteger(value) || Object.is(value, -0);
}

/** Digits only. */
function isPlainInteger(text: string, startsAt: number, end: number): boolean {
  for (let at = startsAt; at < end; at += 1) {
    const code = text.charCodeAt(at);
    if (code < 0x30 || code > 0x39) return false;
  }
  return true;
}
