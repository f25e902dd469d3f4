"""Proving isolation before the first program: live attacks through the ordinary path.

A property counts only if its attack was made and failed, on this very machine, with the very zygotes that will run
programs. Anything else (an attack that couldn't be made, a line that is missing) refuses the worker.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import tempfile

import kernel
import probes
import processes
from root_filesystem import MOUNT_POINTS, interpreter_prefixes
from slots import PROCESS_LIMIT

_DEADLINE_S = 20.0
_SETTLE_S = 5.0
_SETTLE_POLL_S = 0.005
_PROBE_LIMITS = {"time_ms": 3000, "memory_mib": 64, "output_bytes": 65536}
_SLEEPER_LIMITS = {**_PROBE_LIMITS, "time_ms": 200}
_PROGRAMS = {
    "attacks": (probes.ATTACKS, _PROBE_LIMITS),
    "residue": (probes.RESIDUE, _PROBE_LIMITS),
    "daemon": (probes.DAEMON, _PROBE_LIMITS),
    "sleeper": (probes.SLEEPER, _SLEEPER_LIMITS),
    "hoarder": (probes.HOARDER, _PROBE_LIMITS),
    "flooder": (probes.FLOODER, _PROBE_LIMITS),
}
_REMEDIES = (
    ("unshare", "allow user namespaces: sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone or "
                "kernel.apparmor_restrict_unprivileged_userns; or run as root"),
    ("uid_map", "allow user namespaces for this user (kernel.apparmor_restrict_unprivileged_userns=0), or run as root"),
    ("mount_setattr", "use Linux 5.12 or newer"),
    ("mount", "allow mounts in a user namespace: a container needs an unmasked /proc (systempaths=unconfined)"),
    ("seccomp", "use a kernel with CONFIG_SECCOMP_FILTER on x86_64 or aarch64"),
)  # fmt: skip


async def prove_isolation(scheduler):
    """({property: what was seen}, [{property, detail, remedy}] of those that don't hold)"""
    with _Bait() as bait:
        lines = await _run_probes(scheduler, bait)
    if scheduler.failure():  # no sandbox could be made at all, so no property was tried
        return {}, [describe_failure("isolation", scheduler.failure())]
    ended = {line["program"]: line for line in lines if line["type"] == "ended"}
    found = _judge_probes(ended)
    found["no_survivors"] = await _survivors(scheduler)
    held = {name: detail for name, (holds, detail) in found.items() if holds}
    failed = [describe_failure(name, detail) for name, (holds, detail) in found.items() if not holds]
    return held, failed


def describe_failure(name: str, detail: str) -> dict:
    return {"property": name, "detail": detail, "remedy": _remedy_for(detail)}


def _remedy_for(detail: str) -> str:
    for word, remedy in _REMEDIES:
        if word in detail:
            return remedy
    return "run on a Linux host with user, pid, mount, ipc, net and uts namespaces and seccomp; this one lacks one"


class _Bait:
    """Things of the host that a case must not reach."""

    def __enter__(self):
        self._directory = tempfile.mkdtemp()
        os.chmod(self._directory, 0o755)
        self.witness = self._directory + "/witness"
        with open(self.witness, "w") as file:
            file.write("secret")
        self._tcp = socket.create_server(("127.0.0.1", 0))
        self.port = self._tcp.getsockname()[1]
        self.abstract = "\0code-rewards-%d" % os.getpid()
        self.socket_path = self._directory + "/socket"
        self._sockets = [self._tcp, _listen(self.abstract), _listen(self.socket_path)]
        os.chmod(self.socket_path, 0o777)
        return self

    def __exit__(self, *_):
        for listener in self._sockets:
            listener.close()
        os.unlink(self.socket_path)
        os.unlink(self.witness)
        os.rmdir(self._directory)

    def describe(self) -> str:
        tops = [path.split("/")[1] for path in ["/usr"] + interpreter_prefixes() + ["/" + p for p in MOUNT_POINTS]]
        return json.dumps(
            {
                "witness": self.witness,
                "port": self.port,
                "abstract": self.abstract,
                "socket_path": self.socket_path,
                "root_entries": sorted({"bin", "sbin", "lib", "lib32", "lib64", "etc", *tops}),
                "machine": kernel.MACHINE,
                "process_limit": PROCESS_LIMIT,
            }
        )


def _listen(address: str) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen(1)
    return listener


class _Lines(list):
    """A sink that keeps up with everything."""

    write = list.append

    def is_congested(self) -> bool:
        return False


async def _run_probes(scheduler, bait: _Bait):
    lines = _Lines()
    programs = [
        {"id": name, "source": source, "inputs": [bait.describe()], "limits": limits}
        for name, (source, limits) in _PROGRAMS.items()
    ]
    chunk = await scheduler.execute(0, "preflight", programs, _DEADLINE_S, lines)
    await chunk.over
    return lines


def _judge_probes(ended: dict) -> dict:
    """{property: (holds, what was seen)}"""
    found = {}
    for name in _PROGRAMS:
        if ended.get(name, {}).get("status") in (None, "isolation_failed"):
            found[name] = False, ended.get(name, {}).get("detail", "the probe gave no result")
    if found:
        return found
    try:
        for name, (holds, seen) in json.loads(ended["attacks"]["stdout"]).items():
            found[name] = holds, seen
    except (ValueError, KeyError):
        found["attacks"] = False, json.dumps(ended["attacks"])[:500]
    found["no_residue"] = _is(ended["residue"].get("stdout", "").strip(), "['main.py']")
    found["children_die_with_program"] = _is(ended["daemon"].get("stdout", "").strip(), "gone")
    found["time_limit"] = _is(ended["sleeper"]["status"], "time_limit")
    found["memory_limit"] = _is(ended["hoarder"]["status"], "memory_limit")
    found["output_limit"] = _is(ended["flooder"]["status"], "output_limit")
    return found


def _is(seen, wanted):
    return seen == wanted, str(seen)[:160]


async def _survivors(scheduler):
    """Per slot two zygote processes and its waiting children may be left, nothing else."""
    loop = asyncio.get_running_loop()
    until_s = loop.time() + _SETTLE_S
    while loop.time() < until_s and not all(slot.is_settled() for slot in scheduler.slots):
        await asyncio.sleep(_SETTLE_POLL_S)
    allowed = sum(2 + slot.live_children() for slot in scheduler.slots)
    left = len(processes.process_tree(os.getpid())) - 1
    return left <= allowed, "%d processes, %d expected" % (left, allowed)
