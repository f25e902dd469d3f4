"""What test files commonly want of pytest, where there is no pytest: `import pytest` finds this in a judge.

How tests are found and run is in `pytest_runner.py`. Whatever is asked for and isn't here makes the tests invalid.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import math
import re

from pytest_fixtures import fixture
from pytest_marks import Row as param  # noqa: N813
from pytest_marks import mark
from remote_program import RemoteObject, UnusableTest, note_judged

__all__ = ["approx", "fail", "fixture", "importorskip", "mark", "param", "raises", "skip"]


class Failed(BaseException):
    """Said by `fail`, and by `raises` where nothing was raised: no `except Exception` of a test takes it."""


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    raise UnusableTest("the tests want pytest.%s, which is not there" % name)


def refuse_what_is_missing(source: str) -> None:
    """Before anything runs: where it is asked for may hang on the program."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "pytest":
            if node.attr not in (*__all__, "main"):  # files that can be started call it there, and nobody starts them
                __getattr__(node.attr)


def fail(reason="", pytrace=True):
    raise Failed(reason)


class Skipped(BaseException):
    """Said by `skip`."""


def skip(reason="", *, allow_module_level=False):
    raise Skipped(reason)


def importorskip(modname, minversion=None, reason=None):
    try:
        return importlib.import_module(modname)
    except ImportError:
        raise UnusableTest("the tests want the module %s, which is not there" % modname) from None


class _Raised:
    def __init__(self):
        self.type = self.value = None

    def match(self, pattern):
        return _check_match(pattern, self.value)


def _check_match(pattern, error) -> bool:
    if re.search(pattern, str(error)) is None:
        raise Failed("%r does not match %r" % (pattern, str(error)))
    return True


@contextlib.contextmanager
def _raising(expected, match):
    raised = _Raised()
    try:
        yield raised
    except expected as error:
        raised.type, raised.value = type(error), error
        if match is not None:
            _check_match(match, error)
    else:
        raise Failed("nothing was raised")


def raises(expected_exception, *arguments, match=None, **named):
    kinds = expected_exception if type(expected_exception) is tuple else (expected_exception,)
    for kind in kinds:
        if type(kind) is RemoteObject:
            note_judged(kind)
            raise Failed("what should be raised is no exception")
    if not arguments:
        return _raising(expected_exception, match)
    with _raising(expected_exception, match) as raised:
        arguments[0](*arguments[1:], **named)
    return raised


class approx:  # noqa: N801
    """A number, or a list, tuple or dict of numbers, within a tolerance; pytest's own defaults."""

    __hash__ = None

    def __init__(self, expected, rel=None, abs=None, nan_ok=False):
        self._expected, self._rel, self._abs, self._nan_ok = expected, rel, abs, nan_ok

    def __repr__(self):
        return "approx(%r)" % (self._expected,)

    def __eq__(self, actual):
        expected = self._expected
        if type(actual) is RemoteObject:
            note_judged(actual)
            return False
        if isinstance(expected, dict):
            same_keys = isinstance(actual, dict) and actual.keys() == expected.keys()
            return same_keys and all(self._is_close(actual[key], expected[key]) for key in expected)
        if isinstance(expected, (list, tuple)):
            same_shape = isinstance(actual, (list, tuple)) and len(actual) == len(expected)
            return same_shape and all(map(self._is_close, actual, expected))
        return self._is_close(actual, expected)

    def _is_close(self, actual, expected) -> bool:
        if not all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in (actual, expected)):
            return type(actual) is type(expected) and actual == expected
        if math.isnan(expected):
            return self._nan_ok and math.isnan(actual)
        if actual == expected:
            return True
        if math.isinf(actual) or math.isinf(expected):
            return False
        absolute = 1e-12 if self._abs is None else self._abs
        relative = 1e-6 if self._rel is None else self._rel
        if self._abs is not None and self._rel is None:
            relative = 0.0
        return abs(actual - expected) <= max(relative * abs(expected), absolute)
