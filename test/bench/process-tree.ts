import { readdirSync, readFileSync } from "node:fs";

const ticksPerSecond = 100;

/** The processes below `pid`, itself included, as the kernel lists them now. */
export function listProcessTree(pid: number): number[] {
  const found: number[] = [];
  const waiting = [pid];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    try {
      for (const thread of readdirSync(`/proc/${next}/task`)) {
        const children = readFileSync(`/proc/${next}/task/${thread}/children`, "utf8");
        waiting.push(...children.split(" ").filter(Boolean).map(Number));
      }
      found.push(next);
    } catch {
      // it ended while we looked
    }
  }
  return found;
}

/** CPU seconds of a process tree, with those of the children that its processes have waited for. */
export function readTreeCpuSeconds(pid: number): number {
  let ticks = 0;
  for (const member of listProcessTree(pid)) {
    try {
      const stat = readFileSync(`/proc/${member}/stat`, "utf8");
      const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      for (const field of fields.slice(11, 15)) ticks += Number(field);
    } catch {
      // it ended while we looked
    }
  }
  return ticks / ticksPerSecond;
}
