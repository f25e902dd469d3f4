import { randomUUID } from "node:crypto";
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { Sandbox } from "e2b";
import { afterEach, describe, expect, it } from "vitest";
import { familyOf, isAlive, pidsWith } from "./host-processes.ts";
import { createSandbox, eventually } from "./sandboxes.ts";
import { describeEachUser, type ServerProcess, startServerProcess } from "./server-process.ts";

const LIMIT_MS = 5000;
const HOST_FOLDERS = ["/tmp", "/var/tmp", "/dev/shm", "/run", "/home", "/mnt"];

const leftovers: (() => unknown)[] = [];
afterEach(async () => {
  for (const clean of leftovers.splice(0).reverse()) await clean();
});

/** A server whose sandboxes hold what is hard to get rid of: daemons deaf to signals, files, mounts. */
async function startBusyServer(uid: number | undefined) {
  const scratch = mkdtempSync("/tmp/e2b-server-test-");
  chmodSync(scratch, 0o777);
  leftovers.push(() => rmSync(scratch, { recursive: true }));
  const server = await startServerProcess(uid === undefined ? { scratch } : { uid, scratch });
  leftovers.push(() => server.child.kill("SIGKILL"));
  const marker = randomUUID();
  const clingy = (mark: string) => `
touch /tmp/${marker} /home/user/${marker} /dev/shm/${marker} /run/${marker}
unshare -Urmpf --mount-proc sh -c 'mount -t tmpfs none /tmp; exec sh -c "sleep 9000; : ${mark}"' &
setsid sh -c 'trap "" TERM HUP INT; (while :; do sleep 9000; done) & sleep 9000; : ${mark}' &
wait`;
  const sandboxes = await Promise.all([createSandbox(server.target), createSandbox(server.target)]);
  for (const [index, sandbox] of sandboxes.entries()) {
    const command = clingy(`${marker}-${index}`);
    await (
      await sandbox.commands.run(command, { background: true, timeoutMs: 0, user: "root" })
    ).disconnect();
  }
  await eventually("the daemons are up", async () => pidsWith(`${marker}-1`).length >= 3);
  const family = familyOf(server.child.pid ?? -1);
  expect(family.length).toBeGreaterThan(8);
  return { server, sandboxes, marker, scratch, family };
}

const mounts = () => readFileSync("/proc/self/mountinfo", "utf8");

async function expectNothingLeft({ marker, scratch, family }: Awaited<ReturnType<typeof startBusyServer>>) {
  await eventually("no process is left", async () => !family.some(isAlive), LIMIT_MS);
  expect(pidsWith(marker)).toEqual([]);
  expect(readdirSync(scratch)).toEqual([]);
  expect(HOST_FOLDERS.filter((folder) => existsSync(`${folder}/${marker}`))).toEqual([]);
}

describeEachUser((uid) => {
  describe("nothing is left", () => {
    it("when the server is killed with SIGKILL", async () => {
      const before = mounts();
      const busy = await startBusyServer(uid);
      busy.server.child.kill("SIGKILL");
      await expectNothingLeft(busy);
      expect(mounts()).toBe(before);
    }, 30_000);

    it("when the server closes", async () => {
      const before = mounts();
      const busy = await startBusyServer(uid);
      await busy.server.stop();
      await expectNothingLeft(busy);
      expect(mounts()).toBe(before);
    }, 30_000);

    it("of a sandbox that is killed, while another goes on", async () => {
      const { server, sandboxes, marker } = await startBusyServer(uid);
      const [killed, kept] = sandboxes as [Sandbox, Sandbox];
      expect(pidsWith(`${marker}-0`)).not.toEqual([]);
      expect(await killed.kill()).toBe(true);
      expect(pidsWith(`${marker}-0`)).toEqual([]);
      expect(pidsWith(`${marker}-1`)).not.toEqual([]);
      expect((await kept.commands.run("echo here")).stdout).toBe("here\n");
      await server.stop();
    }, 30_000);
  });

  it("when the keeper is killed, its sandboxes are gone for the client, too, and the next one is made", async () => {
    const busy = await startBusyServer(uid);
    const keeper = childOf(busy.server);
    process.kill(keeper, "SIGKILL");
    await eventually("no sandbox is left", async () => !familyHas(busy.family, keeper), LIMIT_MS);
    const isUnknown = async () =>
      !(await Sandbox.kill(busy.sandboxes[0]?.sandboxId ?? "", busy.server.target));
    await eventually("the sandbox is unknown", isUnknown);
    const next = await createSandbox(busy.server.target);
    expect((await next.commands.run("echo again")).stdout).toBe("again\n");
    await busy.server.stop();
  }, 30_000);
});

/** The keeper, named by its program among the server's children. */
function childOf(server: ServerProcess): number {
  const keepers = new Set(pidsWith("sandbox/keeper.py"));
  const [keeper] = familyOf(server.child.pid ?? -1).filter((pid) => keepers.has(pid));
  if (keeper === undefined) throw new Error("the server has no keeper");
  return keeper;
}

const familyHas = (family: readonly number[], keeper: number) =>
  family.slice(family.indexOf(keeper)).some(isAlive);
