/**
 * Bringing the supervisor into a sandbox and starting it.
 *
 * A failed step proves nothing: the client calls a busy proxy "not found", and a command whose answer was cut may run.
 * So the control plane is asked what has become of the sandbox, and while it may be there the step is done again. Both
 * steps bear that: files are written over, and a start claims the secret's file by renaming it, so that of several
 * starts one has its effect and the others end with `alreadyStartedExitCode`.
 *
 * Secrets go by file and nowhere else: command lines and environments are logged in the sandbox.
 */
import type { CommandHandle, Sandbox } from "e2b";
import { Fault } from "../rewards/faults.ts";
import type { Clock } from "../rewards/ports.ts";
import { type E2bClient, findSandbox } from "./e2b-client.ts";
import { redact } from "./e2b-redaction.ts";
import type { SupervisorFiles } from "./supervisor-files.ts";
import { supervisorPort } from "./worker-access.ts";

const folder = "/opt/code-rewards";
const alreadyStartedExitCode = 75;
const mostTries = 3;
/** Spread over all of it, and doubled each time. */
const firstPauseMs = 800;

/** How a supervisor's process ended, as far as it was seen. */
export interface SupervisorEnd {
  readonly exitCode: number;
  /** The last of what it said on standard error, without secrets. */
  readonly said: string;
}

export interface SupervisorProcess {
  /** Resolves when the process is seen to fail; never when it runs on, is stopped, or gets out of sight. */
  readonly ended: Promise<SupervisorEnd>;
  /** Stops looking; the process runs on. */
  leave(): Promise<void>;
}

export interface Startup {
  readonly client: E2bClient;
  readonly sandbox: Sandbox;
  readonly clock: Clock;
  readonly random: () => number;
  readonly signal: AbortSignal;
}

/** Writes the supervisor's files and the secret in one request. Throws a `Fault`. */
export async function placeSupervisor(
  startup: Startup,
  supervisor: SupervisorFiles,
  secret: string,
): Promise<void> {
  const { sandbox, client } = startup;
  const entries = [
    ...supervisor.files.map(({ name, content }) => ({ path: `${folder}/${name}`, data: content })),
    { path: `${folder}/secret`, data: secret },
  ];
  const requestTimeoutMs = client.options.sandboxRequestTimeoutMs;
  await tryUntilConfirmed(startup, "write the supervisor's files", (signal) =>
    sandbox.files.write(entries, { user: "root", requestTimeoutMs, signal }),
  );
}

/** Starts the supervisor in the background, without a limit on its time. Throws a `Fault`. */
export async function startSupervisor(startup: Startup, memoryMib: number): Promise<SupervisorProcess> {
  const { sandbox, client } = startup;
  let said = "";
  const handle = await tryUntilConfirmed(startup, "start the supervisor", (signal) =>
    sandbox.commands.run(startCommand(memoryMib), {
      background: true,
      timeoutMs: 0,
      user: "root",
      requestTimeoutMs: client.options.sandboxRequestTimeoutMs,
      signal,
      onStderr: (text) => {
        said = (said + text).slice(-2_000);
      },
    }),
  );
  return {
    ended: watchEnd(handle, () => redact(lastLine(said), [client.options.apiKey])),
    leave: () => handle.disconnect(),
  };
}

/**
 * On every address, not on loopback alone: E2B finds ports on loopback by looking for them once a second. The modes
 * keep the secret to root until the supervisor has read and deleted it, which is before any program comes.
 */
function startCommand(memoryMib: number): string {
  const options = `--host 0.0.0.0 --port ${supervisorPort} --secret-file claimed --memory-mib ${memoryMib}`;
  return [
    `cd ${folder} && chmod 700 . && mv secret claimed 2>/dev/null || exit ${alreadyStartedExitCode}`,
    "chmod 600 claimed",
    `exec python3 -B main.py ${options}`,
  ].join("; ");
}

function watchEnd(handle: CommandHandle, said: () => string): Promise<SupervisorEnd> {
  return new Promise((resolve) => {
    const look = () => {
      const { exitCode } = handle;
      if (exitCode !== undefined && isOwnFailure(exitCode)) {
        resolve({ exitCode, said: said() });
      }
    };
    handle.wait().then(look, look);
  });
}

/** Not 0 and not by a signal: so it ends when it is asked to, as in a sandbox that ends; the wait for it then goes on. */
function isOwnFailure(exitCode: number): boolean {
  return exitCode > 0 && exitCode < 128 && exitCode !== alreadyStartedExitCode;
}

function lastLine(text: string): string {
  return text.trimEnd().split("\n").at(-1) ?? "";
}

async function tryUntilConfirmed<Value>(
  { client, sandbox, clock, random, signal }: Startup,
  what: string,
  act: (signal: AbortSignal) => Promise<Value>,
): Promise<Value> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await actInTime(act, clock, client.options.sandboxRequestTimeoutMs, signal);
    } catch {
      // What the client makes of it is no evidence; what the control plane says below is.
    }
    if (signal.aborted) throw failed(what, "the creation was given up");
    const place = await findSandbox(client, sandbox.sandboxId, signal);
    if (place.kind === "gone") throw failed(what, "the sandbox is gone");
    if (place.kind === "unknown" && !place.fault.retryable) throw place.fault;
    if (tries >= mostTries) throw failed(what, `the sandbox did not do it in ${tries} tries`);
    await clock.sleep(random() * firstPauseMs * 2 ** (tries - 1), signal);
  }
}

/**
 * The client's own limit doesn't hold on Node 20 once it is given a signal: `AbortSignal.any` over
 * `AbortSignal.timeout` is garbage-collected there before it fires. So the limit is in the signal.
 */
async function actInTime<Value>(
  act: (signal: AbortSignal) => Promise<Value>,
  clock: Clock,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<Value> {
  const late = new AbortController();
  const done = new AbortController();
  void clock.sleep(timeoutMs, done.signal).then(() => {
    if (!done.signal.aborted) late.abort();
  });
  try {
    return await act(AbortSignal.any([signal, late.signal]));
  } finally {
    done.abort();
  }
}

function failed(what: string, why: string): Fault {
  return new Fault("sandbox_unavailable", `E2B could not ${what}: ${why}.`);
}
