/** What all leases of one container share. */
import { type ContainerCreations, createContainerCreations } from "./container-creations.ts";
import type { CreationContext } from "./creation.ts";
import type { HoldContext } from "./held-lease.ts";
import type { PoolEvent } from "./lease-source.ts";
import { createPassingOn, type PassOn } from "./passing-on.ts";
import { createPoolReader, type PoolReader } from "./pool-reader.ts";
import { createSigns, type Signs } from "./signs.ts";
import { createWaitingLine, type WaitingLine } from "./waiting-line.ts";

export type PoolContext = CreationContext & HoldContext;

export interface LeaseContainer {
  readonly ctx: PoolContext;
  readonly report: (event: PoolEvent) => void;
  readonly pool: PoolReader;
  readonly line: WaitingLine;
  readonly signs: Signs;
  readonly passOn: PassOn;
  readonly creations: ContainerCreations;
  /** Slots that this container gave back for anybody to take, the latest last. */
  readonly recentSlots: { readonly slot: number; readonly sinceMs: number }[];
}

export function createLeaseContainer(ctx: PoolContext, report: (event: PoolEvent) => void): LeaseContainer {
  const pool = createPoolReader(ctx);
  const line = createWaitingLine();
  const signs = createSigns(ctx, report);
  const passOn = createPassingOn({ ctx, report, pool, line, signs });
  const creations = createContainerCreations(ctx, report, passOn);
  return { ctx, report, pool, line, signs, passOn, creations, recentSlots: [] };
}
