/** Deals CPUs out so that sandboxes share them evenly: each gets the ones that the fewest others hold. */
export interface CpuShares {
  /** The CPUs of a new sandbox, `cpuCount` of them or all there are. */
  take(cpuCount: number): readonly number[];
  giveBack(cpus: readonly number[]): void;
}

export function createCpuShares(cpus: readonly number[]): CpuShares {
  const holders = new Map(cpus.map((cpu) => [cpu, 0]));
  const change = (cpu: number, by: number) => holders.set(cpu, (holders.get(cpu) ?? 0) + by);
  return {
    take(cpuCount) {
      const leastHeld = [...holders].sort((a, b) => a[1] - b[1] || a[0] - b[0]);
      const taken = leastHeld.slice(0, Math.max(1, cpuCount)).map(([cpu]) => cpu);
      for (const cpu of taken) change(cpu, 1);
      return taken;
    },
    giveBack(taken) {
      for (const cpu of taken) change(cpu, -1);
    },
  };
}
