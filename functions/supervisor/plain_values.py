"""Plain values as text and back: what a function returns, once it has to mean the same to somebody else.

A value is plain when it is None, a bool, int, float, complex, str or bytes, or a list, tuple, set, frozenset or dict of
plain values. Only exact types count (and the dicts of `collections`, which hold what a dict holds): a subclass may say
anything of itself. The text is one line of JSON. What JSON has stands for itself, everything else is an object with one
member that names the type:

    (1, b"x") -> {"tuple": [1, {"bytes": "78"}]}        {1: "a"} -> {"dict": [[1, "a"]]}

Such a text is written by whoever ran the function, in a process that the program owns. It is data and nothing more.
"""

from __future__ import annotations

import collections
import json

MAX_DEPTH = 100
_FLAT = frozenset((type(None), bool, int, float, str))
_DICTS = frozenset((dict, collections.OrderedDict, collections.defaultdict, collections.Counter))
_write = json.JSONEncoder(check_circular=False, separators=(",", ":")).encode


class NotPlain(Exception):
    """Holds something that is no plain value, or lies too deep."""


class TooDeep(NotPlain):
    """Lies deeper than MAX_DEPTH."""


def encode(value) -> str:
    """Raises NotPlain."""
    return _write(to_json(value))


def to_json(value, other=None, depth: int = 0):
    """A value that JSON can write. What is not plain is what `other` makes of it, if that is not None."""
    kind = type(value)
    if kind in _FLAT:
        return value
    if depth == MAX_DEPTH:
        raise TooDeep("a value nested deeper than %d levels" % MAX_DEPTH)
    if kind is list:
        return _items(value, other, depth)
    if kind is tuple or kind is set or kind is frozenset:
        return {kind.__name__: _items(value, other, depth)}
    if kind in _DICTS:
        return {"dict": [_items(pair, other, depth) for pair in dict.items(value)]}
    if kind is bytes:
        return {"bytes": value.hex()}
    if kind is complex:
        return {"complex": [value.real, value.imag]}
    found = other and other(value)
    if found is None:
        raise NotPlain("a value of the type %s" % kind.__name__[:100])
    return found


def _items(value, other, depth: int) -> list:
    if _FLAT.issuperset(map(type, value)):  # as most are: the rest is done in C
        return list(value)
    return [to_json(item, other, depth + 1) for item in value]


def from_json(value, handle=None):
    """The value that `to_json` was given. `handle` finds what a handle stands for. Raises NotPlain."""
    try:
        return _from_json(value, handle)
    except (ValueError, TypeError, KeyError, IndexError, RecursionError):
        raise NotPlain("what can't be read as a value") from None


def _from_json(value, handle):
    if type(value) is list:
        return [_from_json(item, handle) for item in value]
    if type(value) is not dict:
        return value
    ((kind, content),) = value.items()
    if kind == "handle":
        return handle(_from_json(content, handle))
    if kind == "bytes":
        return bytes.fromhex(content)
    if kind == "complex":
        return complex(*content)
    items = _from_json(content, handle)
    if kind == "dict":
        return dict(items)
    return _COLLECTIONS[kind](items)


_COLLECTIONS = {"tuple": tuple, "set": set, "frozenset": frozenset}
