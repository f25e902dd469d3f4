import { type ItemError, Problem } from "./problem.ts";

const mostProblems = 100;

/** The problem of a request that asks for something impossible, with all that is wrong with it. */
export function refuseRequest(errors: readonly ItemError[], consequence = "Nothing was done."): Problem {
  const count =
    errors.length >= mostProblems
      ? `${errors.length} problems or more`
      : errors.length === 1
        ? "a problem"
        : `${errors.length} problems`;
  const detail = `The request has ${count}, listed in 'errors' with the places. ${consequence}`;
  return new Problem("invalid_request", detail, { errors });
}
