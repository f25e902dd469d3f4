"""Values of Python's own library as data and back, between tests and the program: decimals, dates and the like.

Only exact types count, as a subclass may say anything of itself. What comes from a program is data, of which any value
of these types can be made and nothing else.
"""

from __future__ import annotations

import array
import collections
import datetime
import decimal
import fractions
import uuid

from plain_values import NotPlain

_TO_DATA = {
    decimal.Decimal: str,
    fractions.Fraction: lambda value: [value.numerator, value.denominator],
    datetime.date: lambda value: value.isoformat(),
    datetime.timedelta: lambda value: [value.days, value.seconds, value.microseconds],
    uuid.UUID: lambda value: value.hex,
    range: lambda value: [value.start, value.stop, value.step],
    collections.deque: lambda value: [list(value), value.maxlen],
    array.array: lambda value: [value.typecode, value.tolist()],
    slice: lambda value: [value.start, value.stop, value.step],
}
_FROM_DATA = {
    "Decimal": decimal.Decimal,
    "Fraction": lambda data: fractions.Fraction(*data),
    "date": datetime.date.fromisoformat,
    "datetime": datetime.datetime.fromisoformat,
    "time": datetime.time.fromisoformat,
    "timedelta": lambda data: datetime.timedelta(*data),
    "UUID": uuid.UUID,
    "range": lambda data: range(*data),
    "deque": lambda data: collections.deque(*data),
    "array": lambda data: array.array(*data),
    "slice": lambda data: slice(*data),
}


def to_data(value):
    """[name of the type, data that may hold further values]; None for what is no such value."""
    kind = type(value)
    if kind in (datetime.datetime, datetime.time):
        return None if not _is_of_fixed_zone(value) else [kind.__name__, value.isoformat()]
    return [kind.__name__, _TO_DATA[kind](value)] if kind in _TO_DATA else None


def _is_of_fixed_zone(value) -> bool:
    """Without a zone, or with an offset alone: other zones are objects with a mind of their own."""
    return value.tzinfo is None or type(value.tzinfo) is datetime.timezone


def from_data(name, data):
    """The value; raises NotPlain for what is none."""
    try:
        return _FROM_DATA[name](data)
    except (ValueError, TypeError, KeyError, AttributeError, ArithmeticError):
        raise NotPlain("what can't be read as a value") from None
