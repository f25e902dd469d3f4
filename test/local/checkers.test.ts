/** Tasks with a checker program, through the whole product over HTTP. */
import { describe, expect, it } from "vitest";
import { requestRewards, type SampleLine } from "../../functions/local/rewards-client.ts";
import { shareStack } from "./shared-stack.ts";

const stack = shareStack();

const EXPECTED = "5 6 treasure-7d1c59";

/** Right is any order of what is expected; it fails over an output of fewer words. */
const anyOrder = `
import sys
given, wanted, found = (open(path).read().split() for path in sys.argv[1:])
assert given == ["11"] and len(found) >= 3
print(1 if sorted(found) == sorted(wanted) else 0)
`;

interface Checked {
  readonly source: string;
  readonly checker?: string;
}

async function gradeAll(programs: readonly Checked[]) {
  const samples = programs.map(({ source, checker = anyOrder }) => ({
    task: { tests: { official_tests: [{ input: "11\n", output: EXPECTED }], generated_checker: checker } },
    completion: `\`\`\`python\n${source}\n\`\`\``,
  }));
  const lines: SampleLine[] = [];
  await requestRewards(stack(), { samples }, (line) => lines.push(line));
  lines.sort((a, b) => a.index - b.index);
  return lines.map(({ reward, verdicts, status }) => [reward, verdicts?.[0]?.verdict ?? status]);
}

/** Looks for the expected output in its process and in all that it reaches, for as long as a checker might take. */
const search = `
import gc, glob, os, time
marker = "-".join(["treasure", "7d"])
until = time.monotonic() + 0.4
def texts():
    for path in glob.glob("/proc/*/fd/*") + glob.glob("/tmp/*") + glob.glob("/dev/shm/*") + glob.glob("/proc/*/cmdline"):
        try: yield open(path, errors="replace").read(100000) if os.path.isfile(path) else ""
        except OSError: pass
    for thing in gc.get_objects():
        if isinstance(thing, (dict, list, tuple)) and thing is not globals(): yield from (t for t in thing if isinstance(t, str))
def find():
    while time.monotonic() < until:
        for text in texts():
            if marker in text and text is not marker: return text[text.find(marker):][:15]
            if time.monotonic() > until: return
print(5, 6, find())
`;

const programs: readonly (Checked & { name: string; found: [number | null, string] })[] = [
  { name: "the expected output", source: `print("${EXPECTED}")`, found: [1, "passed"] },
  { name: "another right one", source: 'print(6, 5, "treasure-7d1c59")', found: [1, "passed"] },
  { name: "a wrong one", source: "print(1, 2, 3)", found: [0, "wrong_output"] },
  { name: "one that the checker fails over", source: "print(1)", found: [0, "wrong_output"] },
  {
    name: "bytes that are no text",
    source: "import sys\nsys.stdout.buffer.write(bytes(range(256)))",
    found: [0, "wrong_output"],
  },
  { name: "a checker's word", source: "print(1)\nprint('1')", found: [0, "wrong_output"] },
  { name: "a search for what is expected", source: search, found: [0, "wrong_output"] },
  {
    name: "a right output and an exit that says failure",
    source: `print("${EXPECTED}")\nraise SystemExit(2)`,
    found: [0, "runtime_error"],
  },
  { name: "a sleep without end", source: "import time\ntime.sleep(100)", found: [0, "time_limit"] },
  { name: "no Python", source: "print(", found: [0, "syntax_error"] },
];

describe("a task with a checker", () => {
  it("gives each program what it is worth", async () => {
    const found = (await gradeAll(programs)).map((each, index) => [programs[index]?.name, ...each]);
    expect(found).toEqual(programs.map(({ name, found }) => [name, ...found]));
  });

  it.each<[string, string]>([
    ["is no Python", "print("],
    ["raises", "raise ValueError"],
    ["says nothing", "pass"],
    ["says something else", "print('perhaps')"],
    [
      "accepts nothing, and fails over the rest",
      "import sys\nprint(0) if 'x' in open(sys.argv[3]).read() else 1 / 0",
    ],
  ])("judges nobody when the checker %s", async (_name, checker) => {
    expect(await gradeAll([{ source: "print(1)", checker }])).toEqual([[null, "fault"]]);
  });
});
