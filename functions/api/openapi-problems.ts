/** Refusals in the description of the interface. */
import { ProblemAnswer } from "./answer-schemas.ts";
import { type ProblemCode, problemStatus } from "./problem.ts";

/** One response per status; its description lists the codes that it stands for. */
export function describeProblems(codes: readonly ProblemCode[]) {
  const byStatus = new Map<number, ProblemCode[]>();
  for (const code of codes) {
    const status = problemStatus(code);
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  const responses = [...byStatus].map(([status, listed]) => {
    const description = listed.map((code) => `\`${code}\``).join(", ");
    return [
      status,
      { description, content: { "application/problem+json": { schema: ProblemAnswer } } },
    ] as const;
  });
  return Object.fromEntries(responses);
}
