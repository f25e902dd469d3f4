import { describe, expect, it } from "vitest";
import { type Completion, extractProgram, readCompletionText } from "../../functions/grading/extraction.ts";
import { holdCompletion, takeCompletion } from "../../functions/rewards/held-text.ts";

const options = { extraction: "first", reasoning: "auto" } as const;
const user = { role: "user", content: "```python\nnot this\n```" };

describe("a completion that is held", () => {
  it.each<[string, Completion]>([
    ["a text", "Here:\n```python\nprint('é 数 🙂')\n```\n"],
    ["no text", ""],
    ["with a NUL and a byte order mark", "\uFEFF```python\nprint('\0')\n```"],
    ["a lone surrogate in its program", "```python\nprint('\ud800')\n```"],
    ["a lone surrogate beside its program", "\udc00\n```python\nprint(1)\n```"],
    ["a chat", [user, { role: "assistant", content: "```python\nprint(1)\n```" }]],
    [
      "a chat of parts",
      [
        {
          role: "assistant",
          content: [
            { type: "text", text: "```python\n" },
            { type: "text", text: "print(1)\n```" },
          ],
        },
      ],
    ],
    ["a chat whose last message has no text", [user, { role: "assistant", content: null }]],
    ["a chat whose last message is empty", [user, { role: "assistant", content: "" }]],
  ])("says what it said: %s", (_, completion) => {
    const taken = takeCompletion(holdCompletion(completion));
    expect(readCompletionText(taken)).toBe(readCompletionText(completion));
    for (const reasoning of ["auto", "opened", "none"] as const) {
      const asHeld = extractProgram(taken, { ...options, reasoning });
      expect(asHeld).toEqual(extractProgram(completion, { ...options, reasoning }));
    }
  });

  it("is let go of when it is taken", () => {
    const held = holdCompletion("x".repeat(5_000));
    takeCompletion(held);
    expect(held).toEqual({ held: null });
    expect(() => takeCompletion(held)).toThrow("taken twice");
  });
});
