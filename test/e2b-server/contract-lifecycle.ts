import { randomUUID } from "node:crypto";
import { AuthenticationError, Sandbox, SandboxNotFoundError, TimeoutError } from "e2b";
import { describe, expect } from "vitest";
import type { Contract } from "./contract.ts";
import { eventually, withSandbox } from "./sandboxes.ts";

const NOBODY = "i0000000000000000000";

/** Creation, listing, ends, and pauses. */
export function describeLifecycle({ target, shared, fact }: Contract): void {
  describe("lifecycle", () => {
    fact("creation: the id, both tokens as asked, the metadata and the end are told", async () => {
      const metadata = { pool: randomUUID() };
      const options = { metadata, timeoutMs: 90_000, network: { allowPublicTraffic: false } };
      await withSandbox(target(), options, async (sandbox) => {
        expect(sandbox.sandboxId).toMatch(/^[a-z0-9]+$/);
        expect(sandbox.trafficAccessToken).toMatch(/^.{8,}/);
        const info = await sandbox.getInfo();
        expect(info).toMatchObject({ sandboxId: sandbox.sandboxId, metadata, state: "running" });
        expect(info.endAt.getTime() - info.startedAt.getTime()).toBeGreaterThan(85_000);
        expect(info.endAt.getTime() - info.startedAt.getTime()).toBeLessThan(95_000);
      });
    });

    fact("a wrong API key is an AuthenticationError", async () => {
      const wrong = { ...target(), apiKey: `e2b_${"0".repeat(40)}` };
      await expect(Sandbox.create(wrong)).rejects.toThrow(AuthenticationError);
    });

    fact("an unknown sandbox: kill is false, all else is SandboxNotFoundError", async () => {
      expect(await Sandbox.kill(NOBODY, target())).toBe(false);
      await expect(Sandbox.getInfo(NOBODY, target())).rejects.toThrow(SandboxNotFoundError);
      await expect(Sandbox.setTimeout(NOBODY, 60_000, target())).rejects.toThrow(SandboxNotFoundError);
      await expect(Sandbox.connect(NOBODY, target())).rejects.toThrow(SandboxNotFoundError);
    });

    fact("list: metadata selects, signs of every kind in it included", async () => {
      const metadata = { "a key&": "x=1&y %25+/ü☃", pool: randomUUID() };
      await withSandbox(target(), { metadata }, async (sandbox) => {
        const found = await listIds(metadata);
        expect(found).toEqual([sandbox.sandboxId]);
        expect(await listIds({ ...metadata, pool: "another" })).toEqual([]);
      });
    });

    fact("list: pages end, and together they hold each sandbox once", async () => {
      const metadata = { pool: randomUUID() };
      await withSandbox(target(), { metadata }, async (one) => {
        await withSandbox(target(), { metadata }, async (other) => {
          const pages: string[][] = [];
          const paginator = Sandbox.list({ ...target(), query: { metadata }, limit: 1 });
          while (paginator.hasNext) pages.push((await paginator.nextItems()).map((item) => item.sandboxId));
          expect(pages.flat().sort()).toEqual([one.sandboxId, other.sandboxId].sort());
          expect(pages.every((page) => page.length <= 1)).toBe(true);
        });
      });
    });

    fact(
      "setTimeout moves the end both ways; connect only extends it, to 300 s where it isn't told",
      async () => {
        await withSandbox(target(), {}, async (sandbox) => {
          const leftMs = async () => (await sandbox.getInfo()).endAt.getTime() - Date.now();
          await sandbox.setTimeout(200_000);
          expect(await leftMs()).toBeGreaterThan(190_000);
          await Sandbox.connect(sandbox.sandboxId, { ...target(), timeoutMs: 30_000 });
          expect(await leftMs()).toBeGreaterThan(180_000);
          await sandbox.setTimeout(60_000);
          expect(await leftMs()).toBeLessThan(65_000);
          await Sandbox.connect(sandbox.sandboxId, target());
          expect(await leftMs()).toBeGreaterThan(280_000);
        });
      },
    );

    fact("a timeout kills, and the sandbox is then unknown", async () => {
      await withSandbox(target(), { timeoutMs: 1000 }, async ({ sandboxId }) => {
        const isGone = () =>
          Sandbox.getInfo(sandboxId, target()).then(
            () => false,
            (error) => error instanceof SandboxNotFoundError,
          );
        await eventually("the end of the sandbox", isGone, 15_000);
        expect(await Sandbox.kill(sandboxId, target())).toBe(false);
      });
    });

    fact(
      "after a kill: not running, not listed, a second kill is false, a command is a failure",
      async () => {
        const metadata = { pool: randomUUID() };
        await withSandbox(target(), { metadata }, async (sandbox) => {
          expect(await sandbox.isRunning()).toBe(true);
          expect(await sandbox.kill()).toBe(true);
          expect(await sandbox.isRunning()).toBe(false);
          expect(await listIds(metadata)).toEqual([]);
          expect(await Sandbox.kill(sandbox.sandboxId, target())).toBe(false);
          await expect(sandbox.commands.run("true")).rejects.toThrow(Error);
          await expect(sandbox.files.write("/tmp/late", "x")).rejects.toThrow(TimeoutError);
        });
      },
    );

    fact(
      "pause: true, then false; no way in; found by its state; connect resumes it where it was",
      async () => {
        const metadata = { pool: randomUUID() };
        await withSandbox(target(), { metadata }, async (sandbox) => {
          await sandbox.files.write("/tmp/kept", "kept");
          const ticks = "while :; do echo x >> /tmp/ticks; sleep 0.02; done";
          await (await sandbox.commands.run(ticks, { background: true, timeoutMs: 0 })).disconnect();
          expect(await sandbox.pause()).toBe(true);
          expect(await sandbox.pause()).toBe(false);
          expect((await sandbox.getInfo()).state).toBe("paused");
          expect(await listIds(metadata, ["running"])).toEqual([]);
          expect(await listIds(metadata, ["paused"])).toEqual([sandbox.sandboxId]);
          await expect(sandbox.setTimeout(60_000)).rejects.toThrow(SandboxNotFoundError);
          expect(await sandbox.isRunning()).toBe(false);
          const again = await Sandbox.connect(sandbox.sandboxId, { ...target(), timeoutMs: 60_000 });
          expect(await again.files.read("/tmp/kept")).toBe("kept");
          const countTicks = async () => (await again.files.read("/tmp/ticks")).length;
          const before = await countTicks();
          await eventually("the loop goes on", async () => (await countTicks()) > before);
        });
      },
      60_000,
    );

    fact("both tokens stand in a handle that is made without asking anybody", async () => {
      const stored = { ...target(), sandboxId: shared().sandboxId, envdVersion: "0.6.13" };
      const token = (shared() as unknown as { envdAccessToken: string }).envdAccessToken;
      const attached = new Sandbox({ ...stored, envdAccessToken: token });
      expect((await attached.commands.run("echo attached")).stdout).toBe("attached\n");
      const stranger = new Sandbox({ ...stored, envdAccessToken: "0".repeat(64) });
      await expect(stranger.commands.run("true")).rejects.toThrow(AuthenticationError);
      await expect(stranger.files.read("/etc/hostname")).rejects.toThrow(AuthenticationError);
    });
  });

  async function listIds(metadata: Record<string, string>, state?: ("running" | "paused")[]) {
    const query = state === undefined ? { metadata } : { metadata, state };
    const paginator = Sandbox.list({ ...target(), query });
    const ids: string[] = [];
    while (paginator.hasNext) ids.push(...(await paginator.nextItems()).map((item) => item.sandboxId));
    return ids;
  }
}
