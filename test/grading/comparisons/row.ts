/** One comparison: is this output right where that one is expected, and why? */
export type Row = readonly [expected: string, stdout: string, isRight: boolean, reason: string];
