import { describe, expect, it } from "vitest";
import { grade } from "./batches.ts";
import { batchOf, echoTask } from "./echo-batches.ts";
import { createVirtualClock } from "./virtual-clock.ts";

describe("a worker whose life ends soon", () => {
  const sources = Array.from({ length: 400 }, (_, index) => `right ${index}`);
  const clock = createVirtualClock();
  const inMs = (ms: number) => clock.nowMs() + ms;

  it("is given back, healthy, at its chunk's end, and another one does the rest", async () => {
    const { rewards, workers, usage } = await grade(batchOf(sources, echoTask(8)), {
      clock,
      maxWorkers: 1,
      livesUntilMs: (workerId) => inMs(workerId === "w1" ? 170_000 : 3_000_000),
    });
    expect(rewards.every((reward) => reward === 1)).toBe(true);
    const [aging, ...others] = workers.leases;
    expect(aging?.chunks).toHaveLength(1);
    expect(aging?.released).toEqual(["healthy"]);
    expect(others.map(({ released }) => released)).toEqual([["healthy"]]);
    expect(usage.retries).toBe(0);
  });

  it("is kept while it has time for another chunk", async () => {
    const { workers } = await grade(batchOf(sources, echoTask(8)), {
      clock,
      maxWorkers: 1,
      livesUntilMs: () => inMs(181_000),
    });
    expect(workers.leases).toHaveLength(1);
    expect(workers.chunks.length).toBeGreaterThan(1);
  });
});
