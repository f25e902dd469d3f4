/** Why each clause on leasing a worker is there. */
import { acquireExpression, acquireSlot } from "../../functions/pool/slots/acquire.ts";
import { extendExpression, extendLease } from "../../functions/pool/slots/extend.ts";
import { handOverExpression, handOverSlot } from "../../functions/pool/slots/hand-over.ts";
import {
  releaseDraining,
  releaseDrainingExpression,
  releaseKept,
  releaseKeptExpression,
  releaseReady,
  releaseReadyExpression,
} from "../../functions/pool/slots/release.ts";
import {
  revokeExpression,
  revokeLease,
  takeOverExpression,
  takeOverSlot,
} from "../../functions/pool/slots/take-over.ts";
import { type ClauseScene, longAfterMs, longDraining, ofVersion2, takenAgain } from "./clause-scene.ts";
import { anna, ben, leased, readied, startMs } from "./test-pool.ts";

const fence = "#fence = :fence";
const seenFence = "#fence = :seenFence";
const isLeased = "#state = :leased";
const outlives = "#ttlAtMs > :neededUntilMs";
const notDue = "#maxAtMs > :neededUntilMs";
const ourVersion = "#supervisorVersion = :version";
const keptForBen = { batchTag: ben.batchTag, untilMs: startMs + 700 };
const leaseIsOver = "#leaseUntilMs < :expiredBeforeMs";

export const leaseScenes: readonly ClauseScene[] = [
  [
    acquireExpression,
    "#state = :ready",
    "two holders of one worker",
    async (handler) => {
      await leased(handler, 0);
      return (writer) => acquireSlot(writer, 0, ben);
    },
  ],
  [
    acquireExpression,
    outlives,
    "a worker whose sandbox dies in the middle",
    async (handler) => {
      await readied(handler, 0, { ttlMs: 100_000 });
      return (writer) => acquireSlot(writer, 0, ben);
    },
  ],
  [
    acquireExpression,
    notDue,
    "a worker at the end of the plan's life",
    async (handler) => {
      await readied(handler, 0, { lifeMs: 100_000 });
      return (writer) => acquireSlot(writer, 0, ben);
    },
  ],
  [
    acquireExpression,
    ourVersion,
    "a supervisor that speaks otherwise",
    async (handler) => {
      await readied(handler, 0);
      return (writer) => acquireSlot(ofVersion2(writer), 0, ben);
    },
  ],
  [
    takeOverExpression,
    seenFence,
    "a decision on a row that has moved since",
    async (handler) => {
      const stale = await takenAgain(handler);
      handler.at(longAfterMs);
      return (writer) => takeOverSlot(writer, stale, ben);
    },
  ],
  [
    takeOverExpression,
    isLeased,
    "a broken worker, given up by its holder",
    async (handler) => {
      const stale = await longDraining(handler);
      return (writer) => takeOverSlot(writer, stale, ben);
    },
  ],
  [
    takeOverExpression,
    leaseIsOver,
    "a worker of a holder that is alive",
    async (handler) => {
      const lease = await leased(handler, 0);
      return (writer) => takeOverSlot(writer, lease, ben);
    },
  ],
  [
    takeOverExpression,
    outlives,
    "a sandbox that dies in the middle",
    async (handler) => {
      const lease = await leased(handler, 0, anna, { ttlMs: 300_000 });
      handler.at(longAfterMs);
      return (writer) => takeOverSlot(writer, lease, ben);
    },
  ],
  [
    takeOverExpression,
    notDue,
    "a worker at the end of the plan's life",
    async (handler) => {
      const lease = await leased(handler, 0, anna, { lifeMs: 300_000 });
      handler.at(longAfterMs);
      return (writer) => takeOverSlot(writer, lease, ben);
    },
  ],
  [
    takeOverExpression,
    ourVersion,
    "a supervisor that speaks otherwise",
    async (handler) => {
      const lease = await leased(handler, 0);
      handler.at(longAfterMs);
      return (writer) => takeOverSlot(ofVersion2(writer), lease, ben);
    },
  ],
  [
    handOverExpression,
    fence,
    "a worker handed over under its new holder",
    async (handler) => {
      const stale = await takenAgain(handler);
      return (writer) => handOverSlot(writer, stale, ben);
    },
  ],
  [
    handOverExpression,
    isLeased,
    "a broken worker, given up before, that is handed over",
    async (handler) => {
      const lease = await longDraining(handler);
      return (writer) => handOverSlot(writer, lease, ben);
    },
  ],
  [
    handOverExpression,
    outlives,
    "a sandbox that dies in the middle",
    async (handler) => {
      const lease = await leased(handler, 0, anna, { ttlMs: 300_000 });
      handler.at(longAfterMs);
      return (writer) => handOverSlot(writer, lease, ben);
    },
  ],
  [
    handOverExpression,
    notDue,
    "a worker at the end of the plan's life",
    async (handler) => {
      const lease = await leased(handler, 0, anna, { lifeMs: 300_000 });
      handler.at(longAfterMs);
      return (writer) => handOverSlot(writer, lease, ben);
    },
  ],
  [
    revokeExpression,
    seenFence,
    "another batch stopped in place of the cancelled one",
    async (handler) => {
      const stale = await takenAgain(handler);
      return (writer) => revokeLease(writer, stale, ben);
    },
  ],
  [
    revokeExpression,
    isLeased,
    "a free worker changed by a cancellation that came late",
    async (handler) => {
      const lease = await leased(handler, 0);
      await releaseReady(handler, lease);
      return (writer) => revokeLease(writer, lease, ben);
    },
  ],
  [
    extendExpression,
    fence,
    "a holder that believes in a lease that is another's",
    async (handler) => {
      const stale = await takenAgain(handler);
      handler.at(20_000);
      return (writer) => extendLease(writer, stale);
    },
  ],
  [
    extendExpression,
    isLeased,
    "a late extension that revives a lease given back",
    async (handler) => {
      const lease = await leased(handler, 0);
      await releaseReady(handler, lease);
      return (writer) => extendLease(writer, lease);
    },
  ],
  [
    releaseReadyExpression,
    fence,
    "a worker freed under its new holder",
    async (handler) => {
      const stale = await takenAgain(handler);
      return (writer) => releaseReady(writer, stale);
    },
  ],
  [
    releaseReadyExpression,
    isLeased,
    "a broken worker that becomes free again",
    async (handler) => {
      const lease = await longDraining(handler);
      return (writer) => releaseReady(writer, lease);
    },
  ],
  [
    releaseKeptExpression,
    fence,
    "a worker kept for one while another holds it",
    async (handler) => {
      const stale = await takenAgain(handler);
      return (writer) => releaseKept(writer, stale, keptForBen);
    },
  ],
  [
    releaseKeptExpression,
    isLeased,
    "a broken worker that is kept for somebody",
    async (handler) => {
      const lease = await longDraining(handler);
      return (writer) => releaseKept(writer, lease, keptForBen);
    },
  ],
  [
    releaseDrainingExpression,
    fence,
    "a worker killed under its new holder",
    async (handler) => {
      const stale = await takenAgain(handler);
      return (writer) => releaseDraining(writer, stale);
    },
  ],
  [
    releaseDrainingExpression,
    isLeased,
    "a free worker killed by one that gave it back",
    async (handler) => {
      const lease = await leased(handler, 0);
      await releaseReady(handler, lease);
      return (writer) => releaseDraining(writer, lease);
    },
  ],
];
