/** What workers cost, in dollars. The provider bills a sandbox's vCPUs and memory for as long as it exists. */

export interface WorkerRates {
  readonly usdPerVcpuHour: number;
  readonly usdPerGibHour: number;
}

export interface WorkerShape {
  readonly vcpus: number;
  readonly memoryMib: number;
}

/** E2B's list prices. */
export const listRates: WorkerRates = { usdPerVcpuHour: 0.0504, usdPerGibHour: 0.0162 };
/** E2B's default template. */
export const defaultShape: WorkerShape = { vcpus: 2, memoryMib: 512 };
/** What the supervisor keeps of a worker's memory for itself: `_OWN_MEMORY_MIB` of its main.py. */
export const workerReserveMib = 128;

/** Dollars for so much time of workers of that shape. */
export function workersCostUsd(
  workerSeconds: number,
  shape: WorkerShape = defaultShape,
  rates: WorkerRates = listRates,
): number {
  const usdPerHour = shape.vcpus * rates.usdPerVcpuHour + (shape.memoryMib / 1_024) * rates.usdPerGibHour;
  return (workerSeconds / 3_600) * usdPerHour;
}
