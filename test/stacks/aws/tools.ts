/** Tools in Python: a stand-in for AWS, AWS's own command, a linter of scripts. Installed once, beside the tests. */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const folder = fileURLToPath(new URL(".", import.meta.url));
const environment = join(folder, ".venv");
/** Where the tools' commands are. */
export const toolsFolder = join(environment, "bin");

/** For a test's `beforeAll`; takes a minute once. */
export function ensureTools(): void {
  const wanted = readFileSync(join(folder, "requirements.txt"), "utf8");
  const mark = join(environment, "installed.txt");
  if (existsSync(mark) && readFileSync(mark, "utf8") === wanted) return;
  rmSync(environment, { recursive: true, force: true });
  execFileSync("python3", ["-m", "venv", environment]);
  const pip = ["install", "--quiet", "--disable-pip-version-check", "-r", join(folder, "requirements.txt")];
  execFileSync(join(toolsFolder, "pip"), pip, { stdio: "inherit" });
  writeFileSync(mark, wanted);
}
