/** What a client may ask for when it registers a run. */

export interface RunWish {
  readonly name: string;
  readonly workers: number;
  readonly metadata: Readonly<Record<string, string>>;
}

export const runLimits = {
  idCharacters: 128,
  nameCharacters: 200,
  metadataPairs: 16,
  metadataKeyCharacters: 64,
  metadataValueCharacters: 256,
} as const;

/** Ids are part of addresses and of rows' keys. */
export const runIdPattern = /^[A-Za-z0-9._:~-]{1,128}$/;

export interface RunProblem {
  /** JSON pointer into the request; empty for the id, which is in the address. */
  readonly pointer: string;
  readonly detail: string;
}

/** Everything that is wrong with a registration; empty when nothing is. */
export function runProblems(runId: string, wish: RunWish, slots: number): RunProblem[] {
  const pairs = Object.entries(wish.metadata);
  const rules: [boolean, string, string][] = [
    [
      runIdPattern.test(runId),
      "",
      `a run's id must be 1 to ${runLimits.idCharacters} of the characters A-Z a-z 0-9 . _ : ~ -`,
    ],
    [
      wish.name.length <= runLimits.nameCharacters,
      "/name",
      `must have at most ${runLimits.nameCharacters} characters`,
    ],
    [
      Number.isInteger(wish.workers) && wish.workers >= 1 && wish.workers <= slots,
      "/workers",
      `must be a whole number from 1 to ${slots}`,
    ],
    [
      pairs.length <= runLimits.metadataPairs,
      "/metadata",
      `must have at most ${runLimits.metadataPairs} pairs`,
    ],
    ...pairs.map(([key, value]): [boolean, string, string] => [
      isPair(key, value),
      `/metadata/${key.slice(0, 80).replaceAll("~", "~0").replaceAll("/", "~1")}`,
      `must be a text of at most ${runLimits.metadataValueCharacters} characters under a key of 1 to ${runLimits.metadataKeyCharacters}`,
    ]),
  ];
  return rules.filter(([holds]) => !holds).map(([, pointer, detail]) => ({ pointer, detail }));
}

function isPair(key: string, value: unknown): boolean {
  const isKey = key.length >= 1 && key.length <= runLimits.metadataKeyCharacters;
  return isKey && typeof value === "string" && value.length <= runLimits.metadataValueCharacters;
}
