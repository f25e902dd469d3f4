/** The supervisor's sources, of now or of another commit, in a folder of their own. */
import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const place = "functions/supervisor";

export interface Sources {
  readonly folder: string;
  remove(): void;
}

export function copySources(): Sources {
  const sources = makeFolder();
  cpSync(join(root, place), sources.folder, {
    recursive: true,
    filter: (path) => !path.includes("__pycache__"),
  });
  return sources;
}

/** Throws when there is no such commit. */
export function copySourcesAt(commit: string): Sources {
  const archive = execFileSync("git", ["archive", `${commit}:${place}`], {
    cwd: root,
    maxBuffer: 64 << 20,
  });
  const sources = makeFolder();
  execFileSync("tar", ["-x", "-C", sources.folder], { input: archive });
  return sources;
}

function makeFolder(): Sources {
  const folder = mkdtempSync(join(tmpdir(), "supervisor-bench-"));
  return { folder, remove: () => rmSync(folder, { recursive: true }) };
}
