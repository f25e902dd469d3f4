/** Whether this standard output is right. Never throws; time is linear in the output's length. */
export type OutputMatcher = (stdout: string) => boolean;

export type PreparedExpectation =
  | { readonly kind: "ok"; readonly matches: OutputMatcher }
  | { readonly kind: "unreadable"; readonly detail: string };
