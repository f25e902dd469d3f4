import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { readSupervisorFiles } from "../../functions/adapters/supervisor-files.ts";

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

/** A copy of the supervisor's own account of its version, beside other files. */
function newFolder(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), "code-rewards-test-"));
  folders.push(folder);
  const own = readSupervisorFiles().files.find(({ name }) => name === "version.py");
  const all = { ...files, "version.py": own?.content ?? "" };
  for (const [name, content] of Object.entries(all)) writeFileSync(join(folder, name), content);
  return folder;
}

function versionByPython(folder: string): string {
  const program = "import version; print(version.supervisor_version())";
  return execFileSync("python3", ["-B", "-c", program], { cwd: folder, encoding: "utf8" }).trim();
}

it("says the version that the supervisor itself says", () => {
  const own = readSupervisorFiles();
  expect(own.version).toBe(versionByPython("functions/supervisor"));
  expect(own.version).toMatch(/^[0-9a-f]{16}$/);
  expect(own.version.startsWith(own.shortVersion)).toBe(true);
  expect(Buffer.byteLength(own.shortVersion)).toBe(12);
});

it.each<{ what: string; files: Record<string, string> }>([
  { what: "other files", files: { "main.py": "1", "notes.md": "not sent", "a.pyc": "\0" } },
  { what: "names in another order than the folder's", files: { "main.py": "", "Z.py": "z", "_a.py": "a" } },
  { what: "text beyond ASCII, and line ends of another system", files: { "main.py": "# é ∑ 💡\r\n" } },
])("says it of a folder with $what, too", ({ files }) => {
  const folder = newFolder(files);
  const read = readSupervisorFiles(folder);
  expect(read.version).toBe(versionByPython(folder));
  expect(read.files.map(({ name }) => name)).not.toContain("notes.md");
  expect(read.version).not.toBe(readSupervisorFiles(newFolder({ "main.py": "2" })).version);
});

it.each([{ folder: "/no/such/folder" }, { folder: tmpdir() }])(
  "says that there is no supervisor in $folder",
  ({ folder }) => {
    expect(() => readSupervisorFiles(folder)).toThrow(
      expect.objectContaining({ code: "misconfigured", message: expect.stringContaining(folder) }),
    );
  },
);
