import { Sandbox } from "e2b";
import { afterAll, beforeAll, describe, it } from "vitest";
import { describeCommands } from "./contract-commands.ts";
import { describeFiles } from "./contract-files.ts";
import { describeLifecycle } from "./contract-lifecycle.ts";
import { describePorts } from "./contract-ports.ts";
import { createSandbox } from "./sandboxes.ts";

/** Where an E2B is. Without URLs it is E2B's cloud. */
export interface Target {
  readonly apiKey: string;
  readonly apiUrl?: string;
  readonly sandboxUrl?: string;
}

/** What the parts of the contract share: the target, one sandbox for what leaves no trace, and `fact`. */
export interface Contract {
  target(): Target;
  shared(): Sandbox;
  /** A test; its name is printed at the end where it passed. */
  fact(name: string, check: () => Promise<void>, limitMs?: number): void;
}

/**
 * What we rely on in E2B, told by its unmodified client. Every E2B that we run on must pass it: the local server as
 * root and as an ordinary user, and E2B's cloud.
 */
export function describeE2bContract(name: string, findTarget: () => Target): void {
  describe(`E2B contract: ${name}`, () => {
    const proved: string[] = [];
    let shared: Sandbox | undefined;
    const contract: Contract = {
      target: findTarget,
      shared() {
        if (shared === undefined) throw new Error("the shared sandbox isn't there yet");
        return shared;
      },
      fact(text, check, limitMs = 30_000) {
        it(
          text,
          async () => {
            await check();
            proved.push(text);
          },
          limitMs,
        );
      },
    };
    beforeAll(async () => {
      shared = await createSandbox(findTarget(), {
        envs: { FROM_CREATION: "yes" },
        allowInternetAccess: false,
      });
    }, 30_000);
    afterAll(async () => {
      if (shared !== undefined) await Sandbox.kill(shared.sandboxId, findTarget());
      console.log(`E2B contract, ${name}: ${proved.length} facts hold\n  ${proved.join("\n  ")}`);
    });
    describeLifecycle(contract);
    describeCommands(contract);
    describeFiles(contract);
    describePorts(contract);
  });
}
