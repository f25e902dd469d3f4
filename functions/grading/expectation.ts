/** Whether this standard output, or answer to a call, is right. Never throws; time is linear in the text's length. */
export type OutputMatcher = (said: string) => boolean;

export type PreparedExpectation =
  | { readonly kind: "ok"; readonly matches: OutputMatcher }
  | { readonly kind: "unreadable"; readonly detail: string };
