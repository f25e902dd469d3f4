/** What a job may cost, said before it begins. Estimates, from list prices: the bill is AWS's. */
import { workersCostUsd } from "../../../functions/pool/cost.ts";

/** Dollars an hour in us-east-1, on demand; other regions differ by some percent. */
const onDemandUsd: Readonly<Record<string, number>> = {
  "g4dn.xlarge": 0.526,
  "g4dn.2xlarge": 0.752,
  "g4dn.12xlarge": 3.912,
  "g5.xlarge": 1.006,
  "g5.2xlarge": 1.212,
  "g5.4xlarge": 1.624,
  "g5.12xlarge": 5.672,
  "g5.48xlarge": 16.288,
  "g6.xlarge": 0.805,
  "g6.2xlarge": 0.978,
  "g6.4xlarge": 1.323,
  "g6.12xlarge": 4.602,
  "g6.48xlarge": 13.35,
  "g6e.xlarge": 1.861,
  "g6e.2xlarge": 2.242,
  "g6e.4xlarge": 3.004,
  "g6e.12xlarge": 10.493,
  "g6e.48xlarge": 30.131,
};
const gp3UsdPerGibMonth = 0.08;
const hoursPerMonth = 730;

export interface MachinePlan {
  readonly instanceType: string;
  readonly spot: boolean;
  readonly diskGib: number;
  readonly maxHours: number;
}

/** `spotUsd` is what a spot machine costs an hour now, undefined when AWS did not say. */
export function describeCost(plan: MachinePlan, workers: number, spotUsd?: number): string[] {
  const machineUsd = plan.spot ? spotUsd : onDemandUsd[plan.instanceType];
  const diskUsd = (plan.diskGib * gp3UsdPerGibMonth) / hoursPerMonth;
  const workersUsd = workersCostUsd(3_600) * workers;
  const kind = plan.spot ? "spot" : "on demand";
  if (machineUsd === undefined) {
    return [
      `a ${plan.instanceType} (${kind}): AWS's price list says what it costs an hour; it lives ${plan.maxHours} h at most`,
      `its disk of ${plan.diskGib} GiB ${dollars(diskUsd)} an hour, ${workers} sandboxes ${dollars(workersUsd)} an hour`,
    ];
  }
  const totalUsd = machineUsd + diskUsd + workersUsd;
  return [
    `a ${plan.instanceType} (${kind}) ${dollars(machineUsd)} an hour, its disk of ${plan.diskGib} GiB ${dollars(diskUsd)}, ` +
      `${workers} sandboxes ${dollars(workersUsd)}`,
    `about ${dollars(totalUsd)} an hour, and ${dollars(totalUsd * plan.maxHours)} at most: the machine ends after ${plan.maxHours} h`,
  ];
}

function dollars(usd: number): string {
  return `$${usd < 0.1 ? usd.toFixed(3) : usd.toFixed(2)}`;
}
