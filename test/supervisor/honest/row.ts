/** One honest program and what must come of it: exit code 0 and no output unless the row says otherwise. */
import type { Limits, Line } from "../wire.ts";

export interface Row {
  name: string;
  source: string;
  /** Standard input of each case; one empty one by default. */
  inputs?: string[];
  limits?: Partial<Limits>;
  /** Fields that every case's last line has; null leaves all to `check`. */
  ends?: Partial<Line> | null;
  stderr?: RegExp;
  /** What the fields above can't say, given the lines of all the program's cases. */
  check?: (lines: Line[]) => void;
}
