/** Why each clause on creating and draining a worker is there. */
import { identityKey, nameExpression } from "../../functions/pool/identity.ts";
import { acquireSlot } from "../../functions/pool/slots/acquire.ts";
import {
  claimExpression,
  claimSlot,
  freeTakenClaim,
  freeTakenClaimExpression,
  unclaimExpression,
  unclaimSlot,
} from "../../functions/pool/slots/claim.ts";
import {
  abandonCreation,
  abandonExpression,
  drainExpression,
  drainSlot,
  expireExpression,
  expireSlot,
} from "../../functions/pool/slots/drain.ts";
import { emptyExpression, emptySlot } from "../../functions/pool/slots/empty.ts";
import { extendLease } from "../../functions/pool/slots/extend.ts";
import { admitCreation, admitCreationExpression } from "../../functions/pool/slots/pacing.ts";
import {
  publishLeasedExpression,
  publishReadyExpression,
  publishWorker,
} from "../../functions/pool/slots/publish.ts";
import { releaseDraining, releaseReady } from "../../functions/pool/slots/release.ts";
import { recordRenewal, renewExpression } from "../../functions/pool/slots/renew.ts";
import { shortenExpression, shortenLease } from "../../functions/pool/slots/shorten.ts";
import { type ClauseScene, claimedAgain, longAfterMs, longDraining, takenAgain } from "./clause-scene.ts";
import { anna, ben, claimed, leased, newWorker, present, readied } from "./test-pool.ts";

const fence = "#fence = :fence";
const seenFence = "#fence = :seenFence";
const leaseIsOver = "#leaseUntilMs < :expiredBeforeMs";

export const creationScenes: readonly ClauseScene[] = [
  [
    admitCreationExpression,
    "(attribute_not_exists(#nextCreateAtMs) OR #nextCreateAtMs <= :nowMs OR #nextCreateAtMs = :tooFarMs)",
    "two creations in one interval",
    async (handler) => {
      await admitCreation(handler);
      return admitCreation;
    },
  ],
  [
    nameExpression,
    "attribute_not_exists(#poolId)",
    "a second name for the pool",
    async (handler) => {
      await handler.table.update(identityKey, nameExpression, { ":poolId": "first" });
      return async ({ table }) => {
        const outcome = await table.update(identityKey, nameExpression, { ":poolId": "second" });
        return outcome.kind === "applied";
      };
    },
  ],
  [
    claimExpression,
    "(attribute_not_exists(#state) OR #state = :empty)",
    "a second sandbox for a slot",
    async (handler) => {
      await readied(handler, 0);
      return (writer) => claimSlot(writer, 0, ben.runTag);
    },
  ],
  [
    unclaimExpression,
    fence,
    "a slot freed under its new creator",
    async (handler) => {
      const stale = await claimedAgain(handler);
      return (writer) => unclaimSlot(writer, stale);
    },
  ],
  [
    unclaimExpression,
    "#state = :creating",
    "a slot freed with a worker in it",
    async (handler) => {
      const claim = await claimed(handler, 0);
      await publishWorker(handler, claim, newWorker(handler, 0), null);
      return (writer) => unclaimSlot(writer, claim);
    },
  ],
  [
    freeTakenClaimExpression,
    "#state = :draining",
    "a slot freed under the holder of its worker",
    async (handler) => {
      const claim = await claimed(handler, 0);
      await publishWorker(handler, claim, newWorker(handler, 0), null);
      present(await acquireSlot(handler, 0, ben));
      return (writer) => freeTakenClaim(writer, claim);
    },
  ],
  [
    freeTakenClaimExpression,
    "#fence = :fenceAfter",
    "a slot freed while a second one drains",
    async (handler) => {
      const claim = await claimed(handler, 0);
      const drain = present(await abandonCreation(handler, claim));
      handler.at(longAfterMs);
      present(await expireSlot(handler, drain));
      return (writer) => freeTakenClaim(writer, claim);
    },
  ],
  [
    freeTakenClaimExpression,
    "#generation = :generation",
    "a slot freed while a later worker is being killed",
    async (handler) => {
      const claim = await claimed(handler, 0);
      await unclaimSlot(handler, claim);
      const later = await claimed(handler, 0);
      const lease = present(await publishWorker(handler, later, newWorker(handler, 0), ben));
      present(await releaseDraining(handler, lease));
      return (writer) => freeTakenClaim(writer, claim);
    },
  ],
  ...(
    [
      [publishLeasedExpression, anna],
      [publishReadyExpression, null],
    ] as const
  ).flatMap(([expression, holder]): ClauseScene[] => [
    [
      expression,
      fence,
      "a late worker in another's claim",
      async (handler) => {
        const stale = await claimedAgain(handler);
        return (writer) => publishWorker(writer, stale, newWorker(writer, 9), holder);
      },
    ],
    [
      expression,
      "#state = :creating",
      "a worker in a slot that was given up",
      async (handler) => {
        const claim = await claimed(handler, 0);
        await unclaimSlot(handler, claim);
        return (writer) => publishWorker(writer, claim, newWorker(writer, 9), holder);
      },
    ],
  ]),
  [
    drainExpression,
    seenFence,
    "a decision on a row that has moved since",
    async (handler) => {
      const seen = await readied(handler, 0);
      await releaseReady(handler, present(await acquireSlot(handler, 0, ben)));
      return (writer) => drainSlot(writer, seen);
    },
  ],
  [
    drainExpression,
    "#state = :ready",
    "a worker killed under its holder",
    async (handler) => {
      const lease = await leased(handler, 0);
      return (writer) => drainSlot(writer, lease);
    },
  ],
  [
    abandonExpression,
    seenFence,
    "another's creation, begun since",
    async (handler) => {
      const stale = await claimedAgain(handler);
      return (writer) => abandonCreation(writer, stale);
    },
  ],
  [
    abandonExpression,
    "#state = :creating",
    "a worker killed that was published since",
    async (handler) => {
      const claim = await claimed(handler, 0);
      await publishWorker(handler, claim, newWorker(handler, 0), anna);
      return (writer) => abandonCreation(writer, claim);
    },
  ],
  [
    expireExpression,
    seenFence,
    "a decision on a row that has moved since",
    async (handler) => {
      const stale = await takenAgain(handler);
      handler.at(longAfterMs);
      return (writer) => expireSlot(writer, stale);
    },
  ],
  [
    expireExpression,
    "#state = :seenState",
    "a slot handled as what it is no more",
    async (handler) => {
      const stale = await longDraining(handler);
      return (writer) => expireSlot(writer, stale);
    },
  ],
  [
    expireExpression,
    leaseIsOver,
    "a worker killed under a holder that is alive",
    async (handler) => {
      const lease = await leased(handler, 0);
      return (writer) => expireSlot(writer, lease);
    },
  ],
  [
    shortenExpression,
    seenFence,
    "a lease of another brought back",
    async (handler) => {
      const stale = await takenAgain(handler);
      return (writer) => shortenLease(writer, stale);
    },
  ],
  [
    shortenExpression,
    "#leaseUntilMs = :seenUntilMs",
    "a lease that was extended brought back",
    async (handler) => {
      const lease = await leased(handler, 0);
      present(await extendLease(handler.at(20_000), lease));
      return (writer) => shortenLease(writer, lease);
    },
  ],
  [
    emptyExpression,
    fence,
    "a slot freed while another still kills",
    async (handler) => {
      const stale = await longDraining(handler);
      present(await expireSlot(handler, { ...stale, state: "draining" }));
      return (writer) => emptySlot(writer, stale);
    },
  ],
  [
    emptyExpression,
    "#state = :draining",
    "a slot freed with a worker in it",
    async (handler) => {
      const lease = await leased(handler, 0);
      return (writer) => emptySlot(writer, lease);
    },
  ],
  [
    renewExpression,
    "#sandboxId = :sandboxId",
    "a life that is another sandbox's",
    async (handler) => {
      await readied(handler, 0);
      return (writer) => recordRenewal(writer, 0, "the one before", 1_800_001_000_000);
    },
  ],
  [
    renewExpression,
    "#state IN (:ready, :leased)",
    "a life for a sandbox that is being killed",
    async (handler) => {
      const lease = await longDraining(handler);
      return (writer) => recordRenewal(writer, 0, present(lease.sandboxId), 1_800_001_000_000);
    },
  ],
];
