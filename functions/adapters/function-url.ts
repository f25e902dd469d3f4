/**
 * A function's URL: its events (payload format 2.0) as requests, and answers as the stream that it sends on.
 *
 * An answer that breaks off is never made to look whole: the call fails, and the platform cuts the connection.
 */
import type { Writable } from "node:stream";

export interface FunctionUrlEvent {
  readonly rawPath: string;
  readonly rawQueryString: string;
  /** In lower case; several of one name joined by commas. */
  readonly headers: Readonly<Record<string, string>>;
  readonly requestContext: {
    readonly domainName: string;
    readonly http: { readonly method: string };
  };
  readonly body?: string;
  readonly isBase64Encoded: boolean;
}

/** What the runtime makes available to streaming handlers. */
export interface StreamingRuntime {
  streamifyResponse<Handler>(handler: Handler): Handler;
  readonly HttpResponseStream: { from(stream: Writable, metadata: ResponseMetadata): Writable };
}

interface ResponseMetadata {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string>>;
}

const withoutBody = ["GET", "HEAD"];

/** Throws a TypeError when the event is of another kind, or its request is one that no program may send. */
export function readRequest(event: FunctionUrlEvent): Request {
  const { domainName, http } = event.requestContext;
  const query = event.rawQueryString === "" ? "" : `?${event.rawQueryString}`;
  const headers = new Headers();
  for (const [name, value] of Object.entries(event.headers)) headers.set(name, asBytes(value));
  const body = withoutBody.includes(http.method) ? undefined : readBody(event);
  if (body !== undefined) headers.set("content-length", String(body.length));
  return new Request(`https://${domainName}${event.rawPath}${query}`, {
    method: http.method,
    headers,
    ...(body === undefined ? {} : { body }),
  });
}

function readBody({ body, isBase64Encoded }: FunctionUrlEvent): Buffer<ArrayBuffer> | undefined {
  return body === undefined ? undefined : Buffer.from(body, isBase64Encoded ? "base64" : "utf8");
}

/** Headers are bytes, one per character, as any HTTP server of Node's shows them. */
function asBytes(value: string): string {
  return Buffer.from(value, "utf8").toString("latin1");
}

/**
 * Sends an answer piece by piece and resolves when it is handed over whole. Rejects when its body breaks. When it is the
 * other side that is gone, the body is read to its end all the same: what makes it has work to finish.
 */
export async function sendResponse(
  response: Response,
  stream: Writable,
  runtime: Pick<StreamingRuntime, "HttpResponseStream">,
): Promise<void> {
  const metadata = { statusCode: response.status, headers: Object.fromEntries(response.headers) };
  const out = runtime.HttpResponseStream.from(stream, metadata);
  const isGone = watchEnd(out);
  out.write(""); // sends the status, also of an answer without a body
  for await (const piece of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    if (!isGone() && !out.write(piece)) await untilDrained(out);
  }
  if (!isGone()) out.end();
}

function watchEnd(out: Writable): () => boolean {
  let isGone = false;
  const leave = () => {
    isGone = true;
  };
  out.on("error", leave);
  out.on("close", leave);
  return () => isGone;
}

function untilDrained(out: Writable): Promise<void> {
  const events = ["drain", "error", "close"];
  return new Promise((resolve) => {
    const done = () => {
      for (const event of events) out.removeListener(event, done);
      resolve();
    };
    for (const event of events) out.on(event, done);
  });
}
