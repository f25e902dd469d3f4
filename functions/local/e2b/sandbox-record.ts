import type { SandboxRequest } from "./sandbox-request.ts";

/** A sandbox as the control plane knows it. The registry changes `state` and the times. */
export interface SandboxRecord {
  readonly id: string;
  readonly request: SandboxRequest;
  readonly cpus: readonly number[];
  readonly accessToken: string;
  /** Null where anybody may reach its ports. */
  readonly trafficToken: string | null;
  state: "running" | "paused";
  startedAtMs: number;
  endAtMs: number;
}

/** The inner service's version whose behaviour is kept. Clients choose by it how they talk. */
export const ENVD_VERSION = "0.6.13";
const CLIENT_ID = "local";
const MEMORY_MB = 512;
const DISK_MB = 512;

/** Answer to a creation or a connection. */
export function toHandle(record: SandboxRecord) {
  return {
    sandboxID: record.id,
    templateID: record.request.templateId,
    clientID: CLIENT_ID,
    envdVersion: ENVD_VERSION,
    envdAccessToken: record.accessToken,
    trafficAccessToken: record.trafficToken,
    domain: null,
  };
}

/** A line of a listing. */
export function toListed(record: SandboxRecord) {
  return {
    sandboxID: record.id,
    templateID: record.request.templateId,
    clientID: CLIENT_ID,
    startedAt: new Date(record.startedAtMs).toISOString(),
    endAt: new Date(record.endAtMs).toISOString(),
    state: record.state,
    cpuCount: record.cpus.length,
    memoryMB: MEMORY_MB,
    diskSizeMB: DISK_MB,
    envdVersion: ENVD_VERSION,
    metadata: record.request.metadata,
  };
}

/** All that is told of one sandbox. */
export function toDetail(record: SandboxRecord) {
  return {
    ...toListed(record),
    envdAccessToken: record.accessToken,
    allowInternetAccess: record.request.allowInternetAccess,
    network: record.request.network,
    lifecycle: { onTimeout: record.request.onTimeout, autoResume: false },
    domain: null,
  };
}

export const DISK_MIB_OF_SANDBOX = DISK_MB;
