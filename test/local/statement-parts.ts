/** What tests in Python, and programs for them, are made of. */

export interface StatementRow {
  readonly name: string;
  readonly tests: unknown;
  readonly source: string;
  readonly verdict: string | null;
}

export const pytest = (body: string) => `import pytest\nfrom solution import *\n${body}`;
export const check = (body: string, prompt = "") => ({
  prompt,
  entry_point: "f",
  test: `def check(candidate):\n${body.replace(/^/gm, "    ")}\n`,
});
export const one = ["assert f(1) == 1"];

/** A context manager that swallows what it is told of, and says what it returned at its beginning. */
export const swallowing = `
class Quiet:
    def __init__(self, value): self.value = value
    def __enter__(self): return self.value
    def __exit__(self, kind, error, traceback): return kind is not None
    def get(self): raise KeyError(1)
`;
