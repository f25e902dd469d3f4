"""Writes pickles as Python makes them, one JSON object a line: its name, its bytes, and the text that it is, if any."""

import base64
import collections
import datetime
import json
import os
import pickle
import sys


class Runs:
    """What its unpickling would run."""

    def __reduce__(self):
        return os.system, (f"touch {sys.argv[1]}",)


def tell(name, data, text=None):
    line = {"name": name, "bytes": base64.b64encode(data).decode(), "text": text}
    sys.stdout.write(json.dumps(line) + "\n")


texts = {
    "an empty text": "",
    "a short text": "[1, 2]",
    "255 bytes": "x" * 255,
    "256 bytes": "x" * 256,
    "letters of many bytes": "é日😀" * 100,
    "70,000 bytes": "y" * 70_000,
    "a text of every kind of escape": '\x00\n\r"\\\u2028\ufeff',
}
for protocol in range(2, 6):
    for name, text in texts.items():
        tell(f"{name}, protocol {protocol}", pickle.dumps(text, protocol), text)

others = {
    "a call of os.system": Runs(),
    "a list with one": ["[]", Runs()],
    "a list of texts": ["[]", "[]"],
    "the same text twice": (texts["a short text"],) * 2,
    "a dictionary": {"input": "1"},
    "an integer": 7,
    "nothing": None,
    "bytes": b"[]",
    "a bytearray": bytearray(b"[]"),
    "a type": collections.OrderedDict,
    "a date": datetime.date(2024, 1, 1),
    "a lone surrogate": "\ud800",
}
for protocol in range(6):
    for name, value in others.items():
        tell(f"{name}, protocol {protocol}", pickle.dumps(value, protocol))
for protocol in (0, 1):
    tell(f"a text of protocol {protocol}", pickle.dumps("[]", protocol))

good = pickle.dumps("[1]", 4)
tell("something behind the end", good + b".")
tell("two pickles", good + good)
tell("a text and a call", good[:-1] + pickle.dumps(Runs(), 2)[2:])
tell("a call before the text", b"\x80\x04cos\nsystem\n\x8c\x03[1]\x94.")
tell("a text that is dropped", b"\x80\x04\x8c\x03[1]0\x8c\x03[2].")
tell("two texts, of which the last is on top", b"\x80\x04\x8c\x03[1]\x8c\x03[2].")
tell("a text to keep before there is one", b"\x80\x04\x94\x8c\x03[1].")
tell("a length beyond the end", b"\x80\x04\x8c\xff[1].")
tell("a length of 2^63", b"\x80\x04\x8d\x00\x00\x00\x00\x00\x00\x00\x80[1].")
tell("a frame beyond the end", b"\x80\x04\x95\xff\x00\x00\x00\x00\x00\x00\x00\x8c\x03[1].")
tell("a text of no UTF-8", b"\x80\x04\x8c\x02\xff\xfe.")
tell("protocol 6", b"\x80\x06\x8c\x03[1].")
tell("no protocol", b"\x8c\x03[1].")
tell("no text", b"\x80\x04.")
tell("nothing at all", b"")
for end in range(len(good)):
    tell(f"cut off behind {end} bytes", good[:end])
