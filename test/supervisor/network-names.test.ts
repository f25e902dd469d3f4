/** Names that a case leaves in its network namespace: sockets outlive their process while they are in flight. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeProgram, type Supervisor, startSupervisor } from "./harness.ts";
import { allowedCpus } from "./host-view.ts";
import { modes } from "./launch.ts";

const secret = "input-of-another-case";
const name = `\\0${secret}`;
/** Sent into itself, a pair of sockets holds what is sent with it until the kernel collects all three. */
const leaveBehind = (kind: string) => `
import array, os, socket
named = socket.socket(socket.AF_UNIX, socket.${kind})
named.bind("\\0" + input())
${kind === "SOCK_DGRAM" ? "" : "named.listen()"}
a, b = socket.socketpair()
b.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [a.fileno(), named.fileno()]))])
named.close(); b.close()
print(open("/proc/self/net/unix").read().count("${secret}"), flush=True)
os._exit(0)
`;
/** What a later case can know of it: it is listed, it can't be bound again, it can be connected to. */
const look = `
import errno, re, socket
found = re.findall("@(input-.*)", open("/proc/self/net/unix").read())
for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
    try: socket.socket(socket.AF_UNIX, kind).bind("${name}")
    except OSError as error: found.append(errno.errorcode[error.errno])
    try: found.append(socket.socket(socket.AF_UNIX, kind).connect("${name}") or "connected")
    except OSError as error: found += [errno.errorcode[error.errno]] if error.errno != errno.ECONNREFUSED else []
print(found)
`;
/** Whether any socket was there before a case opened its first. */
const listAll = 'print(len(open("/proc/self/net/unix").read().splitlines()) - 1)';

describe.each(modes)("as %s", (mode) => {
  let supervisor: Supervisor;
  beforeAll(async () => {
    const args = ["--cpus", String(allowedCpus()[0]), "--memory-mib", "1024"];
    supervisor = await startSupervisor({ mode, arguments: args });
  }, 60_000);
  afterAll(() => supervisor.close());

  /** What the cases of each program printed, in the programs' order. */
  async function run(...programs: { source: string; inputs: string[] }[]): Promise<unknown[][]> {
    const made = programs.map(({ source, inputs }, index) => makeProgram(`p${index}`, source, inputs));
    const { lines } = await supervisor.execute(supervisor.chunk(made));
    const ended = lines.filter(({ type }) => type === "ended");
    return made.map(({ id }) => ended.filter(({ program }) => program === id).map(({ stdout }) => stdout));
  }

  it.each(["SOCK_STREAM", "SOCK_DGRAM", "SOCK_SEQPACKET"])(
    "a %s socket in flight is known to no case after it",
    async (kind) => {
      const leaving = { source: leaveBehind(kind), inputs: [`${secret}\n`] };
      const looking = { source: look, inputs: Array<string>(6).fill("") };
      expect(await run(leaving, looking)).toEqual([["1\n"], Array(6).fill("[]\n")]);
    },
  );

  it("no case finds a socket that it didn't make, also where each leaves some", async () => {
    const leaving = {
      source: `${listAll}${leaveBehind("SOCK_STREAM")}`,
      inputs: Array<string>(12).fill(`${secret}\n`),
    };
    const looking = { source: listAll, inputs: Array<string>(6).fill("") };
    expect(await run(leaving, looking)).toEqual([Array(12).fill("0\n1\n"), Array(6).fill("0\n")]);
  });
});
