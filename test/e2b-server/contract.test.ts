import { afterAll, beforeAll, it } from "vitest";
import { describeE2bContract, type Target } from "./contract.ts";
import { describeEachUser, type ServerProcess, startServerProcess } from "./server-process.ts";

describeEachUser((uid, name) => {
  let server: ServerProcess | undefined;
  beforeAll(async () => {
    server = await startServerProcess(uid === undefined ? {} : { uid });
  }, 30_000);
  afterAll(() => server?.stop());
  describeE2bContract(`the local server ${name}`, () => {
    if (server === undefined) throw new Error("the server isn't up");
    return server.target;
  });
});

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
