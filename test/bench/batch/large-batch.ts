/** Batches of many samples of 1 KB: some words as a model writes them, and a quick program whose comments differ. */

export interface LargeBatch {
  readonly samples: number;
  /** The request's body. */
  readonly json: string;
}

const sampleBytes = 1_024;
/** Samples of one prompt. */
const groupSize = 16;
/** One sample in so many says what another one of its group has said. */
const duplicateEvery = 10;

const words =
  "the list of records is read first then each name gets its total and what is left over goes into a table that is " +
  "sorted by key before it is printed as one value für größere Zahlen 数 naïve";
const vocabulary = words.split(" ");

/** Numbers from one seed: the same batch in each run, and no two texts alike. */
function createNumbers(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 0x1_0000_0000;
  };
}

/** Right programs, one test case each: each prints the number that it reads. */
export function makeLargeBatch(samples: number): LargeBatch {
  const next = createNumbers(samples);
  const groups = Math.ceil(samples / groupSize);
  const tasks = Object.fromEntries(
    Array.from({ length: groups }, (_, group) => [
      `prompt ${group}`,
      { test_cases: [{ input: `${group}`, output: `${group}` }] },
    ]),
  );
  const completions: string[] = [];
  for (let index = 0; index < samples; index += 1) {
    const repeated = index % duplicateEvery === duplicateEvery - 1 ? completions[index - 1] : undefined;
    completions.push(repeated ?? writeCompletion(next));
  }
  return {
    samples,
    json: JSON.stringify({
      tasks,
      samples: completions.map((completion, index) => ({
        task: `prompt ${Math.floor(index / groupSize)}`,
        completion,
      })),
      options: { deadline_ms: 840_000 },
    }),
  };
}

function writeCompletion(next: () => number): string {
  const sentence = (count: number) =>
    Array.from({ length: count }, () => vocabulary[Math.floor(next() * vocabulary.length)]).join(" ");
  let text = `${sentence(30)}.\n\n\`\`\`python\nimport sys\n\n`;
  while (text.length < sampleBytes - 120) text += `# ${sentence(12)} ${Math.floor(next() * 1e9)}\n`;
  return `${text}print(sys.stdin.read())\n\`\`\`\n`;
}
