/** Something that grades batches; the bench lets two of them grade the same ones, in turn, on the same server. */

export interface BenchTask {
  readonly test_cases: readonly { readonly input: string; readonly output: string }[];
  readonly limits?: { readonly time_ms: number };
}

export interface BenchSample {
  readonly task: BenchTask;
  readonly completion: string;
}

export interface Contestant {
  readonly name: "endpoint" | "recipe";
  /** One reward per sample, in order. */
  grade(samples: readonly BenchSample[]): Promise<readonly (number | null)[]>;
  close(): Promise<void>;
}
