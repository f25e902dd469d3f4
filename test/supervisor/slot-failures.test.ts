/** What a program or the host can do to the sandboxes that wait, and that a slot comes back from it. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeProgram, type Supervisor, startSupervisor } from "./harness.ts";
import { allowedCpus, childrenOf, controlGroupsOf } from "./host-view.ts";
import { modes } from "./launch.ts";
import { pause } from "./waiting.ts";
import { readHealth } from "./wire.ts";

const HEALED_WITHIN_MS = 20_000;
const ROUNDS = 8;
/** Nothing of it is large but what no process holds, so that a killer of large processes looks elsewhere. */
const becomeSmall = `import os
os.execv("/bin/sh", ["sh", "-c", "head -c 16700000 /dev/zero > /tmp/a; head -c 16700000 /dev/zero > /dev/shm/a; \
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do (yes | sleep 5) & done; sleep 5"])`;
const fillSockets = (mebibytes: number) => `import os, socket
left = ${mebibytes} << 20
while left > 0:
    a, b = socket.socketpair()
    a.setblocking(False)
    a.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 28)
    try:
        while left > 0: left -= a.send(b"x" * 31000) + 1000
    except OSError: pass
    for end in (a, b): os.set_inheritable(os.dup(end.fileno()), True)
`;

describe.each(modes)("as %s", (mode) => {
  let supervisor: Supervisor;
  let hasMemoryGroup: boolean;
  beforeAll(async () => {
    supervisor = await startSupervisor({
      mode,
      arguments: ["--cpus", String(allowedCpus()[0]), "--memory-mib", "1024"],
    });
    const [zygote = 0] = childrenOf(supervisor.pid).flatMap(childrenOf);
    hasMemoryGroup = controlGroupsOf(zygote).some((group) => group.includes("code-rewards-"));
  }, 60_000);
  afterAll(() => supervisor.close());

  const printsOne = (id: string, cases: number) => makeProgram(id, "print(1)", Array(cases).fill(""));

  it.each([
    { name: "files", source: becomeSmall, memory_mib: 36 },
    { name: "files and sockets", source: fillSockets(150) + becomeSmall, memory_mib: 192 },
  ])(
    "small processes beside full $name take no waiting sandbox with them",
    async ({ source, memory_mib }) => {
      const full = makeProgram("full", source, ["", ""], { memory_mib, time_ms: 800 });
      for (let round = 0; round < ROUNDS; round += 1) {
        const { lines } = await supervisor.execute(supervisor.chunk([full, printsOne("right", 3)]));
        const statuses = (id: string) =>
          lines.filter(({ type, program }) => type === "ended" && program === id).map(({ status }) => status);
        expect(statuses("right")).toEqual(Array(3).fill("exited"));
        for (const status of statuses("full")) expect(["memory_limit", "time_limit"]).toContain(status);
        if (hasMemoryGroup) expect(statuses("full")).toContain("memory_limit");
        expect((await readHealth(supervisor)).status).toBe(200);
      }
    },
    60_000,
  );

  it("a program that may be killed before others can't put itself behind them", async () => {
    const source = `
own = "/proc/self/oom_score_adj"
print(open(own).read().strip())
try: open(own, "w").write("500")
except OSError: pass
print(open(own).read().strip())`;
    const { lines } = await supervisor.execute(supervisor.chunk([makeProgram("p", source, [""])]));
    const [before, after] = String(lines.find(({ type }) => type === "ended")?.stdout).split("\n");
    expect(before).toBe("1000");
    if (hasMemoryGroup) expect(after).toBe("1000");
  });

  it("a slot whose zygote died too often tries again, and works", async () => {
    const status = async () => (await readHealth(supervisor)).status;
    while ((await status()) === 200) {
      for (const zygote of childrenOf(supervisor.pid)) process.kill(zygote, "SIGKILL");
      await pause();
    }
    expect(await status()).toBe(503);
    for (const end = performance.now() + HEALED_WITHIN_MS; performance.now() < end; await pause()) {
      if ((await status()) === 200) break;
    }
    expect(await status()).toBe(200);
    const { lines } = await supervisor.execute(supervisor.chunk([printsOne("after", 4)]));
    expect(lines.filter(({ status }) => status === "exited")).toHaveLength(4);
  }, 60_000);
});
