"""Answers to tests that run elsewhere: looks names up, calls, and acts on objects that have to stay here.

    {"look_up": name}                                    {"value": …} {"exception": base} {"missing": true}
    {"call": handle, "arguments": [list, dict]}          {"value": …} {"raised": {…}}, "changed": list where it was
    {"do": operation, "handle": n, "arguments": list}    {"value": …} {"raised": {…}}

Values are those of `plain_values.py`. What is none is a handle: a number under which it is kept here, a value of
`library_values.py`, or in arguments the name of a builtin. Everything runs
in the program's own process: nothing that is said from here is more than data.
"""

from __future__ import annotations

import builtins
import json
import operator

import library_values
import plain_values

OPERATIONS = {
    "getattr": getattr,
    "setattr": setattr,
    "eq": operator.eq,
    "instancecheck": lambda kind, value: isinstance(value, kind),
    "len": len,
    "iter": iter,
    "next": next,
    "getitem": operator.getitem,
    "setitem": operator.setitem,
    "delitem": operator.delitem,
    "str": str,
    "repr": repr,
    "bool": bool,
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "truediv": operator.truediv,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "pow": operator.pow,
    "neg": operator.neg,
    "abs": abs,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "enter": lambda value: type(value).__enter__(value),
    "exit": lambda value, *raised: type(value).__exit__(value, *_exception_of(*raised)),
    "int": int,
    "index": operator.index,
    "float": float,
}


def _exception_of(name=None, text=""):
    """What `__exit__` is told: nothing, or an exception of this builtin kind."""
    if name is None:
        return None, None, None
    kind = getattr(builtins, name)
    error = kind.__new__(kind)
    error.args = (text,)
    return kind, error, None


class Library:
    def __init__(self, namespace: dict):
        self._namespace = namespace
        self._kept = []
        self._handles = {}

    def answer(self, request: dict) -> bytes:
        """The answer's line; raises what ends a process."""
        try:
            answer = self._answer(request)
        except Exception as error:
            answer = {"raised": _describe(error)}
        return json.dumps(answer).encode("ascii") + b"\n"

    def _answer(self, request: dict) -> dict:
        if "look_up" in request:
            return self._look_up(request["look_up"])
        values = plain_values.from_json(request["arguments"], self._find)
        if "do" in request:
            return {"value": self._pack(OPERATIONS[request["do"]](self._kept[request["handle"]], *values))}
        arguments, named = values
        returned = self._kept[request["call"]](*arguments, **named)
        answer = {"value": self._pack(returned)}
        if returned is None:
            answer["changed"] = self._pack(arguments)
        return answer

    def _look_up(self, name: str) -> dict:
        if name not in self._namespace:
            return {"missing": True}
        found = self._namespace[name]
        if isinstance(found, type) and issubclass(found, Exception):
            return {"exception": _builtin_base(found)}
        return {"value": self._pack(found)}

    def _find(self, handle):
        """What is kept here, by its number; or a builtin type or function, by its name; or a value of the library."""
        if type(handle) is list:
            return library_values.from_data(*handle)
        return getattr(builtins, handle) if type(handle) is str else self._kept[handle]

    def _pack(self, value):
        return plain_values.to_json(value, self._keep)

    def _keep(self, value) -> dict:
        data = library_values.to_data(value)
        if data is not None:
            return {"handle": self._pack(data)}
        handle = self._handles.get(id(value))
        if handle is None:
            handle = self._handles[id(value)] = len(self._kept)
            self._kept.append(value)
        return {"handle": handle}


def _describe(error: Exception) -> dict:
    kind = type(error)
    return {"name": kind.__name__, "base": _builtin_base(kind), "text": str(error)[:1000]}


def _builtin_base(kind: type) -> str:
    return next(base.__name__ for base in kind.__mro__ if base.__module__ == "builtins")
