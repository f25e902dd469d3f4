/**
 * Texts packed as base64 of zlib of a pickled text, as LiveCodeBench ships its private tests.
 */
import { inflateSync } from "node:zlib";
import { type PickledText, readPickledText } from "./pickled-text.ts";

export type UnpackText = (packed: string) => PickledText;

/** Room for unpacked texts, of one request together: a few bytes of zlib can become a thousand times as many. */
export const unpackedBytesPerRequest = 32 * 1024 * 1024;

/** Below that it is no packed text but a word. */
const FEWEST_CHARACTERS = 16;
/** What a byte of zlib can become at most. */
const LARGEST_RATIO = 1_032;

/** Whether a text could be a packed one: nothing but base64, whole. */
export function looksPacked(text: string): boolean {
  const packed = text.trim();
  return packed.length >= FEWEST_CHARACTERS && /^[A-Za-z0-9+/\r\n]*={0,2}$/.test(packed);
}

/**
 * Makes an unpacker for one request. It refuses what would go beyond `limitBytes` together; broken payloads use up room
 * too, as does the same one a second time, since whatever is unpacked is read.
 */
export function createUnpacker(limitBytes = unpackedBytesPerRequest): UnpackText {
  let leftBytes = limitBytes;
  return (packed) => {
    const compressed = Buffer.from(packed, "base64");
    const inflated = inflate(compressed, leftBytes);
    const spentBytes = Buffer.isBuffer(inflated) ? inflated.length : compressed.length * LARGEST_RATIO;
    leftBytes = Math.max(0, leftBytes - spentBytes);
    return Buffer.isBuffer(inflated) ? readPickledText(inflated) : refuse(inflated, limitBytes);
  };
}

function inflate(compressed: Buffer, limitBytes: number): Buffer | "broken" | "too_large" {
  try {
    // Node takes no limit of 0 for one.
    return inflateSync(compressed, { maxOutputLength: Math.max(1, limitBytes) });
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE" ? "too_large" : "broken";
  }
}

function refuse(reason: "broken" | "too_large", limitBytes: number): PickledText {
  const detail =
    reason === "broken"
      ? "it looks like base64, and is not base64 of a whole zlib stream"
      : `it unpacks to more than is left of the ${limitBytes} bytes that a request's tests may unpack to: ` +
        "send fewer tasks in one request, or tests that are not packed";
  return { kind: "refused", detail };
}
