import type { IncomingMessage, ServerResponse } from "node:http";
import { ApiError } from "./api-error.ts";

const BODY_LIMIT_BYTES = 1024 * 1024;

/** Reads a request's JSON object; no body is an empty object. Throws `ApiError` 400. */
export async function readJsonObject(request: IncomingMessage): Promise<Record<string, unknown>> {
  const chunks: Buffer[] = [];
  let sizeBytes = 0;
  for await (const chunk of request) {
    sizeBytes += (chunk as Buffer).length;
    if (sizeBytes > BODY_LIMIT_BYTES) throw new ApiError(400, "Error when parsing request: body too large");
    chunks.push(chunk as Buffer);
  }
  if (sizeBytes === 0) return {};
  const value = parseJson(Buffer.concat(chunks).toString());
  if (!isObject(value)) throw new ApiError(400, "Error when parsing request: expected a JSON object");
  return value;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new ApiError(400, `Error when parsing request: ${(error as Error).message}`);
  }
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Sends a JSON answer, or an empty one for `undefined`. */
export function sendJson(
  response: ServerResponse,
  status: number,
  value: unknown,
  headers: Readonly<Record<string, string>> = {},
): void {
  if (value === undefined) {
    response.writeHead(status, headers).end();
    return;
  }
  const text = JSON.stringify(value);
  response
    .writeHead(status, {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(text),
      ...headers,
    })
    .end(text);
}
