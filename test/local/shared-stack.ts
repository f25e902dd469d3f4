/** One local stack for all tests of a file; its sandboxes must be gone in the end. */
import { afterAll, beforeAll, expect } from "vitest";
import { type LocalStack, startLocalStack } from "../../functions/local/stack.ts";

/** To be called once, at the top of a test file; what it returns gives the stack once the tests run. */
export function shareStack(): () => LocalStack {
  let stack: LocalStack;
  beforeAll(async () => {
    stack = await startLocalStack({ port: 0 });
  });
  afterAll(async () => {
    expect(await stack.emptyPool()).toEqual([]);
    await stack.close();
  });
  return () => stack;
}
