/** Proving isolation before the first program, and refusing to run where it can't be had. */
import { spawnSync } from "node:child_process";
import { readdirSync, rmSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { makeProgram } from "./harness.ts";
import { processesByCommandLine } from "./host-view.ts";
import {
  environmentOf,
  installSources,
  launchSupervisor,
  type Mode,
  modes,
  pythonOf,
  userOf,
} from "./launch.ts";
import { openChunk, readHealth } from "./wire.ts";

/** Forbids `unshare` by a filter of system calls, as container runtimes do, and becomes the command after it. */
const FORBIDDING_FILTER = `
import ctypes, os, platform, struct, sys
number = {"x86_64": 272, "aarch64": 97}[platform.machine()]
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7FFF0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *step) for step in steps))
libc = ctypes.CDLL(None)
libc.prctl(38, 1, 0, 0, 0)
libc.prctl(22, 2, struct.pack("@HP", len(steps), ctypes.addressof(code)), 0, 0)
os.execvp(sys.argv[1], sys.argv[1:])
`;

/** Worlds in which no program can be isolated. */
const poorWorlds: [string, Mode[], string[]][] = [
  [
    "no user namespace may be made",
    ["rootless"],
    [
      "unshare",
      "--user",
      "--map-root-user",
      "sh",
      "-c",
      'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"',
      "sh",
    ],
  ],
  ["a filter forbids new namespaces", ["root", "rootless"], [pythonOf("rootless"), "-c", FORBIDDING_FILTER]],
];

const refusals = poorWorlds.flatMap(([world, among, wrapper]) =>
  modes.filter((mode) => among.includes(mode)).map((mode) => ({ world, mode, wrapper })),
);

function runPreflight(mode: Mode, wrapper: string[] = []) {
  const { folder, main, scratch } = installSources(mode);
  const [command = "", ...rest] = [...wrapper, pythonOf(mode), main, "--preflight"];
  const env = environmentOf(scratch);
  const run = spawnSync(command, rest, { cwd: scratch, env, timeout: 60_000, ...userOf(mode) });
  const left = { files: readdirSync(scratch), processes: processesByCommandLine(folder) };
  rmSync(folder, { recursive: true });
  expect(left).toEqual({ files: [], processes: [] });
  return { status: run.status, report: JSON.parse(run.stdout.toString()), complaints: run.stderr.toString() };
}

describe.each(modes)("as %s", (mode) => {
  it("proves at least thirty properties and leaves nothing", () => {
    const { status, report, complaints } = runPreflight(mode);
    expect(complaints).toBe("");
    expect(report).toMatchObject({ ok: true, mode, failed: [] });
    expect(Object.keys(report.properties).length).toBeGreaterThanOrEqual(30);
    expect(Object.values(report.properties).every((detail) => typeof detail === "string")).toBe(true);
    expect(status).toBe(0);
  }, 60_000);
});

/** Where it competes on other terms than most, which is no reason to refuse. */
const priorities = [
  ["nice", "-n", "10"],
  ["nice", "-n", "19"],
  ...(modes.includes("root") ? [["nice", "-n", "-5"]] : []),
];

describe.each(modes)("as %s", (mode) => {
  // Only root may start something above others.
  it.each(priorities.filter((wrapper) => mode === "root" || !wrapper.includes("-5")))(
    "under %s %s %s it proves the same",
    (...wrapper) => {
      const { status, report } = runPreflight(mode, wrapper);
      expect(report).toMatchObject({ ok: true, failed: [] });
      expect(status).toBe(0);
    },
  );
});

describe.each(refusals)("as $mode, where $world", ({ mode, wrapper }) => {
  const WHY = {
    property: expect.stringMatching(/./),
    detail: expect.stringMatching(/./),
    remedy: expect.stringMatching(/./),
  };

  it("the preflight fails and says why", () => {
    const { status, report } = runPreflight(mode, wrapper);
    expect(report).toMatchObject({ ok: false, failed: expect.arrayContaining([WHY]) });
    expect(status).toBe(1);
  }, 60_000);

  it("the supervisor says so and runs nothing", async () => {
    const { endpoint, health, stop } = await launchSupervisor({ mode, wrapper });
    expect(health).toMatchObject({
      status: 503,
      body: { state: "refused", failed: expect.arrayContaining([WHY]) },
    });
    const programs = [makeProgram("p", "print(1)")];
    const chunk = { fencing_token: 1, chunk_id: "c", deadline_ms: 5000, programs };
    const answer = await openChunk(endpoint, chunk).answer;
    expect(answer).toMatchObject({ status: 503, body: { code: "not_ready" }, lines: [] });
    expect(await readHealth(endpoint)).toMatchObject({ status: 503, body: { state: "refused" } });
    await stop("SIGTERM");
  }, 60_000);
});
