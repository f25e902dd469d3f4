"""The supervisor of one worker: runs untrusted Python programs, each case in a disposable sandbox of its own.

    python3 main.py --port 0 --secret-file FILE    serve; one JSON line on stdout says where
    python3 main.py --preflight                    prove each isolation property, print JSON, exit 0 or 1

Theory of operation, from the outside in. `service.py` answers HTTP requests; `scheduler.py` decides which case runs
next and whose work is still wanted (fencing tokens); `slots.py` keeps one zygote per CPU and isolated children ready on
each; `cases.py` follows one case from job to outcome. On the other side of the fork, `zygote.py` forks warm children,
`isolation.py` isolates and proves them, `sandbox.py` has them wait for a job, `program.py` turns one into the program,
`calls.py` into a library, and `judge.py` into what tests that. `preflight.py` attacks all of it before the first
program is accepted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import signal
import sys

import cgroups
import http_server
import kernel
import preflight
from scheduler import Scheduler
from service import Service
from slots import UIDS_PER_SLOT
from version import supervisor_version
from zygote import is_rootless

_OWN_MEMORY_MIB = 128
_OOM_PROTECTION = "-900"
_OWN_NICENESS = -10
_KERNEL_LEAVES = 0.85


def main() -> None:
    options = _parse_arguments()
    if options.exit_with_parent:
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != options.exit_with_parent:
            sys.exit("the parent ended before the supervisor began")
    _protect_from_oom_killer()
    _rise_above_programs()
    _allow_many_descriptors()
    cgroups.remove_stale_groups()
    sys.exit(asyncio.run(_preflight(options) if options.preflight else _serve(options)))


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Runs untrusted Python programs in disposable sandboxes.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--secret-file", help="holds the bearer token that requests must carry; read and deleted")
    parser.add_argument("--cpus", help="comma-separated; default: all that this process may use")
    parser.add_argument("--memory-mib", type=int, help="the machine's memory; default: what the kernel says")
    parser.add_argument("--exit-with-parent", type=int, metavar="PID", help="die when this parent dies")
    parser.add_argument("--preflight", action="store_true", help="only prove isolation")
    options = parser.parse_args()
    if not options.preflight and not options.secret_file:
        parser.error("--secret-file is needed")
    return options


async def _serve(options: argparse.Namespace) -> int:
    scheduler = _make_scheduler(options)
    with open(options.secret_file) as file:
        secret = file.read().strip()
    os.unlink(options.secret_file)
    if not secret:
        sys.exit("the secret file is empty")
    service = Service(scheduler, secret, supervisor_version(), _mode())
    server = await http_server.serve(options.host, options.port, service.authorize, service.handle)
    print(json.dumps({"listening": True, "port": server.sockets[0].getsockname()[1]}), flush=True)
    stopped = asyncio.get_running_loop().create_future()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, _resolve, stopped)
    if not await service.become_ready():
        print(json.dumps(service.health()[1]), file=sys.stderr, flush=True)
    await stopped
    server.close()
    scheduler.close()
    return 0


async def _preflight(options: argparse.Namespace) -> int:
    scheduler = _make_scheduler(options)
    held, failed = await preflight.prove_isolation(scheduler)
    scheduler.close()
    print(json.dumps({"ok": not failed, "mode": _mode(), "failed": failed, "properties": held}, indent=1))
    return 1 if failed else 0


def _make_scheduler(options: argparse.Namespace) -> Scheduler:
    cpus = sorted(os.sched_getaffinity(0))
    if options.cpus:
        cpus = [int(cpu) for cpu in options.cpus.split(",")]
    real_mib = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20
    # The kernel keeps a part for itself. Whoever names much more than there is must not have programs run out of it.
    machine_mib = min(options.memory_mib or real_mib, int(real_mib / _KERNEL_LEAVES))
    return Scheduler(cpus, machine_mib - _OWN_MEMORY_MIB)


def _mode() -> str:
    return "rootless" if is_rootless((1 << 31) + UIDS_PER_SLOT) else "root"


def _protect_from_oom_killer() -> None:
    """Cases volunteer for the kernel's killer; what watches over them should be the last to go."""
    try:
        kernel.write_file("/proc/self/oom_score_adj", _OOM_PROTECTION)
    except OSError:
        pass  # only root may; a case's own +1000 then does what is needed


def _rise_above_programs() -> None:
    """Where all processes compete as equals (in a cgroup without groups of its own), 64 spinning processes of a case
    would leave the one that should end them next to nothing. Cases go back to 0."""
    try:
        os.setpriority(os.PRIO_PROCESS, 0, _OWN_NICENESS)
    except OSError:
        pass  # only root may


def _allow_many_descriptors() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _resolve(future: asyncio.Future) -> None:
    if not future.done():
        future.set_result(None)


if __name__ == "__main__":
    main()
