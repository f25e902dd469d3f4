/**
 * The way to a healthy worker: it forgets flows, is slow, or lets nobody through. The worker is none the worse for it.
 *
 * Time runs fast here, and rates with it, so that seconds of silence take moments.
 */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { createE2bWorkerFactory } from "../../functions/adapters/e2b-worker-factory.ts";
import type { WorkerAddress } from "../../functions/pool/ports.ts";
import type { Chunk, Clock, WorkerEvent } from "../../functions/rewards/ports.ts";
import { openClosedDoor, openWay, type Way } from "../faults/way.ts";
import {
  addressFrom,
  collect,
  doublingChunk,
  factoryFor,
  never,
  newOrder,
  optionsFor,
  outputsOf,
  startRoomyServer,
  supervisor,
  sweep,
  type TestServer,
} from "./cloud.ts";

const timesFaster = 8;
const startMs = Date.now();
const fastClock: Clock = {
  nowMs: () => startMs + (Date.now() - startMs) * timesFaster,
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      const timer = setTimeout(resolve, ms / timesFaster);
      const wake = () => {
        clearTimeout(timer);
        resolve();
      };
      if (signal?.aborted) wake();
      signal?.addEventListener("abort", wake, { once: true });
    }),
};

const order = newOrder();
let server: TestServer;
let worker: WorkerAddress;
let way: Way;
let token = 0;
const closers: (() => void)[] = [];

beforeAll(async () => {
  server = await startRoomyServer();
  worker = { ...order, ...addressFrom(await factoryFor(optionsFor(server)).create(order, never)) };
});
afterEach(() => {
  for (const close of closers.splice(0)) close();
});
afterAll(async () => {
  await sweep(optionsFor(server), order.poolId);
  await server?.stop();
});

async function newWay(): Promise<Way> {
  way = await openWay(server.target.sandboxUrl);
  closers.push(way.close);
  return way;
}

function execute(chunk: Partial<Chunk> = {}, sandboxUrl = way.url): AsyncIterable<WorkerEvent> {
  const e2b = optionsFor(server, { sandboxUrl });
  const workers = createE2bWorkerFactory({ e2b, supervisor, clock: fastClock, random: () => 0 });
  token += 1;
  return workers
    .attach(worker)
    .execute({ ...doublingChunk(`w${token}`), deadlineMs: 600_000, ...chunk }, token, never);
}

const right = ["42\n", "8\n"];

/** A chunk whose one program runs until it is stopped. */
const endless = (): Partial<Chunk> => {
  const [program] = doublingChunk("").programs;
  if (program === undefined) throw new Error("there is no program");
  return {
    programs: [{ ...program, source: "while True: pass", limits: { ...program.limits, timeMs: 60_000 } }],
  };
};

describe("a way that forgets flows", () => {
  it("while one is kept for the next chunk: the chunk runs on the same worker, over a new one", async () => {
    await newWay();
    expect(outputsOf(await collect(execute()))).toEqual(right);
    expect(outputsOf(await collect(execute()))).toEqual(right);
    expect(way.connections()).toBe(1);
    way.forget();
    expect(outputsOf(await collect(execute()))).toEqual(right);
    expect(way.connections()).toBe(3); // the chunk's, and the one over which the worker was looked at before
  });

  it("while a chunk is sent: it is sent again", async () => {
    await newWay();
    way.limitUpload(200_000 * timesFaster);
    const [program] = doublingChunk("").programs;
    const large = { ...program, inputs: Array.from({ length: 4 }, () => `${" ".repeat(100_000)}21`) };
    const running = collect(execute({ programs: [large as Chunk["programs"][number]] }));
    await expect.poll(() => way.connections(), { interval: 1 }).toBe(1);
    way.forget();
    way.limitUpload(Number.POSITIVE_INFINITY);
    expect(outputsOf(await running)).toEqual(Array.from({ length: 4 }, () => "42\n"));
  });

  it("in the middle of an answer: the chunk is given back, and the worker is not said to be lost", async () => {
    await newWay();
    const told: string[] = [];
    const running = (async () => {
      for await (const { kind } of execute(endless())) {
        told.push(kind);
        way.forget();
      }
    })();
    await expect(running).rejects.toMatchObject({ code: "sandbox_unavailable", retryable: true });
    expect(told[0]).toBe("case_started");
    expect(outputsOf(await collect(execute()))).toEqual(right);
  });
});

describe("a slow way", () => {
  it("carries a large chunk for longer than silence may last, and the worker is waited for", async () => {
    await newWay();
    way.limitUpload(250_000 * timesFaster); // 2 Mbit/s
    const [program] = doublingChunk("").programs;
    const inputs = Array.from({ length: 4 }, () => `${" ".repeat(1_048_570)}21`);
    const startedAtMs = fastClock.nowMs();
    const events = await collect(
      execute({ programs: [{ ...program, inputs } as Chunk["programs"][number]] }),
    );
    expect(outputsOf(events)).toEqual(inputs.map(() => "42\n"));
    expect(fastClock.nowMs() - startedAtMs).toBeGreaterThan(15_000);
    expect(way.connections()).toBe(1);
  });
});

describe("a way that lets no connection through", () => {
  it("is tried until the deadline is near, and its trouble is not the worker's", async () => {
    const door = await openClosedDoor();
    closers.push(door.close);
    const startedAtMs = fastClock.nowMs();
    const running = collect(execute({ deadlineMs: 60_000 }, door.url));
    await expect(running).rejects.toMatchObject({
      code: "sandbox_unavailable",
      retryable: true,
      message: expect.stringContaining("no connection could be made within 5 s"),
    });
    expect(fastClock.nowMs() - startedAtMs).toBeGreaterThan(45_000);
    await newWay();
    expect(outputsOf(await collect(execute()))).toEqual(right);
  });

  it("nor when it refuses connections at once, and opens in time", async () => {
    await newWay();
    const { url } = way;
    way.close();
    const running = collect(execute({ deadlineMs: 120_000 }, url));
    running.catch(() => {});
    await fastClock.sleep(20_000);
    way = await openWay(server.target.sandboxUrl, Number(new URL(url).port));
    closers.push(way.close);
    expect(outputsOf(await running)).toEqual(right);
  });
});
