/** Faults that say nothing of a worker: it goes back as healthy, and is not killed. */
import { describe, expect, it } from "vitest";
import { Fault } from "../../functions/rewards/faults.ts";
import { allRight, many } from "./bad-programs.ts";
import { grade } from "./batches.ts";
import { batchOf, echoTask } from "./echo-batches.ts";
import { lost, obey } from "./scripted-workers.ts";

const fault = (code: "store_unavailable" | "sandbox_unavailable" | "worker_lost" | "supervisor_protocol") =>
  new Fault(code, "for a reason");

describe("a worker's first chunk", () => {
  it.each<{ code: Parameters<typeof fault>[0]; kind: "throw" | "throw_before"; goesBackAs: string }>([
    { code: "store_unavailable", kind: "throw_before", goesBackAs: "healthy" },
    { code: "store_unavailable", kind: "throw", goesBackAs: "healthy" },
    { code: "sandbox_unavailable", kind: "throw_before", goesBackAs: "healthy" },
    { code: "sandbox_unavailable", kind: "throw", goesBackAs: "healthy" },
    { code: "worker_lost", kind: "throw_before", goesBackAs: "broken" },
    { code: "supervisor_protocol", kind: "throw", goesBackAs: "broken" },
  ])("that ends in $code ($kind) gives it back as $goesBackAs", async ({ code, kind, goesBackAs }) => {
    const { rewards, workers } = await grade(batchOf(many, echoTask(2)), {
      script: (turn) => (turn.workerId === "w1" ? { kind, error: fault(code) } : obey(turn)),
      maxWorkers: 1,
    });
    expect(rewards).toEqual(allRight);
    expect(workers.leases[0]?.released).toEqual([goesBackAs]);
  });
});

describe("a sign of life", () => {
  it.each<{
    sign: ReturnType<typeof fault> | "deadline" | "cancelled" | "too_large" | "superseded";
    goesBackAs: string;
  }>([
    { sign: fault("store_unavailable"), goesBackAs: "healthy" },
    { sign: fault("sandbox_unavailable"), goesBackAs: "healthy" },
    { sign: "deadline", goesBackAs: "healthy" },
    { sign: "cancelled", goesBackAs: "healthy" },
    { sign: "too_large", goesBackAs: "healthy" },
    { sign: "superseded", goesBackAs: "broken" },
    { sign: fault("worker_lost"), goesBackAs: "broken" },
  ])("that is $sign gives the worker back as $goesBackAs", async ({ sign, goesBackAs }) => {
    const { rewards, workers } = await grade(batchOf(many, echoTask(2)), {
      script: (turn) => (turn.workerId === "w1" ? { kind: "throw_before", error: lost() } : obey(turn)),
      sign: (workerId) => (workerId === "w2" ? sign : "completed"),
      maxWorkers: 1,
    });
    expect(rewards).toEqual(allRight);
    expect(workers.signs[0]).toBe("w2");
    expect(workers.leases[1]).toMatchObject({ workerId: "w2", chunks: [], released: [goesBackAs] });
  });
});
