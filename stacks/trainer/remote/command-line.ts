/** `npm run train:remote -- --stage X --name J [what train.py takes]`. */
import { existsSync, readFileSync, statSync } from "node:fs";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";

export const usage = `npm run train:remote -- --stage STAGE --name NAME [--detach] [the trainer's own arguments]
npm run train:remote -- --stage STAGE --name NAME --follow | --end

  --stage STAGE  the deployment whose endpoint gives the rewards
  --name NAME    the job's; the same name again goes on where an interrupted job was
  --detach       start the machine and don't follow its log
  --follow       follow the log of a job that was started before
  --end          end the job's machine; its last whole checkpoint is kept

  All other arguments are the trainer's: --model, --max-steps, --tasks FILE.py, … (see trainer/README.md)`;

export interface Order {
  readonly kind: "start";
  readonly stage: string;
  readonly name: string;
  readonly detach: boolean;
  /** The trainer's, as the machine is to be given them. */
  readonly trainArguments: readonly string[];
  /** Files of this machine that the job needs, by the name that it finds them under. */
  readonly files: Readonly<Record<string, string>>;
}

export type Command =
  | Order
  | { readonly kind: "follow" | "end"; readonly stage: string; readonly name: string };

/** What the user did wrong, in words for the user. */
export class UsageError extends Error {}

const namePattern = /^[a-z0-9][a-z0-9._-]{0,62}$/i;
const defaultSaveSteps = 20;

/** What the machine says for itself. */
const ownOfTheMachine: Readonly<Record<string, string>> = {
  "--output-dir": "the machine's output is kept in the bucket",
  "--endpoint": "the machine uses its stage's endpoint",
  "--resume-from-checkpoint": "the same --name goes on by itself",
};

export function readCommand(words: readonly string[], knownFlags = readTrainFlags()): Command {
  const { own, rest } = split(words);
  const stage = own.get("--stage");
  const name = own.get("--name");
  if (!stage) throw new UsageError("--stage is needed");
  if (!name || !namePattern.test(name)) {
    throw new UsageError("--name is needed: up to 63 letters, digits, dots, hyphens and underscores");
  }
  const only = (["follow", "end"] as const).filter((kind) => own.has(`--${kind}`));
  if (only.length > 1 || (only.length === 1 && rest.length > 0)) {
    throw new UsageError(`--${only[0]} takes nothing but --stage and --name`);
  }
  if (only[0] !== undefined) return { kind: only[0], stage, name };
  checkTrainArguments(rest, knownFlags);
  const { trainArguments, files } = collectFiles(addSaving(rest));
  return { kind: "start", stage, name, detach: own.has("--detach"), trainArguments, files };
}

/** `--flag value` and `--flag=value` alike. */
function split(words: readonly string[]) {
  const own = new Map<string, string>();
  const rest: string[] = [];
  for (let i = 0; i < words.length; i += 1) {
    const [flag = "", ...value] = (words[i] ?? "").split("=");
    if (flag === "--stage" || flag === "--name") {
      own.set(flag, value.length > 0 ? value.join("=") : (words[++i] ?? ""));
    } else if (flag === "--detach" || flag === "--follow" || flag === "--end") {
      own.set(flag, "");
    } else rest.push(words[i] ?? "");
  }
  return { own, rest };
}

/** The flags in the trainer's own source: a mistake costs seconds here, and minutes of a machine there. */
function readTrainFlags(): ReadonlySet<string> {
  const path = fileURLToPath(
    new URL("../../../trainer/src/code_rewards/train/arguments.py", import.meta.url),
  );
  const source = readFileSync(path, "utf8");
  return new Set([...source.matchAll(/"(--[a-z][a-z-]*)"/g)].map(([, flag]) => flag ?? ""));
}

function checkTrainArguments(words: readonly string[], knownFlags: ReadonlySet<string>): void {
  for (const word of words) {
    const flag = word.split("=")[0] ?? "";
    const why = ownOfTheMachine[flag];
    if (why !== undefined) throw new UsageError(`${flag} can't be given: ${why}`);
    if (flag.startsWith("--") && !knownFlags.has(flag)) throw new UsageError(`the trainer has no ${flag}`);
  }
  const model = readValue(words, "--model");
  if (!model) throw new UsageError("--model is needed: a model of the Hugging Face hub");
  if (existsSync(model)) {
    throw new UsageError(`--model ${model} is a directory of this machine: put the model on the hub`);
  }
}

function readValue(words: readonly string[], flag: string): string | undefined {
  const at = words.findIndex((word) => word === flag || word.startsWith(`${flag}=`));
  const word = words[at];
  if (word === undefined) return undefined;
  return word === flag ? words[at + 1] : word.slice(flag.length + 1);
}

/** A machine that may be taken away saves now and then, whether or not it was asked to. */
function addSaving(words: readonly string[]): readonly string[] {
  const saves = words.includes("--baseline-only") || readValue(words, "--save-steps") !== undefined;
  return saves ? words : [...words, "--save-steps", String(defaultSaveSteps)];
}

/** A file of tasks goes along; a module's name is the trainer's own affair. */
function collectFiles(words: readonly string[]): Pick<Order, "trainArguments" | "files"> {
  const path = readValue(words, "--tasks");
  if (!path?.endsWith(".py")) return { trainArguments: words, files: {} };
  if (!existsSync(path) || !statSync(path).isFile())
    throw new UsageError(`--tasks ${path}: there is no such file`);
  const name = basename(path);
  const trainArguments = words.map((word) =>
    word === path ? name : word === `--tasks=${path}` ? `--tasks=${name}` : word,
  );
  return { trainArguments, files: { [name]: path } };
}
