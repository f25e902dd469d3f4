"""A network namespace for each case that holds nothing of an earlier one.

Theory of operation. The filter leaves programs no socket family but AF_UNIX, so what one can leave in a network
namespace is sockets with abstract names. They outlive their process while descriptors of theirs are in flight between
sockets that hold each other (SCM_RIGHTS), until the kernel collects them. Making a namespace costs a sizeable share of
a whole case, so one is used again, but only once its case is dead and the kernel shows no socket in it. One in
which something is left is let go, and lasts as long as what is in it. No two children are ever in the same one.
"""

from __future__ import annotations

import os

import kernel

_SOCKETS = "/proc/self/net/unix"
_OWN = "/proc/self/ns/net"
_SOCKET_LINES_BYTES = 1024  # the heading and a first socket


class NetworkNamespaces:
    """Those of one zygote's children. Made by a process in a network namespace of its own."""

    def __init__(self):
        self._own = _open_present()
        self._unused = []
        # One is made at once, and looked into, so that a host where that can't be done is known before any program.
        namespace = self.enter_unused()
        self.leave()
        self.give_back(namespace)
        if not self._unused:
            raise RuntimeError("the kernel doesn't show that a new network namespace is without sockets")

    def enter_unused(self) -> int:
        """Enters a namespace without sockets, which is the next child's, and answers its descriptor."""
        if self._unused:
            namespace = self._unused.pop()
            kernel.enter_namespace(namespace, kernel.CLONE_NEWNET)
            return namespace
        kernel.unshare(kernel.CLONE_NEWNET)
        return _open_present()

    def leave(self) -> None:
        """Back to the zygote's own, where the channels to its children are made."""
        kernel.enter_namespace(self._own, kernel.CLONE_NEWNET)

    def give_back(self, namespace: int) -> None:
        """After the death of all processes that were in it."""
        kernel.enter_namespace(namespace, kernel.CLONE_NEWNET)
        try:
            is_empty = _is_without_sockets()
        finally:
            self.leave()
        if is_empty:
            self._unused.append(namespace)
        else:
            os.close(namespace)


def _open_present() -> int:
    return os.open(_OWN, os.O_RDONLY | os.O_CLOEXEC)


def _is_without_sockets() -> bool:
    """Only the heading is there. What can't be read is taken for a socket."""
    try:
        shown = kernel.read_file(_SOCKETS, _SOCKET_LINES_BYTES)
    except OSError:
        return False
    return shown.startswith(b"Num") and shown.count(b"\n") == 1
