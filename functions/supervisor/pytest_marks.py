"""Marks of tests, and the sets of arguments that `parametrize` gives them, as pytest means them."""

from __future__ import annotations

import inspect

from asked import Asked
from remote_program import RemoteObject, UnusableTest

# Marks that need something which is not here, or that no verdict follows from.
_UNUSABLE = frozenset(("asyncio", "anyio", "trio", "xfail"))


class Mark:
    def __init__(self, name: str, arguments=(), named=None):
        self.name, self.arguments, self.named = name, arguments, named or {}

    def __call__(self, *arguments, **named):
        only = arguments[0] if len(arguments) == 1 and not named else None
        if inspect.isfunction(only) or inspect.isclass(only):
            only.pytestmark = [*_as_list(vars(only).get("pytestmark", [])), self]
            return only
        return Mark(self.name, self.arguments + arguments, {**self.named, **named})


class _Marks:
    def __getattr__(self, name):
        return Mark(name)


mark = _Marks()


class Row:
    """One set of values with marks of its own: `pytest.param`."""

    def __init__(self, *values, marks=(), id=None):
        self.values, self.marks = values, _as_list(marks)


def _as_list(marks) -> list:
    return list(marks) if isinstance(marks, (list, tuple)) else [marks]


def marks_of(owner) -> list:
    """What a function, a class (and its bases) or a module is marked with; bases first."""
    owners = reversed(owner.__mro__) if inspect.isclass(owner) else [owner]
    found = [one for each in owners for one in _as_list(vars(each).get("pytestmark", []))]
    for one in found:
        if not isinstance(one, Mark):
            raise UnusableTest("the tests have a mark that is none")
        if one.name in _UNUSABLE:
            raise UnusableTest("the tests want pytest.mark.%s, which is not there" % one.name)
    return found


def is_skipped(marks, asked: Asked) -> bool:
    if asked.is_shared and any(one.name == "skipif" for one in marks):
        raise UnusableTest("the tests have a skipif after they have asked the program, which may be about its answers")
    return any(one.name == "skip" or (one.name == "skipif" and _holds(one)) for one in marks)


def _holds(one: Mark) -> bool:
    conditions = [*one.arguments, *([one.named["condition"]] if "condition" in one.named else [])]
    if not conditions or any(isinstance(condition, (str, RemoteObject)) for condition in conditions):
        raise UnusableTest("the tests have a skipif whose condition can't be told")
    return any(conditions)


def used_fixtures(marks) -> list:
    return [name for one in marks if one.name == "usefixtures" for name in one.arguments]


class ArgumentSet:
    """`direct`: by the test's parameters. `indirect`: by the fixtures that get them as `request.param`."""

    def __init__(self, direct=None, indirect=None, marks=()):
        self.direct, self.indirect, self.marks = direct or {}, indirect or {}, list(marks)

    def joined(self, other: ArgumentSet) -> ArgumentSet:
        return ArgumentSet(
            {**self.direct, **other.direct}, {**self.indirect, **other.indirect}, self.marks + other.marks
        )


class UnevenRows(UnusableTest):
    """As many values as names are wanted in each row."""


def argument_sets(marks, asked: Asked) -> list:
    """Each combination that the marks give; one empty set without any. Rows may be what the program has answered, and
    are wrong then where nothing could be run with them."""
    sets = [ArgumentSet()]
    for one in marks:
        if one.name == "parametrize":
            try:
                rows = list(_rows(*one.arguments, **one.named))
            except UnevenRows as error:
                if asked.is_shared:
                    raise AssertionError(str(error)) from None
                raise
            assert rows or not asked.is_shared, "there are no rows for a test"
            sets = [before.joined(row) for before in sets for row in rows]
    return sets


def _rows(argnames, argvalues, indirect=False, ids=None, scope=None):
    is_single = isinstance(argnames, str) and "," not in argnames
    names = argnames.replace(",", " ").split() if isinstance(argnames, str) else list(argnames)
    for row in argvalues:
        marks = row.marks if type(row) is Row else []
        values = row.values if type(row) is Row else ((row,) if is_single else tuple(row))
        if len(values) != len(names):
            raise UnevenRows("the tests give %d values for the %d names of a parametrize" % (len(values), len(names)))
        given = dict(zip(names, values))
        aside = set(names if indirect is True else indirect or ())
        yield ArgumentSet(
            {name: value for name, value in given.items() if name not in aside},
            {name: value for name, value in given.items() if name in aside},
            marks,
        )
