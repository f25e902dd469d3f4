import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import type { Sandbox } from "e2b";
import { afterAll, beforeAll, expect, it } from "vitest";
import { pidsWith } from "./host-processes.ts";
import { createSandbox, eventually } from "./sandboxes.ts";
import { describeEachUser, SECRET, type ServerProcess, startServerProcess } from "./server-process.ts";

// Each attack is tried by the strongest there is inside: root of a sandbox. It must fail the way that is named, so
// that an attack which is broken itself isn't taken for one that was held off.

const PORT = 7654;
const mark = randomUUID();
// Listens on the sandbox's loopback and on an abstract socket, and holds System V shared memory.
const NEIGHBOUR = `
import ctypes, socket, time
tcp = socket.create_server(("127.0.0.1", ${PORT}))
abstract = socket.socket(socket.AF_UNIX); abstract.bind("\\x00${mark}"); abstract.listen()
print(ctypes.CDLL(None).shmget(4711, 4096, 0o1666), flush=True)
time.sleep(9000)
`;

const connectTo = (address: string) => `socket.create_connection(${address}, 2) and "connected"`;
const abstractTo = (name: string) => `socket.socket(socket.AF_UNIX).connect("\\x00${name}") or "connected"`;

/** What on the host the attacks are aimed at. */
interface Aim {
  readonly hostPort: number;
  readonly apiPort: string;
  readonly hostFolder: string;
}

const ATTACKS: [what: string, expression: (aim: Aim) => string, expected: string | RegExp][] = [
  [
    "a neighbour's port",
    () => connectTo(`("127.0.0.1", ${PORT})`),
    "ConnectionRefusedError Connection refused",
  ],
  [
    "the host's port",
    ({ hostPort }) => connectTo(`("127.0.0.1", ${hostPort})`),
    "ConnectionRefusedError Connection refused",
  ],
  [
    "the API's port",
    ({ apiPort }) => connectTo(`("127.0.0.1", ${apiPort})`),
    "ConnectionRefusedError Connection refused",
  ],
  [
    "abstract sockets of host and neighbour",
    () => abstractTo(mark),
    "ConnectionRefusedError Connection refused",
  ],
  ["the outside", () => connectTo(`("192.0.2.1", 80)`), "OSError Network is unreachable"],
  [
    "a neighbour's shared memory",
    () => `call("shmget", 4711, 4096, 0)`,
    "FileNotFoundError No such file or directory",
  ],
  ["shadowed passwords", () => `open("/etc/shadow").read()`, "FileNotFoundError No such file or directory"],
  [
    "files of the host's /tmp",
    ({ hostFolder }) => `open("${hostFolder}/${mark}").read()`,
    "FileNotFoundError No such file or directory",
  ],
  [
    "files of a neighbour",
    () => `open("/tmp/${mark}").read()`,
    "FileNotFoundError No such file or directory",
  ],
  ["this project", () => `os.listdir("${process.cwd()}")`, "FileNotFoundError No such file or directory"],
  ["pid 1's memory", () => `open("/proc/1/mem", "rb").read(1)`, "PermissionError Permission denied"],
  ["pid 1's environment", () => `open("/proc/1/environ").read(1)`, "PermissionError Permission denied"],
  ["pid 1's descriptors", () => `os.listdir("/proc/1/fd")`, "PermissionError Permission denied"],
  ["pid 1's root", () => `os.listdir("/proc/1/root")`, "PermissionError Permission denied"],
  ["tracing pid 1", () => `call("ptrace", 16, 1, 0, 0)`, "PermissionError Operation not permitted"],
  [
    "programs of the host",
    () => `open("/usr/bin/env", "ab")`,
    /^(PermissionError Permission denied|OSError Read-only file system)$/,
  ],
  [
    "libraries of the host",
    () => `open("/etc/ld.so.cache", "ab")`,
    /^(PermissionError Permission denied|OSError Read-only file system)$/,
  ],
  [
    "making /usr writable",
    () => `call("mount", None, b"/usr", None, 32 | 4096, None)`,
    "PermissionError Operation not permitted",
  ],
  [
    "anything under /usr",
    () => `call("unshare", 0x20000) and call("umount2", b"/usr", 2) and os.listdir("/usr")`,
    "[]",
  ],
  [
    "a disk",
    () => `os.mknod("/tmp/disk", 0o60666, os.makedev(254, 0))`,
    "PermissionError Operation not permitted",
  ],
  [
    "mounting a disk",
    () => `call("mount", b"/dev/vda", b"/run", b"ext4", 0, None)`,
    /^\w+ (No such file or directory|Operation not permitted)$/,
  ],
  [
    "the kernel's settings",
    () => `open("/proc/sys/kernel/core_pattern", "w")`,
    /^(PermissionError Permission denied|OSError Read-only file system)$/,
  ],
  [
    "the clock",
    () => `call("settimeofday", (ctypes.c_long * 2)(1, 0), None)`,
    "PermissionError Operation not permitted",
  ],
];

describeEachUser((uid) => {
  let server: ServerProcess;
  let attacker: Sandbox;
  let victim: Sandbox;
  let hostListener: Server;
  let hostAbstract: Server;
  let hostFolder = "";

  beforeAll(async () => {
    hostFolder = mkdtempSync("/tmp/e2b-server-host-");
    writeFileSync(`${hostFolder}/${mark}`, "of the host");
    hostListener = createServer();
    hostListener.listen(0, "127.0.0.1");
    await once(hostListener, "listening");
    hostAbstract = createServer();
    hostAbstract.listen(`\0${mark}`);
    await once(hostAbstract, "listening");
    server = await startServerProcess(uid === undefined ? {} : { uid });
    attacker = await createSandbox(server.target);
    victim = await createSandbox(server.target);
    await victim.files.write("/tmp/neighbour.py", NEIGHBOUR);
    await victim.files.write(`/tmp/${mark}`, "of a neighbour");
    let told = "";
    await victim.commands.run("python3 /tmp/neighbour.py", {
      background: true,
      timeoutMs: 0,
      onStdout: (text) => {
        told += text;
      },
    });
    await eventually("the neighbour is up", async () => /^\d+\n/.test(told));
  }, 40_000);

  afterAll(async () => {
    hostListener.close();
    hostAbstract.close();
    rmSync(hostFolder, { recursive: true });
    await server.stop();
  });

  /** Runs a Python expression as root of the attacking sandbox: its value, or the name of what it raised. */
  async function attack(expression: string): Promise<string> {
    const program = `
import ctypes, os, socket, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *args):
    if getattr(libc, name)(*args) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return "done"
try:
    print(${expression})
except OSError as error:
    print(type(error).__name__, os.strerror(error.errno or 0))
`;
    await attacker.files.write("/tmp/attack.py", program);
    return (await attacker.commands.run("python3 /tmp/attack.py", { user: "root" })).stdout.trim();
  }

  it("the attacks' own tools work on the sandbox itself", async () => {
    expect(await attack(`open("/tmp/own", "w").write("x")`)).toBe("1");
    expect(await attack(`call("mount", b"none", b"/run", b"tmpfs", 0, None)`)).toBe("done");
    expect(await attack(`call("umount2", b"/run", 0)`)).toBe("done");
    expect(await attack(`call("shmget", 4712, 4096, 0o1666)`)).toBe("done");
    const own = `(lambda s: ${connectTo("s.getsockname()")})(socket.create_server(("127.0.0.1", 0)))`;
    expect(await attack(own)).toBe("connected");
  });

  it.each(ATTACKS)("root of a sandbox doesn't get at %s", async (_what, expression, expected) => {
    const apiPort = new URL(server.target.apiUrl).port;
    const aim = { hostFolder, hostPort: portOf(hostListener), apiPort };
    const outcome = await attack(expression(aim));
    if (typeof expected === "string") expect(outcome).toBe(expected);
    else expect(outcome).toMatch(expected);
  });

  it("sees no process but its own", async () => {
    expect(pidsWith("/tmp/neighbour.py").length).toBeGreaterThan(0);
    const found = await attacker.commands.run("cat /proc/[0-9]*/cmdline | tr '\\0' '\\n'", { user: "root" });
    expect(found.stdout).toContain("/proc/[0-9]*/cmdline");
    expect(found.stdout).not.toContain("neighbour");
    expect(await attack(`len([n for n in os.listdir("/proc") if n.isdigit()]) < 6`)).toBe("True");
  });

  it("lives on when its root kills everything it can", async () => {
    await attacker.commands
      .run("kill -9 -1; kill -9 1; kill -INT 1; kill -TERM 1", { user: "root" })
      .catch(() => {});
    expect((await attacker.commands.run("echo alive")).stdout).toBe("alive\n");
  });

  it("finds no secret of the server in its environment, and no descriptor but its own", async () => {
    const found = await attacker.commands.run("env; ls -l /proc/self/fd", { user: "root" });
    expect(found.stdout).not.toMatch(new RegExp(`${SECRET}|${server.target.apiKey}|E2B_|NODE_`));
    expect(await attack(`sorted(map(int, os.listdir("/proc/self/fd")))[:3]`)).toBe("[0, 1, 2]");
    expect(await attack(`len(os.listdir("/proc/self/fd"))`)).toBe("4");
  });

  it("has the cores that it was given", async () => {
    expect(await attack(`len(os.sched_getaffinity(0))`)).toBe("1");
    expect((await attacker.getInfo()).cpuCount).toBe(1);
  });

  it("has a bounded number of processes, counted for itself", async () => {
    const own = `__import__("resource").getrlimit(__import__("resource").RLIMIT_NPROC)`;
    expect(await attack(own)).toBe("(4096, 4096)");
    const more = `(lambda r: r.setrlimit(r.RLIMIT_NPROC, (9999, 9999)))(__import__("resource"))`;
    const outcome = await attacker.commands
      .run(`python3 -c '${more}'`, { user: "root" })
      .catch((error) => error);
    expect(outcome.stderr).toContain("not allowed to raise maximum limit");
  });

  it("has bounded space, all of it its own", async () => {
    const full = `(lambda f: [f.write(bytes(1 << 20)) for _ in range(70)])(open("/dev/shm/full", "wb", 0)) and "fits"`;
    expect(await attack(full)).toBe("OSError No space left on device");
    const sizes = await attacker.commands.run(
      "df -m --output=size,target / /tmp /home/user /var/tmp /run | tail -5",
    );
    expect(
      sizes.stdout
        .trim()
        .split("\n")
        .map((line) => line.trim()),
    ).toEqual(Array(5).fill("512 /"));
  });
});

function portOf(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("not listening");
  return address.port;
}
