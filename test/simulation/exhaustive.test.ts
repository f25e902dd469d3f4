import { describe, expect, it, vi } from "vitest";
import { explore } from "./exhaustive.ts";
import { smallPools } from "./small-pools.ts";

vi.setConfig({ testTimeout: 120_000 });

/** Too many to be seen to the end here; as many as there is time for. */
const unbounded: Record<string, number> = { twoSlots: 12_000 };

describe("every interleaving of a small pool keeps its promises", () => {
  it.each(Object.entries(smallPools))("%s", async (name, options) => {
    const mostMs = unbounded[name];
    const { violations, ...found } = await explore({
      ...options,
      ...(mostMs === undefined ? {} : { mostMs }),
    });
    console.log(`${name}: ${JSON.stringify(found)}`);
    expect(violations).toEqual([]);
    if (mostMs === undefined) expect(found.isComplete).toBe(true);
    expect(found.states).toBeGreaterThan(300);
    expect(found.ends).toBeGreaterThan(5);
  });
});
