"""Whose the names are that tests use: their own, Python's, or the program's.

Names that the tests use and nobody else defines are the program's. Builtins, and what the tests import, are never the
program's, so it can't put its own `abs` into a comparison; only a test that names nothing else may call a builtin's
namesake, which is then what is tested. Names of Python's library that programs may use without importing them are
likewise the tests' own, see `_pick_own`.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import sys

from calls import PRELUDE_MODULES, prelude_names
from remote_program import ENDINGS, RemoteProgram, SolutionModule, UnusableTest

# What tests use like a module is that module, and never something of the program's.
_MODULES = {
    **{name: name for name in PRELUDE_MODULES},
    **{name: name for name in "asyncio contextlib dataclasses enum inspect io numbers pathlib uuid warnings".split()},
    **{"np": "numpy", "numpy": "numpy", "pd": "pandas", "pandas": "pandas", "scipy": "scipy"},
}


def make_namespace(before: str, sources, remote: RemoteProgram, entry_point: str = "") -> dict:
    """The tests' namespace, in which `before` has run, with the program's names that they use."""
    namespace = {"__name__": "__test__", "__builtins__": builtins}
    nodes = _nodes_of(*sources)
    used, defined = _collect_names(nodes)
    execute(before, "before.py", namespace)
    remote.expected_endings = _expected_endings([*nodes, *_nodes_of(before)])
    unknown = used - defined - set(namespace) - set(vars(builtins))
    for name in unknown & _list_attribute_bases(nodes):
        if name in _MODULES:
            namespace[name] = _import_for_tests(_MODULES[name])
    unknown -= set(namespace)
    own = _pick_own(unknown, nodes, entry_point)
    namespace.update((name, prelude_names()[name]) for name in own)
    unknown -= own
    module = SolutionModule(remote)
    sys.modules["solution"] = namespace["solution"] = module
    unknown.discard("solution")
    remote.load(before)
    if not unknown and not any("solution" in source or "def check" in source for source in sources):
        unknown = {name for name in used if callable(vars(builtins).get(name))} - defined - {"candidate"}
        unknown = unknown if len(unknown) == 1 else set()
    for name in sorted(unknown):
        try:
            namespace[name] = remote.look_up(name)
            module.__all__.append(name)
        except AttributeError:
            pass  # the test that uses it gets a NameError
    return namespace


def list_sure_raises(source: str, name: str) -> set:
    """(name, line) of what stands in a `with` block on its own and names nothing but builtins: what that raises, as
    `raise ValueError` or `1 / 0`, it raises whatever the program does."""
    found = set()
    for node in _nodes_of(source) if "with" in source else ():
        if isinstance(node, ast.With):
            for statement in node.body:
                is_plain = isinstance(statement, (ast.Raise, ast.Expr))
                names = {part.id for part in ast.walk(statement) if isinstance(part, ast.Name)}
                if is_plain and names <= vars(builtins).keys():
                    found.add((name, statement.lineno))
    return found


def execute(source: str, name: str, namespace: dict) -> None:
    exec(compile(source, name, "exec", dont_inherit=True), namespace)


def _pick_own(unknown: set, nodes, entry_point: str) -> set:
    """Which of these names are the prelude's: all, where the tests ask the program for something else.

    Where they name nothing else, the program's is what a call of another of them is handed: `sqrt` in
    `isclose(sqrt(2), 1.41)`. A class of the program's that only makes arguments, as `Node` in `merge(Node(1))`, is not
    what is asked for, while a function of the prelude's name may be."""
    own = {name for name in unknown if name in prelude_names()} - {entry_point}
    asked = unknown - own
    if not own or entry_point or _names_of_solution(nodes) or not asked <= _list_constructors(nodes):
        return own
    if asked:
        return own if len(own) > 1 else {name for name in own if name[0].isupper() or name == "isclose"}
    if len(own) == 1:
        return set()
    wrapping = _list_wrapping(own, nodes)
    return wrapping if wrapping != own else set()


def _nodes_of(*sources: str) -> list:
    return [node for source in sources for node in ast.walk(ast.parse(source))]


def _names_of_solution(nodes) -> set:
    """What the tests say to be the program's: `f` in `from solution import f` and `solution.f`, and `solution(…)`."""
    names = set()
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module == "solution":
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "solution":
            names.add(node.attr)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "solution":
            names.add("solution")
    return names - {"*"}


def _list_constructors(nodes) -> set:
    """Classes of which the tests only make objects to hand them on, and never ask one for anything."""
    methods = [node.func for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
    asked = {name.id for method in methods for name in ast.walk(method.value) if isinstance(name, ast.Name)}
    handed = []
    for node in nodes:
        if isinstance(node, ast.Call):
            handed += [*node.args, *(keyword.value for keyword in node.keywords)]
        elif isinstance(node, (ast.List, ast.Tuple)):
            handed += node.elts
        elif isinstance(node, ast.Assign):
            places = [getattr(target, "value", target) for target in node.targets]
            bases = {getattr(place, "id", None) for place in places}
            handed += [] if bases & (asked | {None, "self", "cls"}) else [node.value]
    made = {id(node.func) for node in handed if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    names = [node for node in nodes if isinstance(node, ast.Name)]
    return {name.id for name in names if name.id[0].isupper()} - {name.id for name in names if id(name) not in made}


def _list_wrapping(names: set, nodes) -> set:
    """Those that are called with a call of another of them among the arguments."""
    wrapping = set()
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
            arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
            inner = {name.id for part in arguments for name in ast.walk(part) if isinstance(name, ast.Name)}
            if inner & names - {node.func.id}:
                wrapping.add(node.func.id)
    return wrapping


def _import_for_tests(name: str):
    try:
        return importlib.import_module(name)
    except ImportError:
        raise UnusableTest("the tests want %s, which is not there" % name) from None


def _collect_names(nodes) -> tuple:
    """Names that are read, and those that are bound."""
    used, defined = set(), set()
    for node in nodes:
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
    return used, defined


def _expected_endings(nodes) -> set:
    """What ends an iteration and is named anywhere in the tests, also as `builtins.StopIteration`."""
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    names.update(node.attr for node in nodes if isinstance(node, ast.Attribute))
    return names & {ending.__name__ for ending in ENDINGS}


def _list_attribute_bases(nodes) -> set:
    """What tests use like a module: `math` in `math.isclose(…)`, which datasets leave to the program to import."""
    bases = [node.value for node in nodes if isinstance(node, ast.Attribute)]
    return {base.id for base in bases if isinstance(base, ast.Name)}


def _names_of_module(name: str):
    try:
        module = importlib.import_module(name)
    except (ImportError, TypeError):
        return ()  # the test's own import of it will fail
    return getattr(module, "__all__", None) or [name for name in vars(module) if not name.startswith("_")]
