import { afterEach, describe, expect, it } from "vitest";
import type { ApiError } from "../../functions/local/e2b/api-error.ts";
import { createCpuShares } from "../../functions/local/e2b/cpu-shares.ts";
import type { Keeper } from "../../functions/local/e2b/keeper.ts";
import { PLANS, type Plan } from "../../functions/local/e2b/plan.ts";
import { createSandboxRegistry } from "../../functions/local/e2b/sandbox-registry.ts";
import { parseSandboxRequest } from "../../functions/local/e2b/sandbox-request.ts";
import { createManualClock } from "./manual-clock.ts";

const START_MS = Date.UTC(2026, 0, 1);
const HOUR_MS = 3_600_000;
const alive = new Set<string>();
const frozen = new Set<string>();

// Stands for the keeper's side of the port only: limits, ends and states are the registry's.
const keeper: Keeper = {
  cpus: [0, 1],
  async create(sandboxId) {
    alive.add(sandboxId);
    return 1;
  },
  async kill(sandboxId) {
    alive.delete(sandboxId);
  },
  async freeze(sandboxId) {
    frozen.add(sandboxId);
  },
  async thaw(sandboxId) {
    frozen.delete(sandboxId);
  },
  dial: () => Promise.reject(new Error("nothing to dial here")),
  close: async () => {},
};

function setUp(plan: Partial<Plan> = {}, changes: Partial<Keeper> = {}) {
  const clock = createManualClock(START_MS);
  const cut: string[] = [];
  const registry = createSandboxRegistry({
    keeper: { ...keeper, ...changes },
    plan: { ...PLANS.hobby, createsPerSecond: 1000, ...plan },
    cpuCount: 1,
    clock,
    log: () => {},
    onUnreachable: (sandboxId) => cut.push(sandboxId),
  });
  const create = (body: Record<string, unknown> = {}) =>
    registry.create(parseSandboxRequest({ templateID: "base", timeout: 60, ...body }));
  return { clock, registry, create, cut };
}

const statusOf = (call: Promise<unknown>) =>
  call.then(
    () => "no error",
    (error: ApiError) => error.status,
  );

afterEach(() => {
  alive.clear();
  frozen.clear();
});

describe("the plan's limits", () => {
  it("are those of hobby and pro", () => {
    expect(PLANS).toEqual({
      hobby: { concurrentSandboxes: 20, createsPerSecond: 1, maxLifeMs: HOUR_MS },
      pro: { concurrentSandboxes: 100, createsPerSecond: 5, maxLifeMs: 24 * HOUR_MS },
    });
  });

  it("refuse one creation more than may run, also while the others are still being made", async () => {
    const { create } = setUp({ concurrentSandboxes: 3 });
    const statuses = await Promise.all([1, 2, 3, 4].map(() => statusOf(create())));
    expect(statuses).toEqual(["no error", "no error", "no error", 429]);
    expect(alive.size).toBe(3);
  });

  it("free a place by a kill and by a pause; a resumption needs one", async () => {
    const { create, registry } = setUp({ concurrentSandboxes: 1 });
    const first = await create();
    await registry.pause(first.id);
    const second = await create();
    expect(await statusOf(registry.connect(first.id, 60_000))).toBe(429);
    await registry.kill(second.id);
    expect(await registry.connect(first.id, 60_000)).toMatchObject({ resumed: true });
    expect(await statusOf(create())).toBe(429);
  });

  it("count creations over any second, refused ones not", async () => {
    const { clock, create } = setUp({ createsPerSecond: 2 });
    expect(await statusOf(create())).toBe("no error");
    await clock.advance(900);
    expect(await statusOf(create())).toBe("no error");
    expect(await statusOf(create())).toBe(429);
    await clock.advance(100);
    expect(await statusOf(create())).toBe("no error");
    expect(await statusOf(create())).toBe(429);
  });

  it("keep a failed creation from holding a place", async () => {
    let failures = 1;
    const makeOrFail = async (sandboxId: string) => {
      failures -= 1;
      if (failures >= 0) throw new Error("no namespaces");
      alive.add(sandboxId);
      return 1;
    };
    const { create } = setUp({ concurrentSandboxes: 1 }, { create: makeOrFail });
    expect(await statusOf(create())).toBe(500);
    expect(await statusOf(create())).toBe("no error");
  });
});

describe("ends", () => {
  it("kill at the timeout and not before", async () => {
    const { clock, create, registry } = setUp();
    const { id } = await create({ timeout: 60 });
    await clock.advance(59_999);
    expect(registry.findRunning(id)).not.toBeNull();
    await clock.advance(1);
    expect(registry.findRunning(id)).toBeNull();
    expect(alive.size).toBe(0);
  });

  it("pause where the creation asked for it", async () => {
    const { clock, create, registry, cut } = setUp();
    const { id } = await create({ timeout: 60, autoPause: true });
    await clock.advance(60_000);
    expect(registry.find(id).state).toBe("paused");
    expect([...frozen]).toEqual([id]);
    expect(cut).toEqual([id]);
  });

  it("move with setTimeout, sooner and later, and never past the plan's longest life", async () => {
    const { clock, create, registry } = setUp();
    const record = await create({ timeout: 60 });
    await clock.advance(30_000);
    registry.setTimeout(record.id, 600_000);
    expect(record.endAtMs).toBe(START_MS + 630_000);
    registry.setTimeout(record.id, HOUR_MS);
    expect(record.endAtMs).toBe(START_MS + HOUR_MS);
    registry.setTimeout(record.id, 1000);
    await clock.advance(1000);
    expect(alive.size).toBe(0);
  });

  it.each(["create", "connect"])("a timeout over the plan's life is refused by %s", async (call) => {
    const { create, registry } = setUp();
    const { id } = await create();
    const asked = call === "create" ? create({ timeout: 3601 }) : registry.connect(id, HOUR_MS + 1000);
    expect(await statusOf(asked)).toBe(400);
  });

  it("are extended by connect and not shortened", async () => {
    const { create, registry } = setUp();
    const record = await create({ timeout: 60 });
    await registry.connect(record.id, 30_000);
    expect(record.endAtMs).toBe(START_MS + 60_000);
    await registry.connect(record.id, 300_000);
    expect(record.endAtMs).toBe(START_MS + 300_000);
  });

  it("of a paused sandbox don't come; a resumption starts a life anew", async () => {
    const { clock, create, registry } = setUp();
    const record = await create({ timeout: 60 });
    await registry.pause(record.id);
    await clock.advance(2 * HOUR_MS);
    expect(alive.size).toBe(1);
    await registry.connect(record.id, 60_000);
    expect(record).toMatchObject({ state: "running", startedAtMs: START_MS + 2 * HOUR_MS });
    await clock.advance(60_000);
    expect(alive.size).toBe(0);
  });
});

describe("states", () => {
  it("answer 409 to whoever meets a change, and let a kill through", async () => {
    let finishFreezing = () => {};
    const freeze = () =>
      new Promise<void>((resolve) => {
        finishFreezing = resolve;
      });
    const { create, registry } = setUp({}, { freeze });
    const { id } = await create();
    const pausing = statusOf(registry.pause(id));
    expect(() => registry.setTimeout(id, 1000)).toThrow(expect.objectContaining({ status: 409 }));
    expect(await statusOf(registry.connect(id, 1000))).toBe(409);
    expect(await statusOf(registry.pause(id))).toBe(409);
    await registry.kill(id);
    finishFreezing();
    expect(await pausing).toBe(404);
  });

  it("stay as they were when a change fails", async () => {
    const { create, registry } = setUp({}, { freeze: () => Promise.reject(new Error("would not stop")) });
    const { id } = await create();
    expect(await statusOf(registry.pause(id))).toBe(500);
    expect(registry.findRunning(id)).not.toBeNull();
    registry.setTimeout(id, 1000);
  });

  it("forget a sandbox whose first process died", async () => {
    const { create, registry } = setUp();
    const { id } = await create();
    registry.forget(id);
    expect(await statusOf(registry.kill(id))).toBe(404);
  });
});

describe("CPUs", () => {
  it("are dealt out evenly and dealt again when given back", () => {
    const shares = createCpuShares([0, 1, 2]);
    const [a, b, c] = [shares.take(1), shares.take(1), shares.take(1)];
    expect([a, b, c]).toEqual([[0], [1], [2]]);
    shares.giveBack([1]);
    expect(shares.take(1)).toEqual([1]);
    expect(shares.take(2)).toEqual([0, 1]);
    expect(shares.take(9)).toHaveLength(3);
  });
});
