"""What test files commonly want of pytest, where there is no pytest: `import pytest` finds this in a judge.

A test is a function whose name begins with `test`, at module level or in a class whose name begins with `Test`, or in a
`unittest.TestCase`. All must pass. There are `raises`, `approx`, `fail`, `fixture` and `mark.parametrize`; other marks
do nothing. Whatever else is asked for makes the tests invalid.
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
import math
import re
import sys

from remote_program import RemoteObject, UnusableTest


class Failed(BaseException):
    """Said by `fail`, and by `raises` where nothing was raised: no `except Exception` of a test takes it."""


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    raise UnusableTest("the tests want pytest.%s, which is not there" % name)


def fail(reason="", pytrace=True):
    raise Failed(reason)


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
    if any(type(kind) is RemoteObject for kind in kinds):
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


def fixture(function=None, *, params=None, **_):
    if params is not None:
        raise UnusableTest("the tests want fixtures with params, which are not there")

    def mark(made):
        made.is_fixture = True
        return made

    return mark if function is None else mark(function)


class _Mark:
    def parametrize(self, names, rows, ids=None):
        names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
        sets = [dict(zip(names, row if len(names) > 1 else [row])) for row in rows]

        def mark(function):
            function.parameters = [*getattr(function, "parameters", []), sets]
            return function

        return mark

    def __getattr__(self, name):
        if name in ("skip", "skipif", "xfail", "usefixtures", "asyncio"):
            raise UnusableTest("the tests want pytest.mark.%s, which is not there" % name)
        return lambda *arguments, **_: arguments[0] if arguments and callable(arguments[0]) else (lambda made: made)


mark = _Mark()


# -- running


def run_tests(namespace: dict) -> None:
    """Runs every test of a file; raises what the first failing one raises."""
    count = 0
    unittest = sys.modules.get("unittest")  # it is large: loaded only by tests that want it
    for name, found in list(namespace.items()):
        if type(found) is RemoteObject:
            continue
        if unittest and isinstance(found, type) and issubclass(found, unittest.TestCase):
            count += _run_test_case(found, unittest.TestLoader())
        elif isinstance(found, type) and name.startswith("Test"):
            count += _run_test_class(found, namespace)
        elif inspect.isfunction(found) and name.startswith("test"):
            count += _run_function(found, found, namespace)
    if count == 0:
        raise UnusableTest("there is no test in the tests")


def _run_function(function, bound, namespace: dict) -> int:
    if inspect.iscoroutinefunction(function):
        raise UnusableTest("the tests are coroutines, which nobody would run")
    count = 0
    for sets in itertools.product(*getattr(function, "parameters", [])):
        given = {name: value for one in sets for name, value in one.items()}
        with contextlib.ExitStack() as stack:
            bound(**_arguments(bound, given, namespace, stack, {}))
        count += 1
    return count


def _arguments(function, given: dict, namespace: dict, stack, made: dict) -> dict:
    found = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if name in given:
            found[name] = given[name]
        elif getattr(namespace.get(name), "is_fixture", False):
            if name not in made:
                made[name] = _make_fixture(namespace[name], given, namespace, stack, made)
            found[name] = made[name]
        elif parameter.default is inspect.Parameter.empty and name != "self":
            raise UnusableTest("the tests want the fixture %s, which is not there" % name)
    return found


def _make_fixture(function, given: dict, namespace: dict, stack, made: dict):
    arguments = _arguments(function, given, namespace, stack, made)
    if inspect.isgeneratorfunction(function):
        return stack.enter_context(contextlib.contextmanager(function)(**arguments))
    return function(**arguments)


def _run_test_class(kind: type, namespace: dict) -> int:
    count = 0
    for name, function in list(vars(kind).items()):
        if name.startswith("test") and callable(function):
            instance = kind()
            for step in ("setup_method", "setup"):
                if hasattr(instance, step):
                    getattr(instance, step)()
            count += _run_function(function, getattr(instance, name), namespace)
            if hasattr(instance, "teardown_method"):
                instance.teardown_method()
    return count


def _run_test_case(kind: type, loader) -> int:
    names = loader.getTestCaseNames(kind)
    kind.setUpClass()
    for name in names:
        test = kind(name)
        test.setUp()
        getattr(test, name)()
        test.tearDown()
    kind.tearDownClass()
    return len(names)
