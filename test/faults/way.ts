/**
 * A way to a server, on the level of packets: it may forget flows, be slow, or let no new connection through.
 *
 * What an HTTP proxy can't do: a flow that is forgotten is neither closed nor reset, to either end. Bytes that are sent
 * on it go nowhere.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import net, { type AddressInfo, type Socket } from "node:net";
import { createInterface } from "node:readline";

export interface Way {
  /** The server's address, by this way. */
  readonly url: string;
  /** Connections that were made by it so far. */
  connections(): number;
  /** Forgets all flows that there are, as networks do with idle ones, or with those of a machine that was frozen. */
  forget(): void;
  /** Carries what is sent to the server at this rate; a rate of 0 doesn't let it pass. */
  limitUpload(bytesPerSecond: number): void;
  close(): void;
}

interface Flow {
  readonly near: Socket;
  readonly far: Socket;
  isForgotten: boolean;
  /** When the next piece of a slow upload is due. */
  dueAtMs: number;
}

/** So that a rate is a rate, whatever the kernel's buffers take. */
const pieceBytes = 4_096;
/** Nobody makes up for more than so much lost time. */
const latestMs = 20;

/** Listens on a free port of loopback, or on this one. */
export async function openWay(to: string, at = 0): Promise<Way> {
  const { hostname, port } = new URL(to);
  const flows = new Set<Flow>();
  let count = 0;
  let bytesPerSecond = Number.POSITIVE_INFINITY;
  const carry = async (flow: Flow, bytes: Buffer) => {
    if (bytesPerSecond === Number.POSITIVE_INFINITY) return void flow.far.write(bytes);
    flow.near.pause();
    for (let at = 0; at < bytes.length && !flow.isForgotten; at += pieceBytes) {
      // By what is due since the first: a timer that is late doesn't make the way slower than it is said to be.
      flow.dueAtMs = Math.max(flow.dueAtMs, Date.now() - latestMs) + (pieceBytes / bytesPerSecond) * 1_000;
      const waitMs = flow.dueAtMs - Date.now();
      if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs).unref());
      flow.far.write(bytes.subarray(at, at + pieceBytes));
    }
    flow.near.resume();
  };
  const server = net.createServer((near) => {
    count += 1;
    const flow: Flow = { near, far: net.connect(Number(port), hostname), isForgotten: false, dueAtMs: 0 };
    flows.add(flow);
    for (const [from, other] of [
      [near, flow.far],
      [flow.far, near],
    ] as const) {
      from.on("error", () => {});
      from.on("data", (bytes: Buffer) => {
        if (flow.isForgotten) return;
        if (from === near) void carry(flow, bytes);
        else near.write(bytes);
      });
      from.on("close", () => {
        if (!flow.isForgotten) other.destroy();
      });
    }
  });
  server.listen(at, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    connections: () => count,
    forget() {
      for (const flow of flows) flow.isForgotten = true;
    },
    limitUpload(rate) {
      bytesPerSecond = rate;
    },
    close() {
      server.close();
      for (const { near, far } of flows) {
        near.destroy();
        far.destroy();
      }
    },
  };
}

/** Listens and accepts nobody: once its queue is full, the kernel drops the first packet of whoever comes. */
const closedDoor = `
import socket, sys
door = socket.socket(); door.bind(("127.0.0.1", 0)); door.listen(0)
queue = [socket.socket() for _ in range(4)]
for one in queue:
    one.setblocking(False)
    one.connect_ex(door.getsockname())
print(door.getsockname()[1], flush=True)
sys.stdin.read()
`;

/** The address of a machine to which no connection is ever made, though nothing refuses it. */
export async function openClosedDoor(): Promise<{ readonly url: string; close(): void }> {
  const child: ChildProcess = spawn("python3", ["-c", closedDoor], { stdio: ["pipe", "pipe", "inherit"] });
  const [port] = await once(createInterface({ input: child.stdout as NodeJS.ReadableStream }), "line");
  return { url: `http://127.0.0.1:${port}`, close: () => void child.kill("SIGKILL") };
}
