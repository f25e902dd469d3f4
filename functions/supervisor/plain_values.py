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
_read = json.JSONDecoder().decode


class NotPlain(Exception):
    """Holds something that is no plain value, or lies too deep."""


def encode(value) -> str:
    """Raises NotPlain."""
    return _write(_to_json(value, 0))


def decode(text: str):
    """Raises NotPlain for a text that `encode` doesn't write."""
    try:
        return _from_json(_read(text))
    except (ValueError, TypeError, KeyError, RecursionError):
        raise NotPlain("the text of a value can't be read") from None


def _to_json(value, depth: int):
    kind = type(value)
    if kind in _FLAT:
        return value
    if depth == MAX_DEPTH:
        raise NotPlain("a value nested deeper than %d levels" % MAX_DEPTH)
    if kind is list:
        return _items(value, depth)
    if kind is tuple or kind is set or kind is frozenset:
        return {kind.__name__: _items(value, depth)}
    if kind in _DICTS:
        return {"dict": [[_to_json(key, depth + 1), _to_json(item, depth + 1)] for key, item in dict.items(value)]}
    if kind is bytes:
        return {"bytes": value.hex()}
    if kind is complex:
        return {"complex": [value.real, value.imag]}
    raise NotPlain("a value of the type %s" % kind.__name__[:100])


def _items(value, depth: int) -> list:
    if _FLAT.issuperset(map(type, value)):  # as most are: the rest is done in C
        return list(value)
    return [_to_json(item, depth + 1) for item in value]


def _from_json(value):
    if type(value) is list:
        return [_from_json(item) for item in value]
    if type(value) is not dict:
        return value
    ((kind, content),) = value.items()
    return _READERS[kind](content)


_READERS = {
    "tuple": lambda items: tuple(_from_json(items)),
    "set": lambda items: set(_from_json(items)),
    "frozenset": lambda items: frozenset(_from_json(items)),
    "dict": lambda pairs: dict(_from_json(pairs)),
    "bytes": bytes.fromhex,
    "complex": lambda parts: complex(*parts),
}
