import { afterAll, beforeAll, describe, it } from "vitest";
import { describeE2bContract, type Target } from "./contract.ts";
import { ORDINARY_UID, type ServerProcess, startServerProcess } from "./server-process.ts";

const isRoot = process.getuid?.() === 0;

function describeLocal(name: string, options: { readonly uid?: number }): void {
  describe(name, () => {
    let server: ServerProcess | undefined;
    beforeAll(async () => {
      server = await startServerProcess(options);
    }, 30_000);
    afterAll(() => server?.stop());
    describeE2bContract(`the local server, ${name}`, () => {
      if (server === undefined) throw new Error("the server isn't up");
      return server.target;
    });
  });
}

describeLocal(isRoot ? "as root" : "as an ordinary user", {});
if (isRoot) describeLocal("as an ordinary user", { uid: ORDINARY_UID });

const apiKey = process.env.E2B_API_KEY;
if (apiKey !== undefined && process.env.CODE_REWARDS_TEST_E2B === "1") {
  const cloud: Target = { apiKey };
  describeE2bContract("E2B's cloud", () => cloud);
} else {
  console.log(
    "E2B contract, E2B's cloud: skipped. Set E2B_API_KEY and CODE_REWARDS_TEST_E2B=1 to run it there.",
  );
  it.skip("E2B contract: E2B's cloud", () => {});
}
