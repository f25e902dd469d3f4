"""Fixtures of a test file: found by name, made once per scope, and ended in the reverse order.

A fixture that yields is resumed after the test whatever the test did, and never learns of an exception: so it can't
swallow one.
"""

from __future__ import annotations

import inspect
import sys

from remote_program import UnusableTest

_SCOPES = ("session", "package", "module", "class", "function")


class Fixture:
    """What `pytest.fixture` makes of a function: no more than a name for it. It can't be called."""

    def __init__(self, function, scope="function", params=None, autouse=False, name=None, ids=None):
        if scope not in _SCOPES:
            raise UnusableTest("the tests want a fixture of a scope that is not there")
        if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
            raise UnusableTest("the tests want a fixture that is a coroutine, which nobody would run")
        self.function, self.scope, self.is_automatic = function, scope, autouse
        self.params = None if params is None else list(params)
        self.given_name = name

    def __call__(self, *_, **__):
        raise UnusableTest("the tests call the fixture %s" % self.function.__name__)


def fixture(function=None, **options):
    if function is not None:
        return Fixture(function, **options)
    return lambda made: Fixture(made, **options)


class Endings:
    """What is to be done at the end, last first; all of it, whatever fails. The first failure is raised."""

    def __init__(self):
        self._steps = []

    def add(self, step) -> None:
        self._steps.append(step)

    def run(self) -> None:
        failure = None
        while self._steps:
            try:
                self._steps.pop()()
            except BaseException as error:
                failure = failure or error
        if failure is not None:
            raise failure

    def around(self, work):
        """What `work` returns, once all is done; what fails first is raised."""
        try:
            done = work()
        except BaseException:
            try:
                self.run()
            except BaseException:
                pass  # what came first is the failure
            raise
        self.run()
        return done


class Request:
    """The built-in fixture `request`, as far as it is there."""

    def __init__(self, scene, endings, name):
        self._scene, self._endings, self.fixturename = scene, endings, name
        if name in scene.indirect:
            self.param = scene.indirect[name]

    def addfinalizer(self, step) -> None:
        self._endings.add(step)

    def getfixturevalue(self, name: str):
        return self._scene.value_of(name)

    def __getattr__(self, name):
        if name == "param" or name.startswith("__"):
            raise AttributeError(name)
        raise UnusableTest("the tests want request.%s, which is not there" % name)


class Fixtures:
    """Those of a module, and of the class that a test is in."""

    def __init__(self, owners):
        """`owners`: what each of them names, the outermost first."""
        self.found = {}
        for values in owners:
            for name, value in values.items():
                if isinstance(value, Fixture):
                    self.found[value.given_name or name] = value

    def automatic(self) -> list:
        wanted = [name for name, one in self.found.items() if one.is_automatic]
        return sorted(wanted, key=lambda name: _SCOPES.index(self.found[name].scope))

    def closure(self, names, given) -> list:
        """The fixtures that these need, and that those need, but what is given; raises for what is not there."""
        needed, open_names = [], list(names)
        while open_names:
            name = open_names.pop(0)
            if name == "request" or name in given or name in needed:
                continue
            if name not in self.found:
                raise UnusableTest("the tests want the fixture %s, which is not there" % name)
            needed.append(name)
            open_names.extend(wanted_names(self.found[name].function))
        return needed


def wanted_names(function) -> list:
    """Parameters that somebody has to give: neither `self`, nor what has a default, nor what a patch gives."""
    parameters = inspect.signature(function).parameters.values()
    plain = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    names = [one.name for one in parameters if one.kind in plain and one.default is inspect.Parameter.empty]
    names = [name for name in names if name not in ("self", "cls")]
    return names[sum(map(_gives_argument, getattr(function, "patchings", []))) :]


def _gives_argument(patching) -> bool:
    return not patching.attribute_name and patching.new is sys.modules["unittest.mock"].DEFAULT


class Kept:
    """The values of one scope, and what ends them."""

    def __init__(self):
        self.values, self.endings = {}, Endings()


class Scene:
    """One test's fixtures: `kept` has by scope what is made already, `share` makes what other tests get, too."""

    def __init__(self, fixtures: Fixtures, kept: dict, share, instance, given: dict, indirect: dict):
        self._fixtures, self._kept, self._share, self._instance = fixtures, kept, share, instance
        self._given, self.indirect = given, indirect
        self._under_way = []

    def value_of(self, name: str):
        if name in self._given:
            return self._given[name]
        if name == "request":
            return Request(self, self._kept["function"].endings, name)
        found = self._fixtures.found.get(name)
        if found is None:
            raise UnusableTest("the tests want the fixture %s, which is not there" % name)
        if name in self._under_way:
            raise UnusableTest("the tests have a fixture that needs itself")
        kept = self._kept[found.scope]
        key = (name, found, _identity(self.indirect.get(name)))
        if key not in kept.values:
            self._under_way.append(name)
            if found.scope == "function":
                kept.values[key] = self._make(name, found, kept.endings)
            else:
                kept.values[key] = self._share(lambda: self._make(name, found, kept.endings))
            self._under_way.pop()
        return kept.values[key]

    def _make(self, name: str, found: Fixture, endings: Endings):
        request = Request(self, endings, name)
        names = wanted_names(found.function)
        arguments = {one: request if one == "request" else self.value_of(one) for one in names}
        takes_self = next(iter(inspect.signature(found.function).parameters), None) in ("self", "cls")
        owner = (self._instance,) if takes_self else ()
        made = found.function(*owner, **arguments)
        if not inspect.isgeneratorfunction(found.function):
            return made
        value = next(made)
        endings.add(lambda: _end(made))
        return value


def _end(generator) -> None:
    if next(generator, _end) is not _end:
        raise UnusableTest("the tests have a fixture that yields twice")


def _identity(param):
    return None if param is None else id(param)
