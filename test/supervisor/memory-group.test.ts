/** Control groups for memory that come to nothing: the host is left as it was. */
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { pythonOf } from "./launch.ts";

const folder = fileURLToPath(new URL("../../functions/supervisor", import.meta.url));

it("a group that takes no limit leaves no descriptor open, and no folder", () => {
  const script = `
import json, os, sys
sys.path.insert(0, ${JSON.stringify(folder)})
import cgroups
root, _ = cgroups._memory_root()
look = lambda: [sorted(os.listdir("/proc/self/fd")), root and [name for name in os.listdir(root) if str(os.getpid()) in name]]
before = look()
cgroups.MemoryGroup.set_limit = lambda *_: False
print(json.dumps({"group": cgroups.make_memory_group("x"), "before": before, "after": look()}))`;
  const said = execFileSync(pythonOf("root"), ["-B", "-c", script], { encoding: "utf8" });
  const { group, before, after } = JSON.parse(said);
  expect(group).toBeNull();
  expect(after).toEqual(before);
});
