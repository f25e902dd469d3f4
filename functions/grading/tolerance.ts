/** How far a float may be off: by so much, or by such a part of the expected value. Both finite, at least 0. */
export interface Tolerance {
  readonly absolute: number;
  readonly relative: number;
}

/** Whether a float is close enough to the expected one, which is finite. What isn't finite never is. */
export function isWithin(actual: number, expected: number, tolerance: Tolerance): boolean {
  const distance = Math.abs(actual - expected);
  return distance <= tolerance.absolute || distance <= tolerance.relative * Math.abs(expected);
}
