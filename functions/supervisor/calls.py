"""The program as a library: its source runs once, then functions of it are called, and what they return is written.

Theory of operation. Requests come from one descriptor, a line of JSON each, and answers go to another. Standard input
is empty; standard output and standard error are the program's own. Like everything in a case, this process belongs to
the program: it can write any answer, at any time. So an answer is never more than data, exactly what a function of the
program could have returned; what is right is decided elsewhere, by somebody who knows what was expected. Nobody here
does.

    {"before": source, "is_prelude_wanted": bool}     first, and not answered; with "has_typing" names of `typing` are
                                                      there as builtins are
    {"function": name, "arguments": [...]}            a call with JSON values; with "returns" and a number, that
                                                      argument counts, as the call leaves it
    anything else                                     of tests that run elsewhere, see `library.py`

    {"value": ...}      it returned this plain value (see `plain_values.py`)
    {"other": text}     it returned something else

What is raised ends the process with a traceback, as in a program.
"""

from __future__ import annotations

import builtins
import json
import os
import sys
import types
import typing

import plain_values
import program
from library import Library

MODULE_NAME = "solution"
_read = json.JSONDecoder().decode

# What the graders of such datasets let programs use without importing it.
PRELUDE_MODULES = (
    "bisect cmath collections copy datetime decimal fractions functools heapq itertools json math operator os random "
    "re statistics string sys time typing"
).split()
_PRELUDE_STARS = ("typing", "functools", "itertools", "collections", "heapq", "bisect", "math")
_prelude = {}
_typing_names = {name: getattr(typing, name) for name in typing.__all__}


def warm_up() -> None:
    """Makes the prelude's names, once for all children."""
    for module in _PRELUDE_STARS:
        exec("from %s import *" % module, _prelude)
    for name in list(_prelude):
        if hasattr(builtins, name) or name.startswith("_"):
            del _prelude[name]
    for module in PRELUDE_MODULES:
        _prelude[module] = __import__(module)
    plain_values.from_json(json.loads(plain_values.encode({1: (2.5, b"x", "é")})))


def prelude_names() -> dict:
    """What programs and tests may use without importing it, by name; `warm_up` made it."""
    return _prelude


class Missing(Exception):
    """The program has no such function."""


def answer_calls(code, requests_fd: int, answers_fd: int) -> None:
    """Runs the program's code, then answers requests until there are no more. Never returns."""
    write, leave, encode = os.write, os._exit, plain_values.encode
    exit_code = 1
    try:
        with open(requests_fd, encoding="utf-8", newline="\n", closefd=False) as requests:
            namespace = _load(code, _read(requests.readline()))
            library = Library(namespace)
            for line in requests:
                request = _read(line)
                called = _answer(namespace, request, encode) if "function" in request else library.answer(request)
                _write_whole(write, answers_fd, called)
        exit_code = 0
    except SystemExit as error:
        exit_code = program.exit_code_of(error.code)
    except Missing as error:
        program.complain(str(error))
    except BaseException as error:
        program.print_traceback(error, frames_above=2)
    program.flush_standard_streams()
    leave(exit_code & 0xFF)


def _load(code, wish: dict) -> dict:
    module = types.ModuleType(MODULE_NAME)
    module.__dict__.update(__file__=program.FILE_NAME, __builtins__=builtins)
    if wish.get("is_prelude_wanted"):
        module.__dict__.update(_prelude)
    if wish.get("has_typing"):
        vars(builtins).update(_typing_names)  # there is no builtin of such a name
    sys.modules[MODULE_NAME] = sys.modules["__main__"] = module
    if wish.get("before"):
        exec(compile(wish["before"], "before.py", "exec", dont_inherit=True), module.__dict__)
    exec(code, module.__dict__)
    return module.__dict__


def _answer(namespace: dict, request: dict, encode) -> bytes:
    arguments = request["arguments"]
    returned = _find(namespace, request["function"])(*arguments)
    if "returns" in request:
        returned = arguments[request["returns"]]
    try:
        return b'{"value":%s}\n' % encode(returned).encode("ascii")
    except plain_values.NotPlain as error:
        return b'{"other":%s}\n' % json.dumps(str(error)).encode("ascii")


def _find(namespace: dict, name: str):
    """A method of a new `Solution`, where there is such a class with such a method; else a function."""
    solution = namespace.get("Solution")
    if isinstance(solution, type) and hasattr(solution, name):
        return getattr(solution(), name)
    found = namespace.get(name)
    if not callable(found):
        raise Missing("the program has no function %s, nor a class Solution with such a method" % name)
    return found


def _write_whole(write, fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[write(fd, view) :]
