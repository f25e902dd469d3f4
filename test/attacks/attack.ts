/** What an attack is, and the few lines of Python that all of them begin with. */
import type { Limits } from "../supervisor/wire.ts";

export interface Attack {
  name: string;
  /** Python after the prelude below; with `bare`, without it. */
  source: string;
  bare?: boolean;
  /** How every one of its cases must end; "exited" by default. */
  ends?: string | string[];
  /** Its output where it exits; by default the word that says that nothing it tried worked. */
  prints?: string | RegExp;
  /** Its cases differ by a role, and run at once where there are two CPUs. */
  roles?: string[];
  limits?: Partial<Limits>;
  /** All around it is over by then, with what honest programs take. */
  withinMs?: number;
  /** It finds something when it runs without a sandbox, and harms nothing by it. */
  worksOutside?: boolean;
}

/** What an attack is told, so that its failure is not for want of knowing where to look. */
export interface Targets {
  role: string;
  witness: string;
  tcp_port: number;
  supervisor_port: number;
  supervisor_pid: number;
  socket_path: string;
  abstract_name: string;
  /** How every secret begins; a random part follows. */
  marker: string;
}

/**
 * `attempt` runs one try: an OSError means that it was refused, anything else that comes back (but None) is a find.
 * `disturb` does what may be allowed, as long as nobody else feels it: that shows elsewhere.
 * A mistake in an attack itself ends it with another exception, and so fails its test.
 */
export const PRELUDE = String.raw`
import ctypes, errno, glob, json, os, platform, re, socket, stat, struct, sys, time
targets = json.loads(sys.stdin.readline())
found = []
def attempt(name, action):
    try: got = action()
    except OSError: return
    if got is not None: found.append(f"{name}: {got!r}"[:300])
def disturb(action):
    try: action()
    except OSError: pass
def report():
    print("\n".join(found) or "blocked", flush=True)
libc = ctypes.CDLL(None, use_errno=True)
def syscall(number, *arguments):
    words = [a if isinstance(a, (bytes, ctypes.Array)) else ctypes.c_long(a) for a in arguments]
    result = libc.syscall(ctypes.c_long(number), *words)
    if result == -1: raise OSError(ctypes.get_errno(), "")
    return result
ON_X86 = platform.machine() == "x86_64"
def name_process(name): libc.prctl(15, name.encode(), 0, 0, 0)
MARKER = re.compile(targets["marker"].encode() + rb"-[0-9a-f]{24}")
`;

export const FIND_NOTHING = "blocked\n";
