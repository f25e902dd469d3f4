/** Tables that lose answers, forget clauses, or don't answer at all. */
import type { Table, UpdateExpression } from "../../functions/pool/ports.ts";
import { Fault } from "../../functions/rewards/faults.ts";

/**
 * Loses the answer of the first attempt at each chosen update, which was applied all the same, and repeats it as the
 * client does.
 */
export function losingAnswers(table: Table, isLost: (verb: string) => boolean): Table {
  return {
    ...table,
    async update(key, expression, values) {
      if (!isLost(expression.name)) return table.update(key, expression, values);
      await table.update(key, expression, values);
      const second = await table.update(key, expression, values);
      return second.kind === "refused" ? { ...second, retried: true } : second;
    },
  };
}

/** Fails chosen operations, before or after they were applied. */
export function failing(
  table: Table,
  how: (operation: string) => "no" | "unsent" | "answer_lost" | Fault,
): Table {
  const guarded = async <T>(operation: string, call: () => Promise<T>): Promise<T> => {
    const failure = how(operation);
    if (failure instanceof Fault) throw failure;
    if (failure === "unsent") throw new Fault("store_unavailable", `${operation}: not sent`);
    const answer = await call();
    if (failure === "answer_lost") throw new Fault("store_unavailable", `${operation}: no answer`);
    return answer;
  };
  return {
    get: (key) => guarded("get", () => table.get(key)),
    query: (...range) => guarded("query", () => table.query(...range)),
    update: (key, expression, values) =>
      guarded(expression.name, () => table.update(key, expression, values)),
  };
}

/** Evaluates one expression without one of its clauses. */
export function forgettingClause(table: Table, forgotten: UpdateExpression, clause: string): Table {
  return {
    ...table,
    update(key, expression, values) {
      if (expression.name !== forgotten.name) return table.update(key, expression, values);
      const clauses = expression.clauses.filter((kept) => kept !== clause);
      const text = [expression.update, ...clauses].join(" ");
      const isUsed = ([name]: [string, unknown]) => new RegExp(`${name}\\b`).test(text);
      const columns = Object.fromEntries(Object.entries(expression.columns).filter(isUsed));
      const kept = Object.fromEntries(Object.entries(values).filter(isUsed));
      return table.update(key, { ...expression, clauses, columns }, kept);
    },
  };
}
