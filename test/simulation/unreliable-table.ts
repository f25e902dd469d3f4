/** A table whose answers get lost, whose writes arrive late, and that doesn't answer at all now and then. */
import type { Scalar, Table, UpdateExpression, UpdateOutcome } from "../../functions/pool/ports.ts";
import { Fault } from "../../functions/rewards/faults.ts";
import type { SimulatedTime } from "./simulated-time.ts";
import type { Watch } from "./watch.ts";
import type { Weather } from "./weather.ts";

/** The client's own retries, over the table as it is. */
export function createUnreliableTable(
  table: Table,
  world: {
    readonly time: SimulatedTime;
    readonly random: () => number;
    readonly watch: Watch;
    readonly weather: () => Weather;
  },
): Table {
  const { time, random, watch, weather } = world;

  async function reading<T>(read: () => Promise<T>): Promise<T> {
    if (random() < weather().tableFault) {
      watch.counts.tableFaults += 1;
      await time.sleep(random() * 3_000);
      throw new Fault("store_unavailable", "no answer");
    }
    return read();
  }

  /** The first attempt gets no answer: applied before the second one, after it, or never. */
  async function repeated(write: () => Promise<UpdateOutcome>): Promise<UpdateOutcome> {
    watch.counts.lostAnswers += 1;
    const luck = random();
    if (luck < 0.6) await write();
    else if (luck < 0.8) {
      watch.counts.lateWrites += 1;
      time.after(300 + random() * 4_000, () => void write().catch(() => {}));
    }
    await time.sleep(random() * 300);
    const second = await write();
    return second.kind === "refused" ? { ...second, retried: true } : second;
  }

  return {
    get: (key) => reading(() => table.get(key)),
    query: (pk, prefix, from) => reading(() => table.query(pk, prefix, from)),
    async update(
      key: Parameters<Table["update"]>[0],
      expression: UpdateExpression,
      values: Readonly<Record<string, Scalar>>,
    ) {
      const write = () => table.update(key, expression, values);
      const odds = weather();
      const luck = random();
      if (luck < odds.lostAnswer) return repeated(write);
      if (luck < odds.lostAnswer + odds.tableFault) {
        watch.counts.tableFaults += 1;
        if (random() < 0.5) await write();
        await time.sleep(random() * 3_000);
        throw new Fault("store_unavailable", "no answer");
      }
      return write();
    },
  };
}
