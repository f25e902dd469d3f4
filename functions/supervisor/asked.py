"""What tests have asked the program so far: a skip after that may be the program's own choice."""

from __future__ import annotations


class Asked:
    """`is_shared`: whether several tests share what the program answered, as those of a file do that asks it for a
    constant at its top."""

    def __init__(self, count):
        """`count` says how often the program was asked."""
        self._count = count
        self.is_shared = count() > 0

    def now(self) -> int:
        return self._count()

    def may_skip(self, since: int) -> bool:
        """Whether nothing that the program said can have led to a skip in a test that began then."""
        return not self.is_shared and self._count() == since

    def share(self, work):
        """What `work` returns, which is done for several tests."""
        before = self._count()
        try:
            return work()
        finally:
            self.is_shared = self.is_shared or self._count() > before
