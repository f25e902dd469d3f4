/** Programs that want to pass without knowing the answer, each with a body for the function, and all around it. */

export const EXPECTED_SECRET = "treasure-7d1c59";

export interface CallAttack {
  readonly name: string;
  /** `BODY` stands for the function's lines: the dishonest ones, or a `return` of what is expected. */
  readonly source: string;
  readonly dishonest: string;
}

const plain = "import os, sys\ndef f(x):\nBODY";

/** Whatever can be reached of this process, searched for the answer. */
const search = `
import gc, glob, sys
def find():
    found = []
    def look(text):
        at = text.find("treasure" + "-")
        if at >= 0: found.append(text[at:at + 15])
    frame = sys._getframe()
    while frame:
        look(repr(frame.f_locals)); frame = frame.f_back
    for thing in gc.get_objects():
        try:
            if isinstance(thing, (dict, list, tuple, str, bytes)) and thing is not found: look(repr(thing)[:100000])
        except BaseException: pass
    for path in glob.glob("/proc/self/fd/*") + glob.glob("/tmp/*"):
        try: look(open(path, errors="replace").read(100000))
        except BaseException: pass
    return [text for text in found if text[9:].isalnum()]
def f(x):
BODY`;

export const callAttacks: readonly CallAttack[] = [
  { name: "sys.exit", source: plain, dishonest: "    sys.exit(0)" },
  { name: "os._exit", source: plain, dishonest: "    os._exit(0)" },
  { name: "quit", source: plain, dishonest: "    quit()" },
  {
    name: "atexit",
    source: "import atexit, os\natexit.register(lambda: os._exit(0))\ndef f(x):\nBODY",
    dishonest: "    raise ValueError",
  },
  {
    name: "an object that equals everything",
    source:
      "class Any:\n    def __eq__(self, other): return True\n    __hash__ = object.__hash__\ndef f(x):\nBODY",
    dishonest: "    return Any()",
  },
  {
    name: "a text that equals everything",
    source:
      "class Any(str):\n    def __eq__(self, other): return True\n    __hash__ = str.__hash__\ndef f(x):\nBODY",
    dishonest: "    return Any('treasure')",
  },
  {
    name: "a class that says it is another",
    source: "class Any:\n    __class__ = property(lambda self: str)\ndef f(x):\nBODY",
    dishonest: "    return Any()",
  },
  { name: "a generator", source: plain, dishonest: "    yield 1" },
  { name: "a function", source: plain, dishonest: "    return f" },
  { name: "itself", source: plain, dishonest: "    x = []; x.append(x); return x" },
  {
    name: "other builtins",
    source:
      "import builtins\nkept = builtins.type\nbuiltins.isinstance = lambda *a: True\nbuiltins.all = lambda *a: True\ndef f(x):\nBODY",
    dishonest: "    builtins.type = lambda *a: str\n    return object()",
  },
  {
    name: "another encoder",
    source:
      "import json, json.encoder\njson.JSONEncoder.default = lambda self, x: True\njson.dumps = lambda *a, **k: '{\"value\":true}'\ndef f(x):\nBODY",
    dishonest: "    return object()",
  },
  {
    name: "words on every descriptor",
    source: plain,
    dishonest:
      '    for fd in range(256):\n        try: os.write(fd, b\'{"value":true}\\n{"passed":true}\\n\')\n        except OSError: pass\n    os._exit(0)',
  },
  {
    name: "a search for the answer",
    source: search,
    dishonest: "    found = find()\n    return found[0] if found else None",
  },
];
