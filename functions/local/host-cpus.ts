import { readFileSync } from "node:fs";

/** The CPUs this process may use, by number. */
export function listHostCpus(): readonly number[] {
  const status = readFileSync("/proc/self/status", "utf8");
  const ranges = /^Cpus_allowed_list:\s*(\S+)$/m.exec(status)?.[1] ?? "0";
  return ranges.split(",").flatMap((range) => {
    const [first = 0, last = first] = range.split("-").map(Number);
    return Array.from({ length: last - first + 1 }, (_, i) => first + i);
  });
}

/**
 * The host's CPUs, dealt out to `workers`: together they promise no more than there is. With more workers than CPUs
 * each has one, and some share it.
 */
export function dealCpus(cpus: readonly number[], workers: number): readonly (readonly number[])[] {
  return Array.from({ length: workers }, (_, worker) => {
    const own = cpus.filter((_, i) => i % workers === worker);
    return own.length > 0 ? own : cpus.slice(worker % cpus.length, (worker % cpus.length) + 1);
  });
}
