/** Where a case's CPU time goes, stage by stage: the zygote tells of itself, through `staged_zygote.py`. */
import { copyFileSync, readFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Sources } from "./sources.ts";
import { startSupervisor } from "./supervisor-process.ts";

const stagedZygote = fileURLToPath(new URL("staged_zygote.py", import.meta.url));

export interface Stage {
  readonly ms: number;
  readonly page_faults: number;
}

export type Stages = Readonly<Record<string, Stage>>;

/** Means over `cases` cases. The sources are changed, and are of no use for anything else afterwards. */
export async function measureStages({ folder, ...sources }: Sources, cases: number): Promise<Stages> {
  const report = join(folder, "stages.json");
  renameSync(join(folder, "zygote.py"), join(folder, "unstaged_zygote.py"));
  copyFileSync(stagedZygote, join(folder, "zygote.py"));
  const supervisor = await startSupervisor({ folder, ...sources });
  try {
    await supervisor.execute(1, cases);
  } finally {
    await supervisor.stop();
  }
  return JSON.parse(readFileSync(report, "utf8"));
}
