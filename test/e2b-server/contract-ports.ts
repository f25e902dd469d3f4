import type { Sandbox } from "e2b";
import { describe, expect } from "vitest";
import type { Contract, Target } from "./contract.ts";
import { eventually, withSandbox } from "./sandboxes.ts";

const PORT = 8765;
// Tells a body's length at once, and a second line only after another request: a stand-in for a server of ours.
const SERVER = `
import http.server, threading
asked = threading.Event()
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for text in ("%d\\n" % len(body), "second\\n"):
            self.wfile.write(b"%x\\r\\n%s\\r\\n" % (len(text), text.encode()))
            asked.wait()
        self.wfile.write(b"0\\r\\n\\r\\n")
    def do_GET(self):
        if self.headers.get("x-sent") == "go on": asked.set()
        self.send_response(418)
        self.send_header("content-length", "0")
        self.send_header("x-seen", self.headers.get("x-sent", ""))
        self.end_headers()
    def log_message(self, *_): pass
http.server.ThreadingHTTPServer(("127.0.0.1", ${PORT}), Handler).serve_forever()
`;

/** Reaching a server in a sandbox. */
export function describePorts({ target, fact }: Contract): void {
  describe("ports", () => {
    fact(
      "a closed port, a wrong or missing traffic token, and a sandbox that is gone are told apart",
      async () => {
        await withSandbox(target(), { network: { allowPublicTraffic: false } }, async (sandbox) => {
          const closed = await ask(target(), sandbox, {});
          expect(closed.status).toBe(502);
          expect(await closed.json()).toMatchObject({
            sandboxId: sandbox.sandboxId,
            message: "The sandbox is running but port is not open",
            port: PORT,
          });
          expect((await ask(target(), sandbox, { token: undefined })).status).toBe(403);
          expect((await ask(target(), sandbox, { token: "0".repeat(64) })).status).toBe(403);
          await sandbox.kill();
          const gone = await ask(target(), sandbox, {});
          expect(gone.status).toBe(502);
          expect(await gone.json()).toMatchObject({ message: "The sandbox was not found" });
        });
      },
    );

    fact("requests and answers pass unchanged, and a streamed answer as it comes", async () => {
      await withSandbox(target(), { network: { allowPublicTraffic: false } }, async (sandbox) => {
        await sandbox.files.write("/tmp/server.py", SERVER);
        const started = await sandbox.commands.run("python3 /tmp/server.py", {
          background: true,
          timeoutMs: 0,
        });
        await started.disconnect();
        await eventually("the server answers", async () => (await ask(target(), sandbox, {})).status === 418);
        const seen = await ask(target(), sandbox, { headers: { "x-sent": "a, b" } });
        expect(seen.headers.get("x-seen")).toBe("a, b");
        const response = await ask(target(), sandbox, { body: "x".repeat(200_000) });
        const lines = readLines(response);
        expect((await lines.next()).value).toBe("200000");
        await ask(target(), sandbox, { headers: { "x-sent": "go on" } });
        expect((await lines.next()).value).toBe("second");
        expect((await lines.next()).done).toBe(true);
      });
    });
  });
}

interface Question {
  readonly token?: string | undefined;
  readonly body?: string;
  readonly headers?: Record<string, string>;
}

/** Sends a request to the port, with the sandbox's own traffic token unless another, or none, is given. */
function ask(target: Target, sandbox: Sandbox, question: Question): Promise<Response> {
  const token = "token" in question ? question.token : sandbox.trafficAccessToken;
  const url = target.sandboxUrl ?? `https://${sandbox.getHost(PORT)}`;
  return fetch(`${url}/v1/some/path?query=1`, {
    method: question.body === undefined ? "GET" : "POST",
    body: question.body ?? null,
    headers: {
      ...question.headers,
      ...(token === undefined ? {} : { "e2b-traffic-access-token": token }),
      ...(target.sandboxUrl === undefined
        ? {}
        : { "E2b-Sandbox-Id": sandbox.sandboxId, "E2b-Sandbox-Port": String(PORT) }),
    },
  });
}

async function* readLines(response: Response): AsyncGenerator<string> {
  let rest = "";
  for await (const part of response.body as unknown as AsyncIterable<Uint8Array>) {
    const texts = (rest + Buffer.from(part).toString()).split("\n");
    rest = texts.pop() ?? "";
    yield* texts;
  }
}
