"""Becoming the program: compiled source runs as `__main__`, and the process ends as an interpreter would end.

Runs inside the isolated case, so nothing here is trusted afterwards: whatever a program changes in this process, it
changes for itself alone.
"""

from __future__ import annotations

import atexit
import builtins
import ctypes
import gc
import io
import os
import sys
import threading
import types

NAME = "main.py"
FILE_NAME = "/tmp/" + NAME  # whole, as an interpreter makes it: it is found from every directory
_flush_c_streams = ctypes.CDLL(None).fflush  # all of them, as C's own end of a process does
_STDOUT_FLUSH_FAILED = 120  # CPython's own exit code for it
_EXIT_CODE_OVERFLOW = 255
_COMPILER_FAULTS = (SyntaxError, ValueError, MemoryError, RecursionError, OverflowError)


class RejectedSource(Exception):
    """The source is no Python program; the text says where and why."""


def compile_source(source: bytes):
    """A code object; raises RejectedSource."""
    try:
        return compile(source, FILE_NAME, "exec", dont_inherit=True)
    except SyntaxError as error:
        where = "line %d: " % error.lineno if error.lineno else ""
        raise RejectedSource(where + str(error.msg)) from None
    except _COMPILER_FAULTS as error:
        raise RejectedSource("%s: %s" % (type(error).__name__, error)) from None


def prepare_standard_streams() -> None:
    """Makes new text streams over descriptors 0-2, with the encoding and error handlers this interpreter chose itself.

    A stream learns once whether it can seek, so the streams are made over what a case will have there (a memory file
    and pipes); each child then only puts its own descriptors in place."""
    kept = [os.dup(fd) for fd in range(3)]
    reading, writing = os.pipe()
    stdin = os.memfd_create("stdin", os.MFD_CLOEXEC)
    try:
        for fd, source in enumerate((stdin, writing, writing)):
            os.dup2(source, fd)
        sys.stdin = sys.__stdin__ = _text_stream(0, "r", sys.stdin, False)
        sys.stdout = sys.__stdout__ = _text_stream(1, "w", sys.stdout, False)
        sys.stderr = sys.__stderr__ = _text_stream(2, "w", sys.stderr, True)
    finally:
        for fd, source in enumerate(kept):
            os.dup2(source, fd)
        for fd in (*kept, reading, writing, stdin):
            os.close(fd)


def _text_stream(fd: int, mode: str, model, line_buffering: bool):
    raw = io.FileIO(fd, mode, closefd=False)
    raw.name = model.name
    buffered = io.BufferedReader(raw) if mode == "r" else io.BufferedWriter(raw)
    stream = io.TextIOWrapper(buffered, encoding="utf-8", errors=model.errors, line_buffering=line_buffering)
    stream.mode = mode
    return stream


def run_as_main(code) -> None:
    """Runs `code` and ends the process with its exit code. Never returns."""
    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=FILE_NAME, __builtins__=builtins, __cached__=None)
    sys.modules["__main__"] = main
    exit_code = _execute(code, main.__dict__)
    exit_code = _finish_like_the_interpreter(exit_code)
    os._exit(exit_code & 0xFF)


def _execute(code, namespace: dict) -> int:
    try:
        exec(code, namespace)
        return 0
    except SystemExit as error:
        return exit_code_of(error.code)
    except BaseException as error:
        try:
            sys.stdout.flush()
        except BaseException:
            pass
        print_traceback(error)
        return 1


def exit_code_of(code) -> int:
    """What `sys.exit(code)` makes of its argument."""
    if code is None:
        return 0
    if isinstance(code, int):
        return code if -(1 << 63) <= code < 1 << 63 else _EXIT_CODE_OVERFLOW
    complain(code)
    return 1


def complain(what) -> None:
    try:
        print(what, file=sys.stderr)
    except BaseException:
        pass


def print_traceback(error: BaseException, frames_above: int = 1) -> None:
    """To standard error, without the frames of this program's own above the submitted one's."""
    program_frames = error.__traceback__
    for _ in range(frames_above):
        program_frames = program_frames.tb_next if program_frames else None
    try:
        sys.excepthook(type(error), error.with_traceback(program_frames), program_frames)
    except BaseException:
        pass


def _finish_like_the_interpreter(exit_code: int) -> int:
    """What Py_Finalize does that can be seen from outside, in its order: wait for threads, run atexit, flush, tear the
    main module down (which closes files and runs finalizers), flush again."""
    for step in (threading._shutdown, atexit._run_exitfuncs):
        try:
            step()
        except BaseException:
            pass
    is_flushed = flush_standard_streams()
    _tear_down_main()
    is_flushed = (flush_standard_streams() or _is_detached(sys.stdout)) and is_flushed
    return exit_code if is_flushed else exit_code or _STDOUT_FLUSH_FAILED


def flush_standard_streams() -> bool:
    """Whether standard output, if the program left one open, took everything."""
    try:
        if sys.stdout is not None and not getattr(sys.stdout, "closed", False):
            sys.stdout.flush()
        is_flushed = True
    except BaseException:
        is_flushed = False
    try:
        sys.stderr.flush()
    except BaseException:
        pass
    _flush_c_streams(None)
    return is_flushed


def _is_detached(stream) -> bool:
    """Whether the program took the buffer out of the stream; what it made of it is gone by now, and flushed."""
    try:
        return type(stream) is io.TextIOWrapper and stream.buffer is None
    except ValueError:
        return True


def _tear_down_main() -> None:
    """Drops the program's globals as the interpreter does: names with an underscore first, then the others."""
    sys.stdin, sys.stdout, sys.stderr = sys.__stdin__, sys.__stdout__, sys.__stderr__
    try:
        names = sys.modules["__main__"].__dict__
        for is_private in (True, False):
            for name in list(names):
                if name != "__builtins__" and isinstance(name, str) and name.startswith("_") == is_private:
                    names[name] = None
        gc.collect()
    except BaseException:
        pass
