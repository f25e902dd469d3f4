/**
 * What grading costs, by list prices as of November 2026, in dollars.
 *
 *   cost = worker seconds × (vCPUs × vCPU price + GiB × GiB price)
 *        + handler seconds × GB × GB-second price + requests × request price
 *        + table's write units × their price + read units × theirs
 */
import { defaultShape, workersCostUsd } from "../../functions/pool/cost.ts";

/** Lambda on arm64 in us-east-1: https://aws.amazon.com/lambda/pricing/ */
const lambda = { usdPerGbSecond: 0.0000133334, usdPerRequest: 0.2e-6, gb: 1_769 / 1_024 };
/** DynamoDB on demand, standard table class, in us-east-1: https://aws.amazon.com/dynamodb/pricing/on-demand/ */
const dynamoDb = { usdPerWriteUnit: 0.625e-6, usdPerReadUnit: 0.125e-6 };

/** What was used. */
export interface Used {
  readonly workerSeconds: number;
  readonly lambdaSeconds: number;
  readonly lambdaRequests: number;
  readonly writeUnits: number;
  readonly readUnits: number;
}

export interface Cost {
  readonly workersUsd: number;
  readonly lambdaUsd: number;
  readonly tableUsd: number;
  readonly totalUsd: number;
}

/** E2B bills a sandbox's vCPUs and memory by the second: https://e2b.dev/docs/faq/calculate-sandbox-price */
export function costOf(used: Used): Cost {
  const workersUsd = workersCostUsd(used.workerSeconds, defaultShape);
  const lambdaUsd =
    used.lambdaSeconds * lambda.gb * lambda.usdPerGbSecond + used.lambdaRequests * lambda.usdPerRequest;
  const tableUsd = used.writeUnits * dynamoDb.usdPerWriteUnit + used.readUnits * dynamoDb.usdPerReadUnit;
  return { workersUsd, lambdaUsd, tableUsd, totalUsd: workersUsd + lambdaUsd + tableUsd };
}
