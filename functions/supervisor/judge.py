"""Tests in Python, in a case in which none of the program's code runs: their verdict is theirs alone.

Theory of operation. The case gets a test as JSON, two descriptors by which it talks to the program in the case beside
it (see `remote_program.py`), and one on which it reports. Whose the names are that it uses: see `test_names.py`.

    {"outcome": "passed"}
    {"outcome": "failed", "detail": …}     an assertion, or an error about what the program returned
    {"outcome": "raised", "detail": …}     the program raised, or lacks a name
    {"outcome": "gone"}                    the program ended; how, is seen elsewhere
    {"outcome": "invalid", "detail": …}    the test is at fault: no program could pass it, or every program would
"""

from __future__ import annotations

import json
import os
import sys
import traceback

import program
import pytest_runner
import pytest_stand_in
from asked import Asked
from remote_program import ProgramGone, RemoteProgram, UnusableTest
from test_names import execute, list_sure_raises, make_namespace

_DETAIL_CHARACTERS = 1000


def judge(test_text: bytes, requests_fd: int, answers_fd: int, report_fd: int) -> None:
    """Runs a test, reports, and ends the process."""
    requests = open(requests_fd, "w", encoding="ascii", newline="\n")
    answers = open(answers_fd, encoding="ascii", newline="\n")
    report = _run(json.loads(test_text), RemoteProgram(requests, answers))
    os.write(report_fd, json.dumps(report).encode("ascii"))
    program.flush_standard_streams()
    os._exit(0)


def _run(test: dict, remote: RemoteProgram) -> dict:
    try:
        _TESTS[test["kind"]](test, remote)
    except BaseException as error:
        return _explain(error, remote)
    if remote.is_gone:
        return {"outcome": "gone"}
    if not remote.had_influence:
        return _invalid("the tests ask the program for nothing")
    return {"outcome": "passed"}


def _explain(error: BaseException, remote: RemoteProgram) -> dict:
    detail = "".join(traceback.format_exception_only(type(error), error)).strip()[-_DETAIL_CHARACTERS:]
    if isinstance(error, UnusableTest):
        return _invalid(str(error))
    if isinstance(error, ProgramGone) or remote.is_gone:
        return {"outcome": "gone"}
    print(detail, file=sys.stderr)
    if getattr(error, "is_of_program", False):
        return {"outcome": "raised", "detail": detail}
    if isinstance(error, ModuleNotFoundError):
        return _invalid(detail)
    if remote.missing and isinstance(error, (NameError, ImportError, AttributeError)):
        return {"outcome": "raised", "detail": "the program has no %s" % ", ".join(sorted(remote.missing))}
    has_part = remote.had_influence or remote.was_judged or remote.missing
    if has_part and isinstance(error, (Exception, pytest_stand_in.Failed, pytest_stand_in.Skipped)):
        return {"outcome": "failed", "detail": detail}
    return _invalid(detail)


def _invalid(detail: str) -> dict:
    return {"outcome": "invalid", "detail": detail}


# -- the kinds of tests


def _run_asserts(test: dict, remote: RemoteProgram) -> None:
    namespace = make_namespace(test["before"], [test["setup"], test["statement"]], remote)
    _execute_tests(test["setup"], "setup.py", namespace, remote)
    _execute_tests(test["statement"], "test.py", namespace, remote)


def _run_check_function(test: dict, remote: RemoteProgram) -> None:
    namespace = make_namespace(test["before"], [test["source"]], remote, test["entry_point"])
    candidate = namespace[test["entry_point"]] = _find_entry_point(remote, test["entry_point"])
    _execute_tests(test["source"], "test.py", namespace, remote)
    namespace["check"](candidate)


def _find_entry_point(remote: RemoteProgram, name: str):
    """A function, or a method of a new object as in `Solution().add`."""
    kind, _, method = name.rpartition("().")
    return getattr(_look_up(remote, kind)(), method) if kind else _look_up(remote, name)


def _run_pytest(test: dict, remote: RemoteProgram) -> None:
    sys.modules["pytest"] = pytest_stand_in
    pytest_stand_in.refuse_what_is_missing(test["source"])
    namespace = make_namespace("", [test["source"]], remote)
    _execute_tests(test["source"], "test_solution.py", namespace, remote)
    pytest_runner.run_tests(namespace, Asked(lambda: remote.questions))


_TESTS = {"asserts": _run_asserts, "check_function": _run_check_function, "pytest": _run_pytest}


def _execute_tests(source: str, name: str, namespace: dict, remote: RemoteProgram) -> None:
    remote.sure_raises |= list_sure_raises(source, name)
    execute(source, name, namespace)


def _look_up(remote: RemoteProgram, name: str):
    try:
        return remote.look_up(name)
    except AttributeError as error:
        error.is_of_program = True
        raise
