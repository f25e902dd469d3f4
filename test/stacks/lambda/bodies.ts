/** A function whose answers are what its path says: `/whole/BYTES`, or `/broken` after its first line. */
import type { Writable } from "node:stream";
import {
  type FunctionUrlEvent,
  readRequest,
  type StreamingRuntime,
  sendResponse,
} from "../../../functions/adapters/function-url.ts";

declare const awslambda: StreamingRuntime;

const pieceBytes = 65_536;

export const handler = awslambda.streamifyResponse(async (event: FunctionUrlEvent, stream: Writable) => {
  const [, kind, bytes] = new URL(readRequest(event).url).pathname.split("/");
  const pieces = kind === "whole" ? countDown(Number(bytes)) : breakOff();
  await sendResponse(new Response(ReadableStream.from(pieces)), stream, awslambda);
});

function* countDown(bytes: number): Generator<Uint8Array> {
  for (let left = bytes; left > 0; left -= pieceBytes)
    yield new Uint8Array(Math.min(left, pieceBytes)).fill(left);
}

function* breakOff(): Generator<Uint8Array> {
  yield Buffer.from("one line\n");
  throw new Error("the source is gone");
}
