/** Sandboxes can be made and have a Python wherever the virtual environment lies that the server was started in. */
import { execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { Sandbox } from "e2b";
import { afterEach, expect, it } from "vitest";
import { startE2bServer } from "../../functions/local/e2b/server.ts";

const made: string[] = [];
const pathBefore = process.env.PATH;

afterEach(() => {
  process.env.PATH = pathBefore;
  for (const folder of made.splice(0)) rmSync(folder, { recursive: true });
});

function makeEnvironment(parent: string): string {
  const folder = mkdtempSync(join(parent, "code-rewards-venv-"));
  made.push(folder);
  chmodSync(folder, 0o755);
  execFileSync("python3", ["-m", "venv", "--without-pip", join(folder, "venv")]);
  return join(folder, "venv");
}

it.each([
  ["in the folder for temporary files", tmpdir()],
  ["in a home", homedir()],
])("a virtual environment %s", async (_where, parent) => {
  const environment = makeEnvironment(parent);
  process.env.PATH = `${environment}/bin:${pathBefore}`;
  const server = await startE2bServer({ apiKey: "e2b_test", plan: "hobby", log: () => {} });
  try {
    const { apiUrl, sandboxUrl } = server;
    const sandbox = await Sandbox.create({ apiKey: "e2b_test", apiUrl, sandboxUrl });
    const { stdout } = await sandbox.commands.run("python3 --version");
    expect(stdout).toBe(execFileSync("python3", ["--version"]).toString());
    const { stdout: folders } = await sandbox.commands.run("touch /tmp/mine && stat -c %a /tmp");
    expect(folders).toBe("1777\n");
  } finally {
    await server.close();
  }
});
