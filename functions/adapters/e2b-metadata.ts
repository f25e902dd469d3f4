/** What a sandbox carries of ours: whose it is and which life of which slot. E2B's metadata is texts only. */
import type { SandboxMeta } from "../pool/ports.ts";

const service = "code-rewards";

export function writeMetadata({ poolId, slot, generation }: SandboxMeta): Record<string, string> {
  return { ...poolFilter(poolId), slot: String(slot), generation: String(generation) };
}

/** The metadata that every sandbox of a pool has, and no other. */
export function poolFilter(poolId: string): Record<string, string> {
  return { service, pool_id: poolId };
}

/**
 * What a listed sandbox's metadata says; null when it isn't the pool's, whatever the filter let through. A slot or
 * generation that can't be read is -1, which no slot has: such a sandbox is an orphan of the pool.
 */
export function readMetadata(metadata: Readonly<Record<string, string>>, poolId: string): SandboxMeta | null {
  const isOurs = Object.entries(poolFilter(poolId)).every(([key, value]) => metadata[key] === value);
  if (!isOurs) return null;
  return { poolId, slot: readCount(metadata.slot), generation: readCount(metadata.generation) };
}

/** Whether this is the metadata of exactly that life of that slot. */
export function isMetadataOf(
  metadata: Readonly<Record<string, string>>,
  { poolId, slot, generation }: SandboxMeta,
): boolean {
  const told = readMetadata(metadata, poolId);
  return told !== null && told.slot === slot && told.generation === generation;
}

function readCount(text: string | undefined): number {
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : -1;
}
