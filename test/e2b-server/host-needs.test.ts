import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const SERVE_FILE = fileURLToPath(new URL("./serve.ts", import.meta.url));

/** Starts a server on a host made worse by `spoil`, a shell command that root of a user namespace runs first. */
function startOn(spoil: string) {
  const script = `${spoil} && exec "$0" --import tsx "$1" e2b_test`;
  const command = [
    "-U",
    "-r",
    "-m",
    "-p",
    "-f",
    "--mount-proc",
    "sh",
    "-c",
    script,
    process.execPath,
    SERVE_FILE,
  ];
  return spawnSync("unshare", command, { encoding: "utf8", timeout: 20_000, input: "" });
}

describe("a host that can't isolate", () => {
  it.each([
    ["user namespaces are used up", "echo 0 > /proc/sys/user/max_user_namespaces", /unshare: No space left/],
    [
      "parts of /proc are covered",
      "mount -t tmpfs none /proc/irq",
      /mount proc on \S+: Operation not permitted/,
    ],
    ["there is no python3", "PATH=/nowhere", /python3 did not start/],
  ])("is refused at the start, and the remedy told: %s", (_what, spoil, reason) => {
    const { status, stdout, stderr } = startOn(spoil);
    expect(stdout).toBe("");
    expect(status).not.toBe(0);
    expect(stderr).toMatch(/Sandboxes can't be made on this host/);
    expect(stderr).toMatch(reason);
    expect(stderr).toMatch(/sysctl user.max_user_namespaces above 0/);
  });

  it("is told from one that can", () => {
    const { status, stdout } = startOn("true");
    expect(JSON.parse(stdout)).toMatchObject({ apiUrl: expect.any(String), sandboxUrl: expect.any(String) });
    expect(status).toBe(0);
  });
});
