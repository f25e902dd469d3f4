/** Structured lines and metrics of a Lambda, by AWS's own Powertools. Both are written to standard output at once. */
import { Logger } from "@aws-lambda-powertools/logger";
import { Metrics, MetricUnit } from "@aws-lambda-powertools/metrics";
import type { WriteLine } from "../log-lines.ts";

export const metricNamespace = "CodeRewards";

/** A metric's unit is in its name; counts have none. */
export type MetricValues = Readonly<Record<string, number>>;

export interface Telemetry {
  readonly writeLine: WriteLine;
  /** Writes numbers for CloudWatch (embedded metric format). `details` are kept beside them, and can be searched. */
  readonly writeMetrics: (values: MetricValues, details: Readonly<Record<string, string>>) => void;
}

type Context = Parameters<Logger["addContext"]>[0];

/**
 * `currentContext` is asked for each line: the line says which invocation it belongs to.
 *
 * The one dimension of metrics is `service` (`POWERTOOLS_SERVICE_NAME`), which tells deployments in one account apart.
 */
export function createTelemetry(currentContext: () => Context | undefined): Telemetry {
  const serviceName = process.env.POWERTOOLS_SERVICE_NAME || "code-rewards";
  const logger = new Logger({ serviceName });
  const metrics = new Metrics({ namespace: metricNamespace, serviceName });
  let known: Context | undefined;
  return {
    writeLine({ level, message, ...details }) {
      const context = currentContext();
      // Once per invocation: only the first context that it is given counts as a cold start.
      if (context !== undefined && context !== known) logger.addContext(context);
      known = context;
      logger[level](message, details);
    },
    writeMetrics(values, details) {
      for (const [name, value] of Object.entries(values)) metrics.addMetric(name, unitOf(name), value);
      for (const [name, value] of Object.entries(details)) metrics.addMetadata(name, value);
      metrics.publishStoredMetrics();
    },
  };
}

function unitOf(name: string) {
  return name.endsWith("Ms") ? MetricUnit.Milliseconds : MetricUnit.Count;
}
