"""Finds the tests of a file as pytest does, and runs them: all must pass.

A test is a function whose name begins with `test`, at module level or in a class whose name begins with `Test` (its
bases' and inner classes' too), or in a `unittest.TestCase`. All are found before one runs, and what can't be run makes
the tests invalid: nothing is left out in silence that pytest would run. Skipped is what says so itself, but no skip may
follow from what the program has answered.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import sys
import types

import pytest_marks
import unittest_runner
from asked import Asked
from pytest_fixtures import Fixture, Fixtures, Kept, Scene, wanted_names
from pytest_stand_in import Failed, Skipped
from remote_program import RemoteObject, UnusableTest


def run_tests(namespace: dict, asked: Asked) -> None:
    """Raises what the first failing test raises."""
    if namespace.get("__test__", True) is False:
        raise UnusableTest("there is no test in the tests")
    file = _File(namespace, asked)
    groups = list(_collect(file))
    count = _run_or_skip(file, lambda: file.kept["module"].endings.around(lambda: _run_file(file, groups)))
    if count == 0:
        raise UnusableTest("there is no test in the tests")


class _File:
    def __init__(self, namespace: dict, asked: Asked):
        self.namespace, self.asked = namespace, asked
        self.module = _Module(namespace)
        shared = Kept()
        self.kept = {"session": shared, "package": shared, "module": shared}
        self.marks = pytest_marks.marks_of(self.module)


class _Module:
    """The test file as `setup_module` gets it."""

    def __init__(self, namespace: dict):
        object.__setattr__(self, "__dict__", namespace)


class _Group:
    """Tests that share a class, or the module's functions (`kind` is None)."""

    def __init__(self, file: _File, kind, functions):
        self.kind = kind
        owners = [file.namespace, *(vars(base) for base in reversed(kind.__mro__))] if kind else [file.namespace]
        self.fixtures = Fixtures(owners)
        self.marks = file.marks + (pytest_marks.marks_of(kind) if kind else [])
        self.items = [item for name, function in functions for item in _items(file.asked, self, name, function)]


class _Item:
    """One test with one set of arguments."""

    def __init__(self, name: str, arguments: pytest_marks.ArgumentSet, fixtures, wanted):
        self.name, self.arguments, self.fixtures, self.wanted = name, arguments, fixtures, wanted


# -- finding


def _collect(file: _File):
    """Groups of tests, and test cases of unittest."""
    functions = [(name, found) for name, found in file.namespace.items() if _is_test_function(name, found)]
    yield _Group(file, None, functions)
    yield from _collect_classes(file, file.namespace, [])


def _collect_classes(file: _File, values, outer):
    for name, found in list(values.items()):
        if not inspect.isclass(found) or found in outer or _says_of_itself(found) is False:
            continue
        unittest = sys.modules.get("unittest")  # it is large: loaded only by tests that want it
        if unittest and issubclass(found, unittest.TestCase):
            yield _collect_test_case(file, found)
        elif (name.startswith("Test") or _says_of_itself(found)) and _is_made_without_arguments(found):
            members = _members(found)
            yield _Group(file, found, [(each, one) for each, one in members.items() if _is_test_function(each, one)])
            yield from _collect_classes(file, members, [*outer, found])


def _is_made_without_arguments(kind: type) -> bool:
    """Pytest takes a class with a constructor for no tests, whatever its name."""
    return kind.__init__ is object.__init__ and kind.__new__ is object.__new__


def _members(kind: type) -> dict:
    found = {}
    for base in reversed(kind.__mro__[:-1]):
        found.update(vars(base))
    return found


def _says_of_itself(found):
    """Whether it is a test, by `__test__`; None where it says nothing."""
    said = getattr(found, "__test__", None)
    return said if said is True or said is False else None


def _is_test_function(name: str, found) -> bool:
    if type(found) is RemoteObject or isinstance(found, Fixture) or not inspect.isfunction(_function_in(found)):
        return False
    said = _says_of_itself(found)
    return said if said is not None else name.startswith("test")


def _unbound(found):
    return found.__func__ if isinstance(found, (staticmethod, classmethod, types.MethodType)) else found


def _function_in(found):
    """What is behind a method, a partial and decorators that say what they wrap, as pytest looks for a test."""
    found = _unbound(found)
    while True:
        if isinstance(found, functools.partial):
            found = found.func
        elif "__wrapped__" in getattr(found, "__dict__", ()):
            found = found.__wrapped__
        else:
            return found


def _items(asked: Asked, group: _Group, name: str, found):
    _refuse_what_would_not_run(name, found)
    marks = group.marks + pytest_marks.marks_of(_function_in(found))
    wanted = wanted_names(_unbound(found))
    needed = [*group.fixtures.automatic(), *pytest_marks.used_fixtures(marks), *wanted]
    for arguments in pytest_marks.argument_sets(marks, asked):
        fixtures = group.fixtures.closure(needed, arguments.direct)
        unknown = (set(arguments.direct) - set(wanted)) | (set(arguments.indirect) - set(fixtures))
        if unknown - _given_to(group.fixtures, fixtures):
            raise UnusableTest("the tests give %s an argument that it does not take" % name)
        if pytest_marks.is_skipped([*marks, *arguments.marks], asked):
            continue
        for chosen in _fixture_params(asked, group.fixtures, fixtures, arguments.indirect):
            yield _Item(name, arguments.joined(pytest_marks.ArgumentSet(indirect=chosen)), fixtures, wanted)


def _given_to(fixtures: Fixtures, names) -> set:
    return {wanted for name in names for wanted in wanted_names(fixtures.found[name].function)}


def _refuse_what_would_not_run(name: str, found) -> None:
    if isinstance(found, types.MethodType):
        raise UnusableTest("the test %s is the method of an object, which pytest can't call" % name)
    function = _unbound(found)
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise UnusableTest("the test %s is a coroutine, which nobody would run" % name)
    if inspect.isgeneratorfunction(function):
        raise UnusableTest("the test %s yields, so that nobody would run it" % name)


def _fixture_params(asked: Asked, fixtures: Fixtures, names, indirect: dict):
    """The combinations of the parameters that the fixtures themselves have."""
    own = [(name, fixtures.found[name].params) for name in names if name not in indirect]
    own = [(name, params) for name, params in own if params is not None]
    for values in itertools.product(*(params for _, params in own)):
        rows = [value if type(value) is pytest_marks.Row else pytest_marks.Row(value) for value in values]
        if not pytest_marks.is_skipped([one for row in rows for one in row.marks], asked):
            yield {name: row.values[0] for (name, _), row in zip(own, rows)}


def _collect_test_case(file: _File, kind: type):
    if any(isinstance(value, Fixture) for value in _members(kind).values()):
        raise UnusableTest("the tests have a fixture in a TestCase, which is not there")
    names = []
    for name in unittest_runner.test_names(kind):
        method = inspect.getattr_static(kind, name)
        _refuse_what_would_not_run(name, method)
        function = _function_in(method)
        own = pytest_marks.marks_of(function) if inspect.isfunction(function) else []
        marks = file.marks + pytest_marks.marks_of(kind) + own
        if any(one.name in ("parametrize", "usefixtures") for one in marks):
            raise UnusableTest("the tests give arguments or fixtures to a TestCase, which takes none")
        if not pytest_marks.is_skipped(marks, file.asked):
            names.append(name)
    return unittest_runner.TestCases(kind, names)


# -- running


def _run_file(file: _File, groups) -> int:
    if not any(group.items for group in groups):
        return 0
    _set_up_file(file)
    return sum(_run_group(file, group) for group in groups if group.items)


def _set_up_file(file: _File) -> None:
    names, module = file.namespace, file.module
    file.asked.share(lambda: _call_each(names, ("setup_module", "setUpModule"), module))
    file.kept["module"].endings.add(lambda: _call_each(names, ("teardown_module", "tearDownModule"), module))


def _call_each(values: dict, names, argument) -> None:
    for name in names:
        if name in values:
            _call_with(values[name], argument)


def _call_with(step, argument) -> None:
    """Such functions may take what they are called for, or nothing."""
    if isinstance(step, Fixture):
        return  # an automatic one of such a name is called as what it is
    step(*((argument,) if inspect.signature(step).parameters else ()))


def _run_group(file: _File, group) -> int:
    if isinstance(group, unittest_runner.TestCases):
        return group.run(file.asked)
    kept = {**file.kept, "class": Kept()}
    return _run_or_skip(file, lambda: kept["class"].endings.around(lambda: _run_class(file, group, kept)))


def _run_class(file: _File, group: _Group, kept: dict) -> int:
    kind = group.kind
    if kind is not None and hasattr(kind, "setup_class"):
        file.asked.share(lambda: _call_with(kind.setup_class, kind))
    if kind is not None and hasattr(kind, "teardown_class"):
        kept["class"].endings.add(lambda: _call_with(kind.teardown_class, kind))
    return sum(_run_item(file, group, item, {**kept, "function": Kept()}) for item in group.items)


def _run_item(file: _File, group: _Group, item: _Item, kept: dict) -> int:
    endings = kept["function"].endings
    return _run_or_skip(file, lambda: endings.around(lambda: _run_test(file, group, item, kept)) or 1)


def _run_or_skip(file: _File, work) -> int:
    """How many tests `work` has run; none where it skips itself."""
    began = file.asked.now()
    try:
        return work()
    except BaseException as error:
        if not _is_skip(error):
            raise
        if not file.asked.may_skip(began):
            raise Failed("the tests skip themselves after they have asked the program") from None
        return 0


def _is_skip(error: BaseException) -> bool:
    unittest = sys.modules.get("unittest")
    return isinstance(error, Skipped) or (unittest is not None and isinstance(error, unittest.SkipTest))


def _run_test(file: _File, group: _Group, item: _Item, kept: dict) -> None:
    instance = None if group.kind is None else group.kind()
    test = file.namespace[item.name] if instance is None else getattr(instance, item.name)
    steps = file.namespace if instance is None else {name: getattr(instance, name, None) for name in _METHOD_STEPS}
    setups, teardowns = (_FUNCTION_STEPS, _FUNCTION_TEARDOWNS) if instance is None else (_SETUPS, _TEARDOWNS)
    steps = {name: step for name, step in steps.items() if step is not None}
    _call_each(steps, setups, test)
    kept["function"].endings.add(lambda: _call_each(steps, teardowns, test))
    direct, indirect = item.arguments.direct, item.arguments.indirect
    scene = Scene(group.fixtures, kept, file.asked.share, instance, direct, indirect)
    for name in item.fixtures:
        scene.value_of(name)
    test(**{name: scene.value_of(name) for name in item.wanted})


_FUNCTION_STEPS, _FUNCTION_TEARDOWNS = ("setup_function",), ("teardown_function",)
_SETUPS, _TEARDOWNS = ("setup_method", "setup"), ("teardown_method", "teardown")
_METHOD_STEPS = _SETUPS + _TEARDOWNS
