/**
 * Attacks in the middle of honest work. Each must end as its row says, learn nothing, leave nothing, and cost the
 * programs around it not one byte of their outputs.
 */
import { spawnSync } from "node:child_process";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeProgram, type Supervisor, startSupervisor } from "../supervisor/harness.ts";
import { childrenOf, isBusyWithOthers, processesByName } from "../supervisor/host-view.ts";
import { modes, pythonOf } from "../supervisor/launch.ts";
import type { Line, Program } from "../supervisor/wire.ts";
import { type Attack, FIND_NOTHING, PRELUDE } from "./attack.ts";
import {
  endsOf,
  type Host,
  makeHonest,
  newSecret,
  openHost,
  outputsOf,
  RESIDUE_PROBE,
} from "./battlefield.ts";
import { files } from "./kinds/files.ts";
import { kernel } from "./kinds/kernel.ts";
import { memory } from "./kinds/memory.ts";
import { network } from "./kinds/network.ts";
import { output } from "./kinds/output.ts";
import { processes } from "./kinds/processes.ts";
import { sources } from "./kinds/sources.ts";
import { spying } from "./kinds/spying.ts";

const kinds: [string, Attack[]][] = [
  ["processes", processes],
  ["memory", memory],
  ["files", files],
  ["output", output],
  ["spying", spying],
  ["network", network],
  ["kernel", kernel],
  ["sources", sources],
];

const attacks = kinds.flatMap(([, rows]) => rows);

const ATTACK_LIMITS = { time_ms: 2000, memory_mib: 128 };

function sourceOf(attack: Attack): string {
  return attack.bare ? attack.source : PRELUDE + attack.source;
}

let host: Host;
beforeAll(async () => {
  host = await openHost();
});
afterAll(() => host.close());

describe.each(modes)("as %s", (mode) => {
  const hostSecret = newSecret();
  let supervisor: Supervisor;
  let untouched: (string | undefined)[];
  let zygotes: number[];

  beforeAll(async () => {
    const environment = { HOST_SECRET: hostSecret };
    supervisor = await startSupervisor({ mode, environment, arguments: ["--memory-mib", "1024"] });
    const { lines } = await supervisor.execute(supervisor.chunk([RESIDUE_PROBE]));
    untouched = outputsOf(lines, RESIDUE_PROBE.id);
    zygotes = childrenOf(supervisor.pid);
  }, 60_000);

  afterAll(() => supervisor.close());

  function programOf(attack: Attack): Program {
    const inputs = (attack.roles ?? ["alone"]).map(
      (role) => `${JSON.stringify(host.targets(supervisor, role))}\n`,
    );
    return makeProgram("attack", sourceOf(attack), inputs, { ...ATTACK_LIMITS, ...attack.limits });
  }

  describe.each(kinds)("%s", (_, rows) => {
    it.each(rows)("$name", async (attack) => {
      const [before, after] = [makeHonest("honest-before"), makeHonest("honest-after")];
      const programs = [before.program, programOf(attack), after.program];
      const chunk = supervisor.chunk(programs, { chunk_id: newSecret() });
      const begunAtMs = performance.now();
      const { lines, cut } = await supervisor.execute(chunk);
      const tookMs = performance.now() - begunAtMs;

      expect(cut).toBe(false);
      expect(lines.at(-1)).toMatchObject({ type: "summary", reason: "completed" });
      expectEnd(attack, lines);
      expect(tookMs).toBeLessThan(attack.withinMs ?? Number.POSITIVE_INFINITY);
      expect(outputsOf(lines, "honest-before")).toEqual(before.expected);
      expect(outputsOf(lines, "honest-after")).toEqual(after.expected);
      const others = [...before.secrets, ...after.secrets];
      const secrets = [supervisor.secret, hostSecret, host.secret, chunk.chunk_id, ...others];
      // Whoever knew the chunk's id could write lines that are believed.
      expect(new Set(lines.map((line) => line.chunk))).toEqual(new Set([chunk.chunk_id]));
      const ofAttack = lines.filter((line) => line.program === "attack");
      const said = JSON.stringify(ofAttack.map(({ chunk: _, ...line }) => line));
      expect(secrets.filter((secret) => said.includes(secret))).toEqual([]);

      const next = await supervisor.execute(supervisor.chunk([RESIDUE_PROBE]));
      expect(outputsOf(next.lines, RESIDUE_PROBE.id)).toEqual(untouched);
      await supervisor.becomeIdle();
      expect(childrenOf(supervisor.pid)).toEqual(zygotes);
      expect(processesByName("outliving")).toEqual([]);
    });
  });

  it("reached nothing of the host", () => expect(host.visits()).toBe(0));
});

function expectEnd(attack: Attack, lines: Line[]): void {
  const allowed = [attack.ends ?? "exited"].flat();
  const isExcused =
    allowed.some((end) => end === "time_limit" || end === "syntax_error") && isBusyWithOthers();
  if (isExcused && endsOf(lines, "attack")[0]?.status === "starved") return;
  if (allowed[0] === "syntax_error") {
    expect(lines.filter(({ type, program }) => type === "syntax_error" && program === "attack")).toHaveLength(
      1,
    );
    expect(endsOf(lines, "attack")).toEqual([]);
    return;
  }
  const ends = endsOf(lines, "attack");
  expect(ends).toHaveLength(attack.roles?.length ?? 1);
  for (const end of ends) {
    expect(allowed, JSON.stringify(end)).toContain(end.status);
    if (end.status !== "exited") continue;
    const prints = attack.prints ?? FIND_NOTHING;
    if (typeof prints === "string") expect(end.stdout, end.stderr_tail).toBe(prints);
    else expect(end.stdout, end.stderr_tail).toMatch(prints);
  }
}

describe("without a sandbox", () => {
  it("there are at least sixty attacks, of different names", () => {
    expect(attacks.length).toBeGreaterThanOrEqual(60);
    expect(new Set(attacks.map(({ name }) => name)).size).toBe(attacks.length);
  });

  it.each(attacks.filter((attack) => attack.worksOutside))("this finds something: $name", (attack) => {
    const targets = host.targets({ port: 1, pid: process.pid } as Supervisor, "alone");
    const run = spawnSync(pythonOf("root"), ["-c", sourceOf(attack)], {
      input: `${JSON.stringify(targets)}\n`,
      env: { ...process.env, HOST_SECRET: newSecret() },
      cwd: host.folder,
      timeout: 20_000,
    });
    expect(run.stderr.toString()).toBe("");
    expect(run.stdout.toString()).not.toBe(FIND_NOTHING);
  });
});
