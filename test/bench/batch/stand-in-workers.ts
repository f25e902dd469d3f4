/**
 * In front of the sandboxes: whatever would run programs is answered here, at once, as a supervisor answers it, so that
 * a measurement of the handler takes seconds. Everything else passes. The programs print what they read, and so is the
 * answer.
 */
import { once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";

export interface StandInWorkers {
  readonly url: string;
  close(): Promise<void>;
}

interface ExecuteBody {
  readonly chunk_id: string;
  readonly programs: readonly { readonly id: string; readonly inputs: readonly string[] }[];
}

/** Cases after which others get a turn: lines come a few at a time, as from programs. */
const casesPerPiece = 4;

export async function startStandInWorkers(sandboxUrl: string): Promise<StandInWorkers> {
  const agent = new http.Agent({ keepAlive: true, timeout: 1_000 });
  const server = http.createServer({ keepAliveTimeout: 60_000 }, (incoming, outgoing) => {
    if (incoming.url === "/v1/execute") void execute(incoming, outgoing);
    else forward(sandboxUrl, agent, incoming, outgoing);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      agent.destroy();
      await closed;
    },
  };
}

async function execute(incoming: http.IncomingMessage, outgoing: http.ServerResponse): Promise<void> {
  const { chunk_id: chunk, programs } = (await json(incoming)) as ExecuteBody;
  outgoing.writeHead(200, { "content-type": "application/x-ndjson" });
  let piece = "";
  let cases = 0;
  for (const { id, inputs } of programs) {
    for (const [index, input] of inputs.entries()) {
      piece += describeCase(chunk, id, index, input);
      cases += 1;
      if (cases % casesPerPiece > 0) continue;
      outgoing.write(piece);
      piece = "";
      await new Promise(setImmediate);
    }
  }
  outgoing.end(`${piece}${JSON.stringify({ chunk, type: "summary", reason: "completed", cases })}\n`);
}

function describeCase(chunk: string, program: string, index: number, input: string): string {
  const place = { chunk, program, case: index };
  const end = { status: "exited", exit_code: 0, stdout: `${input}\n`, stderr_tail: "" };
  const measures = { wall_ms: 4.123, cpu_ms: 3.987, peak_rss_kib: 9_216 };
  return [
    { type: "started", ...place },
    { type: "ended", ...place, ...end, ...measures },
  ]
    .map((line) => `${JSON.stringify(line)}\n`)
    .join("");
}

function forward(
  sandboxUrl: string,
  agent: http.Agent,
  incoming: http.IncomingMessage,
  outgoing: http.ServerResponse,
): void {
  const { method, url, headers } = incoming;
  const onward = http.request(new URL(url ?? "/", sandboxUrl), { method, headers, agent });
  onward.on("response", (answer) => {
    outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(outgoing);
  });
  onward.on("error", () => outgoing.destroy());
  incoming.pipe(onward);
}
