/** Choices that a seed makes. */
import { draw } from "../faults/proxy/rules.ts";

export interface Random {
  /** In [0, 1). */
  next(): number;
  /** A whole number from `low` to `high`, both included. */
  integer(low: number, high: number): number;
  pick<Value>(values: readonly Value[]): Value;
  /** By weights, which need not add up to anything. */
  pickWeighted<Value>(values: readonly (readonly [weight: number, value: Value])[]): Value;
  chance(probability: number): boolean;
}

export function createRandom(seed: number | string): Random {
  let count = 0;
  const next = () => {
    count += 1;
    return draw(`${seed} ${count}`);
  };
  return {
    next,
    integer: (low, high) => low + Math.floor(next() * (high - low + 1)),
    chance: (probability) => next() < probability,
    pick(values) {
      const value = values[Math.floor(next() * values.length)];
      if (value === undefined) throw new Error("there is nothing to pick from");
      return value;
    },
    pickWeighted(values) {
      let left = next() * values.reduce((sum, [weight]) => sum + weight, 0);
      for (const [weight, value] of values) {
        left -= weight;
        if (left < 0) return value;
      }
      throw new Error("there is nothing to pick from");
    },
  };
}
