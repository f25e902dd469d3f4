import type { TestsKind } from "../normal-form.ts";

/** One shape of tests, as the interface's description shows it, with programs for it. */
export interface ShapeExample {
  readonly name: string;
  /** Whose shape it is, and from which column. */
  readonly source: string;
  readonly kind: TestsKind;
  /** What goes into a task's `tests`. */
  readonly tests: unknown;
  /** Programs that get 1 and 0. */
  readonly right: string;
  readonly wrong: string;
}
