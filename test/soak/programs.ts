/** Samples whose rewards are known before anybody runs them: right, broken and hostile ones. */
import { type Attack, PRELUDE } from "../attacks/attack.ts";
import { files } from "../attacks/kinds/files.ts";
import { kernel } from "../attacks/kinds/kernel.ts";
import { memory } from "../attacks/kinds/memory.ts";
import { network } from "../attacks/kinds/network.ts";
import { output } from "../attacks/kinds/output.ts";
import { processes } from "../attacks/kinds/processes.ts";
import { sources } from "../attacks/kinds/sources.ts";
import { spying } from "../attacks/kinds/spying.ts";
import { honestPrograms } from "../local/honest-programs.ts";
import type { Random } from "./random.ts";

export interface KnownSample {
  readonly kind: "right" | "broken" | "hostile";
  readonly name: string;
  readonly task: {
    readonly test_cases: readonly { readonly input: string; readonly output: string }[];
    readonly limits?: Readonly<Record<string, number>>;
  };
  readonly completion: string;
  /** What it must be, unless the platform fails. */
  readonly reward: number;
}

type Maker = (random: Random) => KnownSample;

const fence = (source: string) => `Here it is.\n\n\`\`\`python\n${source}\n\`\`\`\n`;

/** Three cases of one sum, whose numbers nobody else has: programs differ, and so do their answers. */
function makeSum(random: Random) {
  const salt = random.integer(1, 1_000_000_000);
  const inputs = [random.integer(-1000, 1000), random.integer(-1000, 1000), random.integer(-1000, 1000)];
  return {
    salt,
    task: {
      test_cases: inputs.map((input) => ({
        input: `${input}\n`,
        output: `{"salt": ${salt}, "sum": ${input + salt}}`,
      })),
    },
    source: `import json\nn = int(input())\nprint(json.dumps({"sum": n + ${salt}, "salt": ${salt}}))`,
  };
}

const rightSum: Maker = (random) => {
  const { task, source } = makeSum(random);
  return { kind: "right", name: "a sum", task, completion: fence(source), reward: 1 };
};

/** Right after it did what some harnesses take for a crash or a wrong end. */
const rightEnds = [
  "import sys\nsys.exit(0)",
  "exit()",
  "import os\nos.kill(os.getpid(), 15)",
  "import os, sys\nsys.stdout.flush()\nos._exit(0)",
  "import os, sys\nsys.stdout.flush()\nif os.fork() == 0: os.kill(0, 9)\nos.wait()",
  "import threading\nthreading.Thread(target=print, args=('',)).start()",
];

const rightEnd: Maker = (random) => {
  const { task, source } = makeSum(random);
  const completion = fence(`${source}\n${random.pick(rightEnds)}`);
  return { kind: "right", name: "a sum and an odd end", task, completion, reward: 1 };
};

const rightOther: Maker = (random) => {
  const { name, source, input = "", output: expected } = random.pick(honestPrograms);
  const task = { test_cases: [{ input, output: expected }] };
  return {
    kind: "right",
    name,
    task,
    completion: fence(`${source}\n# ${random.integer(1, 9_999)}`),
    reward: 1,
  };
};

const brokenAnswers: readonly (readonly [name: string, change: (source: string, salt: number) => string])[] =
  [
    ["a wrong number", (source) => fence(source.replace("n +", "n + 1 +"))],
    ["a wrong form", (source) => fence(`${source}\nprint("done")`)],
    ["nothing printed", (source) => fence(source.replace("print", "str"))],
    ["an error after the answer", (source) => fence(`${source}\nraise ValueError("late")`)],
    ["exit code 1 after the answer", (source) => fence(`${source}\nimport sys\nsys.exit(1)`)],
    [
      "an answer by a process that outlives it",
      (source) => fence(`import os, time\nif os.fork(): os._exit(0)\ntime.sleep(0.2)\n${source}`),
    ],
    ["a syntax error", (source) => fence(`${source}\n)`)],
    ["no block", (_, salt) => `I think that it is ${salt}.`],
    ["another language's block", (source) => `\`\`\`js\n${source}\n\`\`\``],
    ["a block without end, and more text", (source) => `\`\`\`python\n${source}\nThat is all`],
    ["an empty block", () => "```python\n\n```"],
    ["a reasoning without end", (source) => `<think>\n${fence(source)}`],
  ];

const broken: Maker = (random) => {
  const { task, source, salt } = makeSum(random);
  const [name, change] = random.pick(brokenAnswers);
  return { kind: "broken", name, task, completion: change(source, salt), reward: 0 };
};

const partlyRight: Maker = (random) => {
  const { task, source } = makeSum(random);
  const right = random.integer(0, 2);
  const test_cases = task.test_cases.map((each, i) =>
    i < right ? each : { ...each, output: '{"sum": null}' },
  );
  const name = `${right} of 3 right`;
  return { kind: "broken", name, task: { test_cases }, completion: fence(source), reward: right / 3 };
};

const overLimit: Maker = (random) => {
  const { task } = makeSum(random);
  const [name, source] = random.pick([
    ["too slow", "while True: pass"],
    ["too sleepy", "import time\ntime.sleep(60)"],
    ["too big", "x = []\nwhile True: x.append(bytearray(1 << 20))"],
    ["too loud", "while True: print('x' * 10_000)"],
  ] as const);
  const limited = { ...task, limits: { time_ms: 400, memory_mib: 96 } };
  return { kind: "broken", name, task: limited, completion: fence(source), reward: 0 };
};

/** What the local endpoint gives one test case at most. */
const mostMemoryMib = 384;
const attacks: readonly Attack[] = [processes, memory, files, output, spying, network, kernel, sources]
  .flat()
  .filter(({ limits }) => (limits?.memory_mib ?? 0) <= mostMemoryMib);

/** What attacks are told; there is nothing of that kind here, which they are not to notice. */
const targets = {
  witness: "/etc/hostname",
  tcp_port: 9,
  supervisor_port: 8080,
  supervisor_pid: 1_000,
  socket_path: "/tmp/socket",
  abstract_name: "abstract",
  marker: "treasure",
};

/** None of them prints JSON, so all of them are worth nothing, however they end. */
const hostile: Maker = (random) => {
  const attack = random.pick(attacks);
  const source = attack.bare ? attack.source : PRELUDE + attack.source;
  const roles = attack.roles ?? ["alone"];
  const test_cases = roles.map((role) => ({
    input: `${JSON.stringify({ ...targets, role })}\n`,
    output: '{"got": "in"}',
  }));
  const limits = { time_ms: 2000, memory_mib: 128, ...attack.limits };
  return {
    kind: "hostile",
    name: attack.name,
    task: { test_cases, limits },
    completion: fence(source),
    reward: 0,
  };
};

/** An attack that then does its task: the attack must not change what its answer is worth. */
const hostileButRight: Maker = (random) => {
  const { task, source } = makeSum(random);
  const [name, prologue] = random.pick([
    [
      "kills whatever it may",
      "import os, signal\nfor who in (-1, 2, 3, 100):\n    try: os.kill(who, signal.SIGKILL)\n    except OSError: pass",
    ],
    [
      "opens all descriptors",
      "import os\nheld = []\ntry:\n    while True: held.append(os.dup(0))\nexcept OSError: pass\nfor fd in held: os.close(fd)",
    ],
    ["leaves a daemon", "import os, time\nif os.fork() == 0:\n    os.setsid(); time.sleep(60)"],
    ["shouts on standard error", "import os\nos.write(2, b'x' * 200_000)"],
    [
      "fills its disk",
      "try:\n    with open('fill', 'wb') as file:\n        while True: file.write(bytes(1 << 20))\nexcept OSError: pass\nimport os\nos.unlink('fill')",
    ],
  ] as const);
  return {
    kind: "hostile",
    name: `${name}, and is right`,
    task,
    completion: fence(`${prologue}\n${source}`),
    reward: 1,
  };
};

const makers: readonly (readonly [number, Maker])[] = [
  [40, rightSum],
  [8, rightEnd],
  [10, rightOther],
  [14, broken],
  [8, partlyRight],
  [3, overLimit],
  [7, hostile],
  [6, hostileButRight],
];

export function makeSample(random: Random): KnownSample {
  return random.pickWeighted(makers)(random);
}
