import { setTimeout as sleep } from "node:timers/promises";
import { RateLimitError, Sandbox, type SandboxOpts } from "e2b";
import type { Target } from "./contract.ts";

/** Creates a sandbox, waiting out the plan's creations per second. */
export async function createSandbox(target: Target, options: SandboxOpts = {}): Promise<Sandbox> {
  for (let left = 5; ; left -= 1) {
    try {
      return await Sandbox.create({ timeoutMs: 120_000, ...target, ...options });
    } catch (error) {
      if (!(error instanceof RateLimitError) || left === 0) throw error;
      await sleep(1100);
    }
  }
}

/** Runs `use` with a sandbox of its own, which is killed afterwards whatever happened. */
export async function withSandbox(
  target: Target,
  options: SandboxOpts,
  use: (sandbox: Sandbox) => Promise<void>,
): Promise<void> {
  const sandbox = await createSandbox(target, options);
  try {
    await use(sandbox);
  } finally {
    await Sandbox.kill(sandbox.sandboxId, target);
  }
}

/** Asks until the answer is yes; fails with `what` when it takes too long. */
export async function eventually(what: string, ask: () => Promise<boolean>, limitMs = 5000): Promise<void> {
  const untilMs = Date.now() + limitMs;
  while (!(await ask())) {
    if (Date.now() > untilMs) throw new Error(`not within ${limitMs} ms: ${what}`);
    await sleep(20);
  }
}
