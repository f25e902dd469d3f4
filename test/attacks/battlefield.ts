/**
 * Honest programs around an attack, things of the host that it might find, and a look at what it left behind.
 *
 * Every secret begins with the same word and ends in random digits that no attack is told: one that prints such a
 * secret has read it somewhere.
 */
import { createHash, randomBytes } from "node:crypto";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { makeProgram, type Supervisor } from "../supervisor/harness.ts";
import type { Line, Program } from "../supervisor/wire.ts";
import type { Targets } from "./attack.ts";

export const MARKER = "treasure";

export function newSecret(): string {
  return `${MARKER}-${randomBytes(12).toString("hex")}`;
}

/** A file, a TCP port and two Unix sockets of the host. `visits` counts the connections that reached any of them. */
export interface Host {
  readonly secret: string;
  readonly folder: string;
  readonly visits: () => number;
  targets(supervisor: Supervisor, role: string): Targets;
  close(): Promise<void>;
}

export async function openHost(): Promise<Host> {
  const folder = mkdtempSync(`${tmpdir()}/attack-host-`);
  chmodSync(folder, 0o755);
  const secret = newSecret();
  const witness = `${folder}/witness`;
  writeFileSync(witness, secret, { mode: 0o644 });
  let visits = 0;
  const open = async (where: net.ListenOptions): Promise<net.Server> => {
    const server = net.createServer((socket) => {
      visits += 1;
      socket.destroy();
    });
    await new Promise<void>((resolve) => server.listen(where, resolve));
    return server;
  };
  const abstractName = `attack-host-${process.pid}-${randomBytes(4).toString("hex")}`;
  const path = `${folder}/socket`;
  const tcp = await open({ host: "::", port: 0 });
  const servers = [
    tcp,
    await open({ path, readableAll: true, writableAll: true }),
    await open({ path: `\0${abstractName}` }),
  ];
  return {
    secret,
    folder,
    visits: () => visits,
    targets: (supervisor, role) => ({
      role,
      witness,
      tcp_port: (tcp.address() as net.AddressInfo).port,
      supervisor_port: supervisor.port,
      supervisor_pid: supervisor.pid,
      socket_path: path,
      abstract_name: abstractName,
      marker: MARKER,
    }),
    async close() {
      await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
      rmSync(folder, { recursive: true });
    },
  };
}

/** An honest program over two inputs that nobody else may read; its output proves that it read them whole. */
export interface Honest {
  program: Program;
  secrets: string[];
  expected: string[];
}

export function makeHonest(id: string): Honest {
  const [inSource, first, second] = [newSecret(), newSecret(), newSecret()] as const;
  const source = `
import hashlib, sys, time
note = "${inSource}"
text = sys.stdin.read()
open("scratch", "w").write(text)
time.sleep(0.03)
with open("scratch") as file: print(hashlib.sha256(file.read().encode()).hexdigest())
`;
  const inputs = [first, second];
  return {
    program: makeProgram(id, source, inputs, { memory_mib: 64 }),
    secrets: [inSource, first, second],
    expected: inputs.map((input) => `${createHash("sha256").update(input).digest("hex")}\n`),
  };
}

/** Prints all that a program could have left for the next one. It must say the same before and after every attack. */
export const RESIDUE_PROBE = makeProgram(
  "residue",
  `
import ctypes, json, os, resource, signal, sys
libc = ctypes.CDLL(None)
def is_open(fd):
    try: os.fstat(fd)
    except OSError: return False
    return True
print(json.dumps({
    "files": [sorted(os.listdir(path)) for path in ("/tmp", "/dev/shm", os.environ["HOME"], "/")],
    "processes": [name for name in os.listdir("/proc") if name.isdigit()],
    "descriptors": [fd for fd in range(3, 1024) if is_open(fd)],
    "environment": dict(os.environ),
    "limits": [resource.getrlimit(n) for n in range(16)],
    "ids": [os.getpid(), os.getppid(), os.getgid(), os.getpgid(0), os.getsid(0), len(os.getgroups())],
    "priority": [os.nice(0), os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0), libc.syscall(252, 1, 0)],
    "signals": [str(signal.getsignal(n)) for n in range(1, 32)] + [str(signal.pthread_sigmask(signal.SIG_BLOCK, []))],
    "umask": os.umask(0o22), "folder": os.getcwd(), "host": os.uname().nodename,
    "modules": "planted" in sys.modules, "killer": open("/proc/self/oom_score_adj").read(),
}, sort_keys=True))
`,
  ["", "", "", ""],
  { memory_mib: 64 },
);

/** The outputs of one program's ended cases, in the order of its inputs. */
export function outputsOf(lines: Line[], id: string): (string | undefined)[] {
  return endsOf(lines, id).map((line) => line.stdout);
}

export function endsOf(lines: Line[], id: string): Line[] {
  return lines
    .filter((line) => line.program === id && line.type === "ended")
    .sort((a, b) => (a.case ?? 0) - (b.case ?? 0));
}
