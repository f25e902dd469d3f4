/** How many sandboxes a slot has ready, and when it makes more: what a case doesn't find ready, it waits for. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeProgram, type Supervisor, startSupervisor } from "./harness.ts";
import { allowedCpus, childrenOf, livingOf } from "./host-view.ts";
import { modes } from "./launch.ts";
import { appear } from "./waiting.ts";
import { openChunk } from "./wire.ts";

const cpu = allowedCpus()[0];
const readyWhileIdle = 3;
/** Ends at once, or stays where its input says so. */
const source = "import time\nif input(): time.sleep(60)";
const inputs = (quickOnes: number, slowOnes: number) => [
  ...Array<string>(quickOnes).fill("\n"),
  ...Array<string>(slowOnes).fill("stay\n"),
];

describe.each(modes)("as %s", (mode) => {
  let supervisor: Supervisor;
  /** Of the one slot. Its supervisor's only child starts it, and waits for it. */
  let zygote: number;
  const sandboxes = () => livingOf(childrenOf(zygote));
  beforeAll(async () => {
    supervisor = await startSupervisor({
      mode,
      arguments: ["--cpus", String(cpu), "--memory-mib", "1024"],
    });
    [zygote = 0] = childrenOf(supervisor.pid).flatMap(childrenOf);
  }, 60_000);
  afterAll(() => supervisor.close());

  const rest = () => appear(sandboxes, readyWhileIdle, "sandboxes of an idle slot");
  /** Sends one program, and waits until the case is under way. */
  async function startCase(cases: readonly string[], caseIndex: number) {
    const chunk = supervisor.chunk([makeProgram("p", source, [...cases], { time_ms: 30_000 })]);
    const exchange = openChunk(supervisor, chunk);
    await exchange.until((line) => line.type === "started" && line.case === caseIndex);
    return exchange;
  }

  it("keeps three while it is idle", rest);

  it("makes none while the cases of a program that found enough run", async () => {
    const left: number[] = [];
    // A machine that was busy elsewhere lets us look late, when new ones are on their way; not each time.
    for (let round = 0; round < 30 && !left.includes(0); round += 1) {
      await rest();
      const { lines } = await supervisor.execute(
        supervisor.chunk([makeProgram("p", source, inputs(readyWhileIdle, 0))]),
      );
      left.push(sandboxes().length);
      expect(lines.filter(({ status }) => status === "exited")).toHaveLength(readyWhileIdle);
    }
    expect(left).toContain(0);
    await rest();
  });

  it.each([
    { name: "one beside a long case that others wait behind", cases: inputs(4, 2), running: 4 },
    { name: "one beside a long case that is the last", cases: inputs(4, 1), running: 4 },
    { name: "no more than were left beside a long first case", cases: inputs(0, 5), running: 0, ready: 2 },
  ])("has ready $name", async ({ cases, running, ready = 1 }) => {
    await rest();
    const exchange = await startCase(cases, running);
    await appear(sandboxes, 1 + ready, "the running sandbox and those that are ready");
    exchange.abort();
    await rest();
  });
});
