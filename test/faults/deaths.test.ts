/** Sandboxes and supervisors die, or are not what they were, while they work. */
import { Sandbox, SandboxNotFoundError } from "e2b";
import { describe, expect, it } from "vitest";
import { readAccess } from "../../functions/adapters/worker-access.ts";
import { deriveWorkerSecret } from "../../functions/adapters/worker-secret.ts";
import { readSlots, removeWorkers, type SlotSeen, useFaultyStack } from "./fault-table.ts";
import { askForRewards, expectOutcome } from "./known-batch.ts";
import type { SeenRequest } from "./proxy/fault.ts";

/** What to do in the moment in which a worker has told of its first case. */
let atFirstCase: ((request: SeenRequest) => void) | null = null;
const behind = useFaultyStack({
  onAnswer(request) {
    if (request.url !== "/v1/execute" || !request.answer.includes('"started"')) return;
    const act = atFirstCase;
    atFirstCase = null;
    act?.(request);
  },
});

type FreeWorker = SlotSeen & { readonly sandboxId: string; readonly access: string };

/** The one worker that there is, which is free. */
async function onlyWorker(): Promise<FreeWorker> {
  expectOutcome(await askForRewards(behind().stack), "right");
  const ready = (await readSlots(behind())).filter(({ state }) => state === "ready");
  const latest = ready.sort((a, b) => b.lastUsedAtMs - a.lastUsedAtMs)[0];
  if (latest?.sandboxId === undefined || latest.access === undefined) throw new Error("no worker is free");
  await removeWorkers(behind(), latest.sandboxId);
  return latest as FreeWorker;
}

async function runIn(sandboxId: string, command: string): Promise<string> {
  const sandbox = await Sandbox.connect(sandboxId, { ...behind().direct, timeoutMs: 600_000 });
  const { stdout } = await sandbox.commands.run(command, { user: "root" });
  return stdout;
}

/** The pattern does not fit the command that looks for it. */
const killSupervisor = (sandboxId: string) =>
  runIn(sandboxId, "pids=$(grep -la 'main[.]py.*claimed' /proc/[0-9]*/cmdline | cut -d/ -f3); kill -9 $pids");

/** Grades while the act is done at the first case's start; `done` resolves with it. */
async function gradeWhile(act: (sandboxId: string) => Promise<unknown>) {
  const acted = new Promise<unknown>((resolve) => {
    atFirstCase = ({ sandboxId }) => resolve(act(sandboxId ?? ""));
  });
  const answer = await askForRewards(behind().stack, { lingers: true });
  await acted;
  return answer;
}

async function expectReplaced({ sandboxId }: { readonly sandboxId: string }): Promise<void> {
  const known = (await readSlots(behind())).map((row) => row.sandboxId);
  expect(known).not.toContain(sandboxId);
}

describe("in the middle of a chunk", () => {
  it("a sandbox that is killed costs a retry and no reward", async () => {
    const worker = await onlyWorker();
    const answer = await gradeWhile((sandboxId) => Sandbox.kill(sandboxId, behind().direct));
    expectOutcome(answer, "right");
    expect(answer.body.usage?.retries).toBeGreaterThan(0);
    await expectReplaced(worker);
  });

  it("a supervisor that is killed costs a retry and no reward, and its sandbox dies with it", async () => {
    const worker = await onlyWorker();
    expectOutcome(await gradeWhile(killSupervisor), "right");
    await expectReplaced(worker);
  });
});

describe("between two batches", () => {
  it("a sandbox that is killed costs a retry", async () => {
    const worker = await onlyWorker();
    await Sandbox.kill(worker.sandboxId, behind().direct);
    expectOutcome(await askForRewards(behind().stack), "right");
    await expectReplaced(worker);
  });

  it("a sandbox that is paused costs a retry, and is killed", async () => {
    const worker = await onlyWorker();
    await Sandbox.pause(worker.sandboxId, behind().direct);
    expectOutcome(await askForRewards(behind().stack), "right");
    await expectReplaced(worker);
    await expect(Sandbox.getInfo(worker.sandboxId, behind().direct)).rejects.toThrow(SandboxNotFoundError);
  });

  it("a supervisor that is killed costs a retry, and its sandbox dies with it", async () => {
    const worker = await onlyWorker();
    await killSupervisor(worker.sandboxId);
    expectOutcome(await askForRewards(behind().stack), "right");
    await expectReplaced(worker);
  });

  it("a supervisor that is started again, and has forgotten its token, is not used again", async () => {
    const worker = await onlyWorker();
    const { poolId } = readAccess(worker.access);
    const secret = deriveWorkerSecret(behind().direct.apiKey, poolId, worker);
    await killSupervisor(worker.sandboxId);
    const sandbox = await Sandbox.connect(worker.sandboxId, { ...behind().direct, timeoutMs: 600_000 });
    await sandbox.files.write("/opt/code-rewards/claimed", secret, { user: "root" });
    const start =
      "cd /opt/code-rewards && exec python3 -B main.py --host 0.0.0.0 --port 8713 --secret-file claimed";
    const again = await sandbox.commands.run(start, { background: true, timeoutMs: 0, user: "root" });
    const health = () =>
      fetch(`${behind().direct.sandboxUrl}/v1/health`, {
        headers: {
          authorization: `Bearer ${secret}`,
          "e2b-sandbox-id": worker.sandboxId,
          "e2b-sandbox-port": "8713",
          "e2b-traffic-access-token": readAccess(worker.access).trafficToken ?? "",
        },
      }).then(({ status }) => status);
    await expect.poll(health, { timeout: 15_000 }).toBe(200);
    behind().proxy.requests.length = 0;
    expectOutcome(await askForRewards(behind().stack), "right");
    const refusals = behind().proxy.requests.filter(({ answer }) => answer.includes('"restarted"'));
    expect(refusals).toHaveLength(1);
    await expectReplaced(worker);
    await again.disconnect();
  });
});
