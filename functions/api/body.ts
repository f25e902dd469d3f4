/**
 * From a request's bytes to a JSON value, never holding more than the caps allow.
 */
import { isUtf8 } from "node:buffer";
import { createGunzip } from "node:zlib";
import { readJson } from "../grading/json-value.ts";
import { ExactJson, MOST_VALUES } from "../tasks/cursor.ts";
import { formatPointer } from "./json-pointer.ts";
import { type Place, type Scanned, scanJson } from "./json-scan.ts";
import { Problem } from "./problem.ts";
import { refuseRequest } from "./refused-request.ts";

export const bodyLimits = {
  wireBytes: 6 * 1024 * 1024,
  inflatedBytes: 32 * 1024 * 1024,
  nesting: 64,
} as const;

/**
 * Reads a JSON body. Throws a `Problem`: `unsupported_media_type`, `too_large`, `invalid_json`.
 *
 * Returns the inflated bytes as well: they are what makes two requests the same.
 */
export async function readJsonBody(request: Request): Promise<{ bytes: Buffer; value: unknown }> {
  checkMediaType(request.headers.get("content-type"));
  return readDeclaredBody(request);
}

/** The same where the body may be left out: undefined then, whatever its headers say. */
export async function readOptionalJsonBody(request: Request): Promise<unknown> {
  if (request.body === null) return undefined;
  if (request.headers.get("content-type") !== null) checkMediaType(request.headers.get("content-type"));
  const { bytes, value } = await readDeclaredBody(request, { mayBeEmpty: true });
  if (bytes.length > 0) checkMediaType(request.headers.get("content-type"));
  return value;
}

async function readDeclaredBody(request: Request, { mayBeEmpty = false } = {}) {
  const isCompressed = readEncoding(request.headers.get("content-encoding"));
  const wire = await readCapped(request);
  const bytes = isCompressed ? await inflate(wire) : wire;
  return { bytes, value: mayBeEmpty && bytes.length === 0 ? undefined : parseJson(bytes) };
}

function checkMediaType(header: string | null): void {
  const [type, ...parameters] = (header ?? "").split(";").map((part) => part.trim().toLowerCase());
  const charset = parameters.find((parameter) => parameter.startsWith("charset="));
  const isUtf8Charset = charset === undefined || /^charset="?utf-?8"?$/.test(charset);
  if (type === "application/json" && isUtf8Charset) return;
  const found =
    header === null ? "has no Content-Type" : `is of Content-Type ${JSON.stringify(header.slice(0, 100))}`;
  throw new Problem("unsupported_media_type", `The body ${found}. Send it as 'application/json' in UTF-8.`, {
    headers: { accept: "application/json" },
  });
}

function readEncoding(header: string | null): boolean {
  const encoding = (header ?? "identity").trim().toLowerCase();
  if (encoding === "identity" || encoding === "") return false;
  if (encoding === "gzip" || encoding === "x-gzip") return true;
  const detail = `The body's Content-Encoding is ${JSON.stringify(encoding.slice(0, 100))}. Send it as it is, or with gzip.`;
  throw new Problem("unsupported_media_type", detail, { headers: { "accept-encoding": "gzip, identity" } });
}

async function readCapped(request: Request): Promise<Buffer> {
  const announced = Number(request.headers.get("content-length") ?? 0);
  if (announced > bodyLimits.wireBytes) throw tooLarge(`${announced} bytes`, bodyLimits.wireBytes);
  if (request.body === null) return Buffer.alloc(0);
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of request.body as AsyncIterable<Uint8Array>) {
    bytes += piece.byteLength;
    if (bytes > bodyLimits.wireBytes) throw tooLarge("more", bodyLimits.wireBytes);
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

function tooLarge(found: string, limitBytes: number): Problem {
  const detail = `The body may have ${limitBytes} bytes; it has ${found}. Send the samples in several requests, or with gzip.`;
  return new Problem("too_large", detail);
}

/**
 * Into one buffer as long as the bytes' own end says, so that they are never there twice; that may be a lie, which costs
 * a copy and is not believed beyond the cap.
 */
async function inflate(wire: Buffer): Promise<Buffer> {
  const gunzip = createGunzip({ chunkSize: inflatedPieceBytes });
  gunzip.end(wire);
  let bytes: Buffer = Buffer.allocUnsafeSlow(readAnnouncedBytes(wire));
  let length = 0;
  try {
    for await (const piece of gunzip as AsyncIterable<Buffer>) {
      const needed = length + piece.length;
      if (needed > bodyLimits.inflatedBytes) throw tooLargeInflated();
      if (needed > bytes.length) bytes = enlarge(bytes, length, needed);
      piece.copy(bytes, length);
      length = needed;
    }
  } catch (error) {
    if (error instanceof Problem) throw error;
    throw new Problem("invalid_json", "The body says that it is gzip, and is not, or is cut off.", {
      cause: error,
    });
  }
  return bytes.subarray(0, length);
}

const inflatedPieceBytes = 256 * 1024;
/** What deflate can do at best: https://zlib.net/zlib_tech.html */
const mostInflation = 1_032;

/** RFC 1952: the last four bytes are the length of what was compressed, or of the last one of several parts. */
function readAnnouncedBytes(wire: Buffer): number {
  const announced = wire.length < 4 ? 0 : wire.readUInt32LE(wire.length - 4);
  return Math.min(announced, wire.length * mostInflation, bodyLimits.inflatedBytes);
}

function enlarge(bytes: Buffer, usedBytes: number, neededBytes: number): Buffer {
  const larger = Buffer.allocUnsafeSlow(Math.min(2 * neededBytes, bodyLimits.inflatedBytes));
  bytes.copy(larger, 0, 0, usedBytes);
  return larger;
}

function tooLargeInflated(): Problem {
  const detail = `The body may have ${bodyLimits.inflatedBytes} bytes when it is inflated; it has more. Send the samples in several requests.`;
  return new Problem("too_large", detail);
}

function parseJson(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) throw new Problem("invalid_json", "The body is not valid UTF-8.");
  if (measureNesting(bytes) > bodyLimits.nesting) {
    throw new Problem("invalid_json", `The body's JSON is nested deeper than ${bodyLimits.nesting} levels.`);
  }
  const text = bytes.toString().replace(/^\uFEFF/, "");
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Problem("invalid_json", describeSyntaxError(text, error), { cause: error });
  }
  const { repeated, changed } = scanJson(text, areTests);
  if (repeated !== null) throw refuseRepeatedKey(repeated);
  for (const { place, text: exact } of changed) putExactly(value, place, exact);
  return value;
}

function refuseRepeatedKey({ place, at }: NonNullable<Scanned["repeated"]>): Problem {
  const detail = `stands there twice, at characters ${at[0]} and ${at[1]} of the body; only one can be meant`;
  return refuseRequest([{ pointer: formatPointer(place), detail }]);
}

/** Tests tell 1 from 1.0: `tasks.NAME.tests`, and `samples[N].task.tests`. */
function areTests(place: Place): boolean {
  if (place.at(-1) !== "tests") return false;
  if (place.length === 3) return place[0] === "tasks";
  return place.length === 4 && place[0] === "samples" && place[2] === "task";
}

/** Puts what the text says in the place of what JavaScript made of it. */
function putExactly(value: unknown, place: Place, text: string): void {
  const reading = readJson(text, MOST_VALUES);
  if (reading.kind !== "value") return; // more values than tests may hold, which is said where they are read
  const holder = place
    .slice(0, -1)
    .reduce((inner: unknown, part) => (inner as Record<string, unknown>)[part], value);
  (holder as Record<string, unknown>).tests = new ExactJson(reading.value);
}

/** Node's message quotes the text around the place; the place alone is enough, and leaks nothing into logs. */
function describeSyntaxError(text: string, error: unknown): string {
  if (text.trim() === "") return "The body is empty. Send a JSON object.";
  const position = /at position (\d+)/.exec(String(error))?.[1];
  return position === undefined
    ? "The body is not JSON."
    : `The body is not JSON: see character ${position}.`;
}

/**
 * How deep brackets are nested, strings left out. One pass over the bytes, so that no text can exhaust the parser's
 * stack; stops at the first level too deep.
 */
function measureNesting(bytes: Buffer): number {
  let depth = 0;
  let deepest = 0;
  let inString = false;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (inString) {
      if (byte === 0x5c) at += 1;
      else if (byte === 0x22) inString = false;
    } else if (byte === 0x22) {
      inString = true;
    } else if (byte === 0x7b || byte === 0x5b) {
      depth += 1;
      if (depth > deepest) deepest = depth;
      if (deepest > bodyLimits.nesting) return deepest;
    } else if (byte === 0x7d || byte === 0x5d) {
      depth -= 1;
    }
  }
  return deepest;
}
