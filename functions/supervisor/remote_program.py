"""The program as tests see it: its functions and objects by proxy, in a process in which none of its code runs.

Theory of operation. The program runs in an isolated process of its own and answers requests (see `library.py`). Here
are only plain values, and proxies that ask for everything else. What comes back is data, of which the program may make
anything it likes, like every value that a function returns. But it can't end this process, patch its builtins, walk its
frames, or say what equals what: a proxy equals no plain value, and is only asked about objects of the program's own.

Arguments travel as copies. Of a function that returns None, as one does that changes its arguments in place, the
changes come back. Of others they don't: one that empties a list is not to be compared with what it made of it.
"""

from __future__ import annotations

import builtins
import json
import types

import library_values
import plain_values

_read = json.JSONDecoder().decode

# What ends an iteration. Raised by a call, it would end the tests' own loops before they have judged anything, so it
# arrives as an Exception of no kind, but where the tests name it themselves (`expected_endings`).
ENDINGS = (StopIteration, StopAsyncIteration)


class ProgramGone(BaseException):
    """The program's process has ended. No test can catch it by accident."""


class UnusableTest(BaseException):
    """The tests ask for what can't be done for any program."""


class RemoteProgram:
    """`had_influence`: whether anything here may come from what the program does, so that it, and not the test, is at
    fault for an error. `was_judged`: whether something of the program's was, without its being asked. `missing`: the
    names that were asked for and that it lacks. `questions`: how often it was asked for
    more than a name that it has."""

    def __init__(self, requests, answers):
        self._requests = requests
        self._answers = answers
        self._objects = {}
        self._exceptions = {}
        self.had_influence = False
        self.was_judged = False
        self.questions = 0
        self.missing = set()
        self.is_gone = False
        self.expected_endings = set()
        self.sure_raises = set()  # (file, line) of statements in the tests that raise whatever the program does

    def load(self, before: str) -> None:
        self._send({"before": before, "has_typing": True})

    def look_up(self, name: str):
        """What the program calls by this name; raises AttributeError."""
        answer = self._ask({"look_up": name})
        if type(answer.get("exception")) is str:
            found = self._exception_class(name, answer["exception"])
        elif "value" in answer:
            found = self._value(answer, self.expected_endings)
        else:
            self.questions += 1
            self.missing.add(name)
            raise AttributeError("the program has no %s" % name)
        if type(found) is not RemoteObject:
            self.had_influence = True
        return found

    def call(self, handle: int, arguments, named: dict):
        self._note_question()
        answer = self._ask({"call": handle, "arguments": self._pack([list(arguments), named])})
        value = self._value(answer, self.expected_endings)
        if value is None and "changed" in answer:
            _write_back(arguments, self._unpack(answer["changed"]))
        return value

    def do(self, operation: str, handle: int, *operands):
        self._note_question()
        answer = self._ask({"do": operation, "handle": handle, "arguments": self._pack(list(operands))})
        return self._value(answer, self.expected_endings | ({"StopIteration"} if operation == "next" else set()))

    def _note_question(self) -> None:
        self.had_influence = True
        self.questions += 1

    def leave(self, handle: int, error) -> bool:
        """Leaves a `with` of the program's object; whether the exception that came out of it ends here."""
        if error is None:
            self.do("exit", handle)
            return False
        if not self._may_end(error):
            try:
                self.do("exit", handle)
            except Exception:
                pass  # what failed before is what happened
            return False
        return self.do("exit", handle, _builtin_base(error), str(error)) is True

    def _may_end(self, error) -> bool:
        """Whether the program may swallow it: what a statement of the block raises whatever the program does. Else it
        could end a failed assertion, or what a wrong answer leads to."""
        at = error.__traceback__
        return isinstance(error, Exception) and (at.tb_frame.f_code.co_filename, at.tb_lineno) in self.sure_raises

    # -- values

    def _value(self, answer: dict, endings):
        if type(answer.get("raised")) is dict:
            raise self._exception(answer["raised"], endings)
        if "value" not in answer:
            raise self._gone()
        return self._unpack(answer["value"])

    def _pack(self, values):
        try:
            return plain_values.to_json(values, _pack_other)
        except plain_values.TooDeep:
            raise ValueError("a value is nested too deep for the program") from None
        except plain_values.NotPlain as error:
            raise UnusableTest("the tests hand the program %s" % error) from None

    def _unpack(self, value):
        try:
            return plain_values.from_json(value, self._object)
        except plain_values.NotPlain:
            raise self._gone() from None

    def _object(self, handle):
        if type(handle) is list and len(handle) == 2 and type(handle[0]) is str:
            return library_values.from_data(*handle)
        if type(handle) is not int:
            raise plain_values.NotPlain("no handle")
        if handle not in self._objects:
            self._objects[handle] = RemoteObject(self, handle)
        return self._objects[handle]

    def _exception(self, raised: dict, endings) -> Exception:
        kind = self._exceptions.get(raised.get("name")) or _builtin_exception(raised.get("base"))
        if issubclass(kind, ENDINGS) and not any(base.__name__ in endings for base in kind.__mro__):
            kind = Exception
        error = kind.__new__(kind)
        error.args = (str(raised.get("text")),)
        error.__dict__["is_of_program"] = True
        return error

    def _exception_class(self, name: str, base) -> type:
        if name not in self._exceptions:
            self._exceptions[name] = type(name, (_builtin_exception(base),), {})
        return self._exceptions[name]

    # -- the wire

    def _ask(self, request: dict) -> dict:
        self._send(request)
        try:
            line = self._answers.readline()
            answer = _read(line) if line.endswith("\n") else None
        except (ValueError, RecursionError):
            answer = None
        if type(answer) is not dict:
            raise self._gone()
        return answer

    def _send(self, request: dict) -> None:
        try:
            self._requests.write(json.dumps(request) + "\n")
            self._requests.flush()
        except OSError:
            raise self._gone() from None

    def _gone(self) -> ProgramGone:
        self.is_gone = True
        return ProgramGone("the program has ended, or said what no program says")


class RemoteObject:
    """Something of the program's that is no plain value."""

    __slots__ = ("_program", "_handle")

    def __init__(self, program: RemoteProgram, handle: int):
        object.__setattr__(self, "_program", program)
        object.__setattr__(self, "_handle", handle)

    def __call__(self, *arguments, **named):
        return _of(self).call(_handle_of(self), arguments, named)

    def __getattr__(self, name):
        if name in _JUDGING_METHODS:
            note_judged(self)
            raise AttributeError("the program returned something that is no plain value, and has no %s" % name)
        return _of(self).do("getattr", _handle_of(self), name)

    def __setattr__(self, name, value):
        _of(self).do("setattr", _handle_of(self), name, value)

    def __eq__(self, other):
        note_judged(self)
        return type(other) is RemoteObject and _of(self).do("eq", _handle_of(self), other) is True

    def __hash__(self):
        return _handle_of(self)

    def __enter__(self):
        return _of(self).do("enter", _handle_of(self))

    def __exit__(self, kind, error, traceback):
        return _of(self).leave(_handle_of(self), error)

    def __instancecheck__(self, other):
        return type(other) is RemoteObject and _of(self).do("instancecheck", _handle_of(self), other) is True


def _forward(operation: str, is_among_objects: bool = False):
    def method(self, *operands):
        if is_among_objects and type(operands[0]) is not RemoteObject:
            note_judged(self)
            return NotImplemented
        return _of(self).do(operation, _handle_of(self), *operands)

    return method


# What a program's class may define; see `library.OPERATIONS`. Who is given what a test expects could say what the test
# wants to hear, so the program is asked for these of two objects of its own only. `in` goes by the items.
_FORWARDED = "len iter next getitem setitem delitem str repr bool neg abs int index float".split()
_FORWARDED_AMONG_OBJECTS = "add sub mul truediv floordiv mod pow lt le gt ge".split()
for _operation in _FORWARDED + _FORWARDED_AMONG_OBJECTS:
    setattr(RemoteObject, "__%s__" % _operation, _forward(_operation, _operation in _FORWARDED_AMONG_OBJECTS))

# Methods by which plain values say yes or no. What isn't plain has none of them.
_JUDGING_METHODS = {
    name
    for kind in (str, bytes, set, float)
    for name in dir(kind)
    if name.startswith("is") or name in ("startswith", "endswith")
}


def note_judged(proxy: RemoteObject) -> None:
    """The proxy is not what the tests expect, whatever the program would say to that."""
    _of(proxy).was_judged = True


def _of(proxy: RemoteObject) -> RemoteProgram:
    return object.__getattribute__(proxy, "_program")


def _handle_of(proxy: RemoteObject) -> int:
    return object.__getattribute__(proxy, "_handle")


def _pack_other(value):
    data = library_values.to_data(value)
    if data is not None:
        return {"handle": plain_values.to_json(data, _pack_other)}
    if type(value) is RemoteObject:
        return {"handle": _handle_of(value)}
    name = getattr(value, "__name__", None) if type(value) in (type, type(len)) else None
    return {"handle": name} if name is not None and vars(builtins).get(name) is value else None


def _builtin_exception(name) -> type:
    kind = vars(builtins).get(name) if type(name) is str else None
    return kind if isinstance(kind, type) and issubclass(kind, Exception) else Exception


def _builtin_base(error: Exception) -> str:
    return next(base.__name__ for base in type(error).__mro__ if base.__module__ == "builtins")


def _write_back(arguments, changed) -> None:
    if type(changed) is not list or len(changed) != len(arguments):
        return
    for ours, theirs in zip(arguments, changed):
        if type(ours) is not type(theirs):
            continue
        if type(ours) is list:
            ours[:] = theirs
        elif type(ours) in (dict, set):
            ours.clear()
            ours.update(theirs)


class SolutionModule(types.ModuleType):
    """What `import solution` finds. `__all__` is what `*` means: the program's names that the tests use. Called, it is
    the program's function of that name, which tests may use without importing anything."""

    def __init__(self, program: RemoteProgram):
        super().__init__("solution")
        self.__dict__["__all__"] = []
        self.__dict__["__path__"] = []
        self.__dict__["_program"] = program

    def __call__(self, *arguments, **named):
        return self.__dict__["_program"].look_up("solution")(*arguments, **named)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self.__dict__["_program"].look_up(name)
