"""Runs the tests of a `unittest.TestCase` by unittest itself; `unittest` is loaded by the tests, or not at all."""

from __future__ import annotations

import sys

from asked import Asked
from pytest_fixtures import Endings
from pytest_stand_in import Skipped
from remote_program import UnusableTest


def test_names(kind: type) -> list:
    unittest = sys.modules["unittest"]
    isolated = getattr(unittest, "IsolatedAsyncioTestCase", None)
    if isolated is not None and issubclass(kind, isolated):
        raise UnusableTest("the tests are coroutines, which nobody would run")
    names = list(unittest.TestLoader().getTestCaseNames(kind))
    return names or (["runTest"] if hasattr(kind, "runTest") else [])


class TestCases:
    """The tests of one class."""

    def __init__(self, kind: type, names):
        self.kind, self.items = kind, names

    def run(self, asked: Asked) -> int:
        """How many ran; raises what the first failing one raised."""
        if getattr(self.kind, "__unittest_skip__", False):
            return 0
        unittest = sys.modules["unittest"]
        began = asked.now()
        try:
            asked.share(self.kind.setUpClass)
        except (unittest.SkipTest, Skipped):
            return _skip(asked, began)
        endings = Endings()
        endings.add(self.kind.doClassCleanups)
        endings.add(self.kind.tearDownClass)
        return endings.around(lambda: sum(self._run_test(unittest, name, asked) for name in self.items))

    def _run_test(self, unittest, name: str, asked: Asked) -> int:
        began = asked.now()
        result = _make_result(unittest)
        self.kind(name)(result)
        if result.failure is not None:
            raise result.failure
        return _skip(asked, began) if result.is_skipped else 1


def _skip(asked: Asked, began: int) -> int:
    assert asked.may_skip(began), "the test skips the rest of itself"
    return 0


def _make_result(unittest):
    class FirstFailure(unittest.TestResult):
        """Of subtests, too. What no test may catch is a failure also where one is expected."""

        failure = None
        is_skipped = False

        def addError(self, test, err):  # noqa: N802
            if isinstance(err[1], Skipped):
                self.is_skipped = True
            else:
                self.failure = self.failure or err[1]

        addFailure = addError  # noqa: N815

        def addSubTest(self, test, subtest, err):  # noqa: N802
            if err is not None:
                self.addError(test, err)

        def addExpectedFailure(self, test, err):  # noqa: N802
            if not isinstance(err[1], Exception):
                self.addError(test, err)

        def addUnexpectedSuccess(self, test):  # noqa: N802
            self.failure = self.failure or AssertionError("a failure was expected")

        def addSkip(self, test, reason):  # noqa: N802
            self.is_skipped = True

    return FirstFailure()
