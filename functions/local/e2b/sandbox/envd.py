"""The service inside a sandbox that E2B's clients speak to, on connections handed in by the agent.

Files over plain HTTP, processes and file facts over Connect with JSON. What isn't known is answered with 501, never
with a guess. One thread serves one connection.
"""

import base64
import binascii
import hmac
import os
import threading
import time

import connect_rpc
import files
import http1
import streams
import users
from connect_rpc import RpcError
from processes import SIGNALS, Process

_UNAUTHORIZED = "unauthorized access, please provide a valid access token or method signing if supported"


class Envd:
    def __init__(self, children, access_token, environment, search_path, has_many_ids):
        self._children = children
        self._access_token = access_token
        self._environment = environment
        self._search_path = search_path
        self._has_many_ids = has_many_ids
        self._users = {user.name: user for user in users.accounts(has_many_ids)}
        self._processes = {}
        self._unary = {
            "/filesystem.Filesystem/Stat": self._stat,
            "/filesystem.Filesystem/MakeDir": self._make_folder,
            "/filesystem.Filesystem/ListDir": self._list_folder,
            "/filesystem.Filesystem/Remove": self._remove,
            "/filesystem.Filesystem/Move": self._move,
            "/process.Process/List": self._list_processes,
            "/process.Process/SendInput": self._send_input,
            "/process.Process/CloseStdin": self._close_stdin,
            "/process.Process/SendSignal": self._send_signal,
            "/process.Process/Update": self._update,
        }
        self._streams = {"/process.Process/Start": self._start, "/process.Process/Connect": self._connect}

    def serve(self, connection):
        """Answers the connection's requests until its end. Never raises."""
        with connection, connection.makefile("rb") as stream:
            try:
                while True:
                    request = http1.read_request(stream)
                    if request is None or not self._answer(connection, request):
                        return
            except (OSError, ValueError, http1.BadRequest):
                return

    def _answer(self, connection, request):
        """Answers one request; False when the connection can't be used for another."""
        if request.path == "/health":
            http1.send_reply(connection, 204)
        elif not self._is_authorized(request):
            http1.send_json(connection, 401, {"code": 401, "message": _UNAUTHORIZED})
        elif request.path in self._streams:
            return self._streams[request.path](connection, request)
        elif request.path == "/files":
            self._answer_files(connection, request)
        else:
            self._answer_unary(connection, request)
        return True

    def _is_authorized(self, request):
        given = request.headers.get("x-access-token", "")
        return hmac.compare_digest(given.encode("latin-1"), self._access_token.encode())

    def _user(self, name):
        user = self._users.get(name or users.DEFAULT_USER)
        if user is None:
            raise RpcError("unauthenticated", f"no user specified: invalid username '{name}'")
        return user

    def _user_of(self, request):
        kind, _, encoded = request.headers.get("authorization", "").partition(" ")
        if kind.lower() != "basic":
            return self._user(None)
        try:
            return self._user(base64.b64decode(encoded).decode().partition(":")[0])
        except (binascii.Error, UnicodeDecodeError):
            raise RpcError("unauthenticated", "malformed basic authorization") from None

    def _answer_files(self, connection, request):
        try:
            user = self._user(request.query.get("username"))
            path = request.query.get("path")
            if request.method == "GET":
                return http1.send_reply(connection, 200, files.read(files.resolve(path or "", user)))
            if request.method != "POST":
                raise RpcError("unimplemented", f"{request.method} /files is not implemented here")
            written = [
                files.write(files.resolve(path or name or "", user), data, user)
                for name, data in files.uploads(request)
            ]
            return http1.send_json(connection, 200, written)
        except RpcError as error:
            status = connect_rpc.HTTP_STATUS[error.code]
            return http1.send_json(connection, status, {"code": status, "message": error.message})
        except OSError as error:
            return http1.send_json(connection, 507 if error.errno == 28 else 500, {"code": 500, "message": str(error)})

    def _answer_unary(self, connection, request):
        try:
            handle = self._unary.get(request.path)
            if handle is None:
                raise RpcError("unimplemented", f"{request.path} is not implemented here")
            if not request.headers.get("content-type", "").startswith("application/json"):
                raise RpcError("unimplemented", "only the JSON form of the protocol is implemented here")
            return http1.send_json(connection, 200, handle(connect_rpc.parse(request.body), request))
        except RpcError as error:
            code = error.code
            http1.send_json(connection, connect_rpc.HTTP_STATUS[code], connect_rpc.as_json(error))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            code = "internal" if isinstance(error, OSError) else "invalid_argument"
            told = RpcError(code, f"{type(error).__name__}: {error}")
            http1.send_json(connection, connect_rpc.HTTP_STATUS[code], connect_rpc.as_json(told))
        return None

    # Filesystem

    def _stat(self, message, request):
        return {"entry": files.entry(files.resolve(message["path"], self._user_of(request)))}

    def _make_folder(self, message, request):
        user = self._user_of(request)
        path = files.resolve(message["path"], user)
        files.make_folder(path, user)
        return {"entry": files.entry(path)}

    def _list_folder(self, message, request):
        path = files.resolve(message.get("path", ""), self._user_of(request))
        return {"entries": files.list_folder(path, int(message.get("depth") or 1))}

    def _remove(self, message, request):
        files.remove(files.resolve(message["path"], self._user_of(request)))
        return {}

    def _move(self, message, request):
        user = self._user_of(request)
        ends = [files.resolve(message[name], user) for name in ("source", "destination")]
        return {"entry": files.move(*ends, user)}

    # Process, one answer

    def _process(self, message):
        selector = message.get("process") or {}
        for process in list(self._processes.values()):
            if process.pid == selector.get("pid") or (selector.get("tag") and process.tag == selector["tag"]):
                return process
        raise RpcError("not_found", "process with pid {} not found".format(selector.get("pid", selector.get("tag"))))

    def _list_processes(self, _message, _request):
        known = list(self._processes.values())
        return {"processes": [_without_none({"config": p.config, "pid": p.pid, "tag": p.tag}) for p in known]}

    def _send_input(self, message, _request):
        process = self._process(message)
        given = message.get("input") or {}
        if "stdin" not in given:
            raise RpcError("unimplemented", "terminals are not implemented here")
        process.write_stdin(base64.b64decode(given["stdin"]))
        return {}

    def _close_stdin(self, message, _request):
        self._process(message).close_stdin()
        return {}

    def _send_signal(self, message, _request):
        process = self._process(message)
        number = SIGNALS.get(message.get("signal"))
        if number is None:
            raise RpcError("unimplemented", "signal {} is not implemented here".format(message.get("signal")))
        process.send_signal(number)
        return {}

    def _update(self, message, _request):
        self._process(message)
        raise RpcError("unimplemented", "terminals are not implemented here")

    # Process, streams

    def _start(self, connection, request):
        try:
            message = connect_rpc.open_envelope(request.body)
            process = self._start_process(message, request)
        except RpcError as error:
            return streams.refuse(connection, error)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            return streams.refuse(connection, RpcError("invalid_argument", f"{type(error).__name__}: {error}"))
        self._processes[process.pid] = process
        return streams.follow(connection, request, process, lambda: self._pump_in_background(process))

    def _start_process(self, message, request):
        if message.get("pty"):
            raise RpcError("unimplemented", "terminals are not implemented here")
        user = self._user_of(request)
        config = dict(message["process"])
        config["cwd"] = files.resolve(config.get("cwd") or "", user)
        if not os.path.isdir(config["cwd"]):
            raise RpcError("invalid_argument", "cwd '{}' does not exist".format(config["cwd"]))
        environment = {"PATH": self._search_path, "HOME": user.home, "USER": user.name, "LOGNAME": user.name}
        environment.update(self._environment)
        environment.update(config.get("envs") or {})
        timeout_ms = int(request.headers.get("connect-timeout-ms") or 0)
        deadline_s = time.monotonic() + timeout_ms / 1000 if timeout_ms > 0 else None
        process = Process(config, message.get("tag"), deadline_s)
        process.start(self._children, user, self._has_many_ids, environment, message.get("stdin") is not False)
        return process

    def _pump_in_background(self, process):
        def pump():
            process.pump()
            self._processes.pop(process.pid, None)

        threading.Thread(target=pump, daemon=True).start()

    def _connect(self, connection, request):
        try:
            process = self._process(connect_rpc.open_envelope(request.body))
        except RpcError as error:
            return streams.refuse(connection, error)
        return streams.follow(connection, request, process, lambda: None)


def _without_none(fields):
    return {name: value for name, value in fields.items() if value is not None}
