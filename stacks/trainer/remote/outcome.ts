/** What became of a job, in a sentence and as an exit code. */
import type { JobState, JobStatus } from "./job-store.ts";

const ends: Readonly<Record<JobState, string>> = {
  running: "is running",
  done: "is done",
  failed: "failed; its log says why",
  interrupted: "was interrupted: AWS took the machine away. The same command goes on from its checkpoint",
  too_long: "had the longest time that the stage allows (trainer.maxHours). The same command goes on",
  idle: "did nothing for so long that its machine was ended (trainer.idleMinutes)",
};

export function describeEnd(name: string, status: JobStatus | undefined): string {
  if (status === undefined)
    return `the job ${name}: its machine is gone without a word. The same command goes on`;
  const code = status.exit_code === null ? "" : ` (exit code ${status.exit_code})`;
  return `the job ${name} ${ends[status.state]}${status.state === "failed" ? code : ""}`;
}

/** The job's own where it failed; 75 where the same command goes on. */
export function exitCode(status: JobStatus | undefined): number {
  if (status?.state === "done") return 0;
  if (status?.state === "failed") return status.exit_code || 1;
  return status?.state === "idle" ? 1 : 75;
}
