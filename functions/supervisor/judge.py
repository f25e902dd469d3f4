"""Tests in Python, in a case in which none of the program's code runs: their verdict is theirs alone.

Theory of operation. The case gets a test as JSON, two descriptors by which it talks to the program in the case beside
it (see `remote_program.py`), and one on which it reports. Names that the tests use and nobody else defines are the
program's. Builtins, and what the tests import, are never the program's, so it can't put its own `abs` into a
comparison; only a test that names nothing else may call a builtin's namesake, which is then what is tested. So it is
with what they use of Python's library without importing it.

    {"outcome": "passed"}
    {"outcome": "failed", "detail": …}     an assertion, or an error about what the program returned
    {"outcome": "raised", "detail": …}     the program raised, or lacks a name
    {"outcome": "gone"}                    the program ended; how, is seen elsewhere
    {"outcome": "invalid", "detail": …}    the test is at fault: no program could pass it, or every program would
"""

from __future__ import annotations

import ast
import builtins
import importlib
import json
import os
import sys
import traceback

import program
import pytest_runner
import pytest_stand_in
from calls import PRELUDE_MODULES, prelude_names
from remote_program import ENDINGS, ProgramGone, RemoteProgram, SolutionModule, UnusableTest

_DETAIL_CHARACTERS = 1000
# Under these names tests use modules that they forgot to import; what a program calls so is not asked for.
_MODULE_ALIASES = {"np": "numpy", "numpy": "numpy", "pd": "pandas", "pandas": "pandas", "scipy": "scipy"}


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
    if has_part and isinstance(error, (Exception, pytest_stand_in.Failed)):
        return {"outcome": "failed", "detail": detail}
    return _invalid(detail)


def _invalid(detail: str) -> dict:
    return {"outcome": "invalid", "detail": detail}


# -- the kinds of tests


def _run_asserts(test: dict, remote: RemoteProgram) -> None:
    namespace = _begin(test["before"], [test["setup"], test["statement"]], remote)
    _execute(test["setup"], "setup.py", namespace)
    _execute(test["statement"], "test.py", namespace)


def _run_check_function(test: dict, remote: RemoteProgram) -> None:
    namespace = _begin(test["before"], [test["source"]], remote)
    candidate = namespace[test["entry_point"]] = _find_entry_point(remote, test["entry_point"])
    _execute(test["source"], "test.py", namespace)
    namespace["check"](candidate)


def _find_entry_point(remote: RemoteProgram, name: str):
    """A function, or a method of a new object as in `Solution().add`."""
    kind, _, method = name.rpartition("().")
    return getattr(_look_up(remote, kind)(), method) if kind else _look_up(remote, name)


def _run_pytest(test: dict, remote: RemoteProgram) -> None:
    sys.modules["pytest"] = pytest_stand_in
    namespace = _begin("", [test["source"]], remote)
    _execute(test["source"], "test_solution.py", namespace)
    pytest_runner.run_tests(namespace, lambda: remote.questions)


_TESTS = {"asserts": _run_asserts, "check_function": _run_check_function, "pytest": _run_pytest}


# -- names


def _begin(before: str, sources, remote: RemoteProgram) -> dict:
    """The tests' namespace, with the program's names that they use."""
    namespace = {"__name__": "__test__", "__builtins__": builtins}
    used, defined = set(), set()
    for source in sources:
        _collect_names(source, used, defined)
    _execute(before, "before.py", namespace)
    remote.expected_endings = _expected_endings([before, *sources])
    unknown = used - defined - set(namespace) - set(vars(builtins))
    for name in unknown & _list_attribute_bases(sources):
        if name in PRELUDE_MODULES or name in _MODULE_ALIASES:
            namespace[name] = _import_for_tests(_MODULE_ALIASES.get(name, name))
    unknown -= set(namespace)
    namespace.update(_own_names(unknown, sources))
    unknown -= set(namespace)
    module = SolutionModule(remote)
    sys.modules["solution"] = namespace["solution"] = module
    if not _calls_solution(sources):
        unknown.discard("solution")
    remote.load(before)
    if not unknown and not _imports_solution(sources):
        unknown = {name for name in used if callable(vars(builtins).get(name))} - defined - {"candidate"}
        unknown = unknown if len(unknown) == 1 else set()
    for name in sorted(unknown):
        try:
            namespace[name] = remote.look_up(name)
            module.__all__.append(name)
        except AttributeError:
            pass  # the test that uses it gets a NameError
    return namespace


def _own_names(unknown: set, sources) -> dict:
    """What the tests use without importing it though Python's library has it, as `Counter` in `Counter(f(3))`.

    It is the tests' own as soon as they ask the program for something else. Where every name could be Python's, such a
    name is the program's, but those that are called with what another one returns: so `isclose(gcd(4, 6), 2)` asks the
    program for its `gcd`.
    """
    prelude = prelude_names()
    found = unknown & set(prelude)
    if found == unknown and not _asks_by_other_name(sources):
        found = {name for name in found if _is_called_with_another(name, unknown, sources)}
    return {name: prelude[name] for name in found}


def _asks_by_other_name(sources) -> bool:
    """Whether the tests import the program's names, or are given its function as `candidate`."""
    for node in _all_nodes(sources):
        if isinstance(node, ast.Import) and any(alias.name == "solution" for alias in node.names):
            return True
        if isinstance(node, ast.ImportFrom) and node.module == "solution" and node.names[0].name != "*":
            return True
        if isinstance(node, ast.FunctionDef) and node.name == "check":
            return True
    return False


def _is_called_with_another(name: str, unknown: set, sources) -> bool:
    for node in _all_nodes(sources):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
            inner = [part for argument in [*node.args, *node.keywords] for part in ast.walk(argument)]
            called = {part.func.id for part in inner if isinstance(part, ast.Call) and isinstance(part.func, ast.Name)}
            if called & (unknown - {name}):
                return True
    return False


def _calls_solution(sources) -> bool:
    """Whether `solution` is the name of a function that is tested."""
    calls = [node for node in _all_nodes(sources) if isinstance(node, ast.Call)]
    return any(isinstance(call.func, ast.Name) and call.func.id == "solution" for call in calls)


def _all_nodes(sources):
    return [node for source in sources for node in ast.walk(ast.parse(source))]


def _import_for_tests(name: str):
    try:
        return importlib.import_module(name)
    except ImportError:
        raise UnusableTest("the tests want %s, which is not there" % name) from None


def _look_up(remote: RemoteProgram, name: str):
    try:
        return remote.look_up(name)
    except AttributeError as error:
        error.is_of_program = True
        raise


def _imports_solution(sources) -> bool:
    return any("solution" in source or "def check" in source for source in sources)


def _collect_names(source: str, used: set, defined: set) -> None:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name):
            (used if isinstance(node.ctx, ast.Load) else defined).add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            defined.add(node.name)
        elif isinstance(node, ast.arg):
            defined.add(node.arg)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            defined.update((alias.asname or alias.name).split(".")[0] for alias in node.names)
            if node.names[0].name == "*" and node.module != "solution":
                defined.update(_names_of_module(node.module))
        elif isinstance(node, ast.ExceptHandler) and node.name:
            defined.add(node.name)


def _expected_endings(sources) -> set:
    """What ends an iteration and is named anywhere in the tests, also as `builtins.StopIteration`."""
    nodes = _all_nodes(sources)
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    names.update(node.attr for node in nodes if isinstance(node, ast.Attribute))
    return names & {ending.__name__ for ending in ENDINGS}


def _list_attribute_bases(sources) -> set:
    """What tests use like a module: `math` in `math.isclose(…)`, which datasets leave to the program to import."""
    nodes = [node for node in _all_nodes(sources) if isinstance(node, ast.Attribute)]
    return {node.value.id for node in nodes if isinstance(node.value, ast.Name)}


def _names_of_module(name: str):
    try:
        module = importlib.import_module(name)
    except (ImportError, TypeError):
        return ()  # the test's own import of it will fail
    return getattr(module, "__all__", None) or [name for name in vars(module) if not name.startswith("_")]


def _execute(source: str, name: str, namespace: dict) -> None:
    exec(compile(source, name, "exec", dont_inherit=True), namespace)
