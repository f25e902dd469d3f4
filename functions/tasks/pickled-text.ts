/**
 * Reads a pickle that is exactly one text, and no other pickle.
 *
 * Unpickling runs whatever the pickle says, so a payload from somewhere is never unpickled. Python writes one text
 * with a handful of opcodes (protocols 2 to 5); this reads those and stops at anything else.
 */
import { isUtf8 } from "node:buffer";

export type PickledText =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "refused"; readonly detail: string };

const PROTO = 0x80;
const FRAME = 0x95;
const SHORT_BINUNICODE = 0x8c;
const BINUNICODE = 0x58;
const BINUNICODE8 = 0x8d;
const MEMOIZE = 0x94;
const BINPUT = 0x71;
const STOP = 0x2e;

/** Bytes behind an opcode: of the text's length, or of an operand that is passed over. */
const lengthBytes: Readonly<Record<number, number>> = {
  [SHORT_BINUNICODE]: 1,
  [BINUNICODE]: 4,
  [BINUNICODE8]: 8,
};

/** `bytes` may be of any content. Time is linear in their number. */
export function readPickledText(bytes: Buffer): PickledText {
  if (bytes[0] !== PROTO) return refuse("it is no pickle of protocol 2 to 5");
  const protocol = bytes[1] ?? 0;
  if (protocol < 2 || protocol > 5) return refuse(`it is a pickle of protocol ${protocol}, not 2 to 5`);
  let text: string | null = null;
  for (let at = 2; at < bytes.length; ) {
    const opcode = bytes[at] as number;
    if (opcode === STOP) return finish(text, at + 1 === bytes.length);
    const lengthSize = lengthBytes[opcode];
    if (lengthSize !== undefined) {
      if (text !== null) return refuse("it is a pickle of more than one text");
      const start = at + 1 + lengthSize;
      const length = readLength(bytes, at + 1, lengthSize);
      if (length === null || length > bytes.length - start) return refuse("it is a pickle that is cut off");
      const encoded = bytes.subarray(start, start + length);
      if (!isUtf8(encoded)) return refuse("it is a pickle of a text that is not UTF-8");
      text = encoded.toString();
      at = start + length;
    } else if (opcode === FRAME) {
      const length = readLength(bytes, at + 1, 8);
      if (length === null || length > bytes.length - at - 9) return refuse("it is a pickle that is cut off");
      at += 9;
    } else if (text !== null && (opcode === MEMOIZE || opcode === BINPUT)) {
      at += opcode === BINPUT ? 2 : 1;
    } else {
      const code = `0x${opcode.toString(16).padStart(2, "0")}`;
      return refuse(
        `it is a pickle of something other than one text (opcode ${code} at byte ${at}), and is not unpickled`,
      );
    }
  }
  return refuse("it is a pickle that is cut off");
}

function finish(text: string | null, isEnd: boolean): PickledText {
  if (text === null) return refuse("it is a pickle without a text");
  return isEnd ? { kind: "text", text } : refuse("it is a pickle with something behind its end");
}

/** A little-endian length; null when it is cut off, or larger than any buffer. */
function readLength(bytes: Buffer, at: number, size: number): number | null {
  if (at + size > bytes.length) return null;
  if (size < 8) return bytes.readUIntLE(at, size);
  const length = bytes.readBigUInt64LE(at);
  return length > BigInt(Number.MAX_SAFE_INTEGER) ? null : Number(length);
}

function refuse(detail: string): PickledText {
  return { kind: "refused", detail };
}
