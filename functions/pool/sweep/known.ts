/**
 * Which sandboxes the slots know.
 *
 * The provider is listed first, then the table is read: what the list shows was claimed before that, so the row that
 * claimed it is in what is read afterwards, or a later life of that slot is. The other order would take a worker that
 * was created between the two for an orphan, and kill it under its holder.
 */
import type { ListedSandbox } from "../ports.ts";
import type { SlotRow } from "../slot-row.ts";

/** A sandbox is known if the slot lives the life that it was created for, and has it, or may yet have it. */
export function isKnown(sandbox: ListedSandbox, row: SlotRow | undefined): boolean {
  if (row === undefined || row.generation !== sandbox.generation) return false;
  return row.sandboxId === sandbox.sandboxId || row.state === "creating" || row.state === "draining";
}

/** Sandboxes of the pool that no slot knows, or ever will. */
export function findOrphans(listed: readonly ListedSandbox[], slots: readonly SlotRow[]): ListedSandbox[] {
  const rows = new Map(slots.map((row) => [row.slot, row]));
  return listed.filter((sandbox) => !isKnown(sandbox, rows.get(sandbox.slot)));
}

/** Sandboxes of slots that are being drained and don't name them, which never come into service. */
export function findCondemned(listed: readonly ListedSandbox[], slots: readonly SlotRow[]): ListedSandbox[] {
  const draining = new Map(slots.flatMap((row) => (row.state === "draining" ? [[row.slot, row]] : [])));
  return listed.filter((sandbox) => {
    const row = draining.get(sandbox.slot);
    return isKnown(sandbox, row) && row?.sandboxId !== sandbox.sandboxId;
  });
}
