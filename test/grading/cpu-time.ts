/**
 * CPU time of a call in microseconds: the best of `attempts`, or the first that is at or below `enoughUs`. Other work
 * on the machine and a cold compiler make a call dearer, never cheaper.
 */
export function measureCpuUs(call: () => unknown, enoughUs: number, attempts: number): number {
  let bestUs = Number.POSITIVE_INFINITY;
  for (let attempt = 0; attempt < attempts && bestUs > enoughUs; attempt += 1) {
    const before = process.cpuUsage();
    call();
    const spent = process.cpuUsage(before);
    bestUs = Math.min(bestUs, spent.user + spent.system);
  }
  return bestUs;
}
