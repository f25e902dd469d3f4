/** Waiting for what must become true soon, by looking often and giving up in time. */
import { expect } from "vitest";

const LIMIT_MS = 3000;
const POLL_MS = 20;

export function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, POLL_MS));
}

/** Waits until `left` finds nothing, and fails with what it still finds at the limit. */
export async function vanish(left: () => unknown[], what: string, limitMs = LIMIT_MS): Promise<void> {
  let now = left();
  for (const end = performance.now() + limitMs; now.length > 0 && performance.now() < end; now = left()) {
    await pause();
  }
  expect(now, what).toEqual([]);
}

/** Waits until `seen` finds `count` things. */
export async function appear(seen: () => unknown[], count: number, what: string): Promise<void> {
  for (const end = performance.now() + LIMIT_MS; seen().length !== count && performance.now() < end; )
    await pause();
  expect(seen(), what).toHaveLength(count);
}

/** The length of `seen` once it has stayed the same for a while. */
export async function settledCount(seen: () => unknown[]): Promise<number> {
  let count = -1;
  for (let same = 0; same < 10; await pause()) {
    const now = seen().length;
    same = now === count ? same + 1 : 0;
    count = now;
  }
  return count;
}
