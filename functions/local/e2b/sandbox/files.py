"""Files of the sandbox, as calls over HTTP and the Filesystem service see them."""

import gzip
import os
import re
import shutil
import stat
import time

from connect_rpc import RpcError


def resolve(path, user):
    """An absolute path; relative ones and `~` start at the user's home."""
    if path == "~" or path.startswith("~/"):
        path = user.home + path[1:]
    return os.path.normpath(os.path.join(user.home, path or "."))


def entry(path):
    """What the Filesystem service tells of a file. Sizes are text, as 64-bit integers are in JSON protobuf."""
    try:
        facts = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        raise RpcError("not_found", f"path '{path}' does not exist") from None
    is_link = stat.S_ISLNK(facts.st_mode)
    known = {
        "name": os.path.basename(path) or "/",
        "path": path,
        "type": "FILE_TYPE_DIRECTORY" if os.path.isdir(path) else "FILE_TYPE_FILE",
        "size": str(facts.st_size),
        "mode": stat.S_IMODE(facts.st_mode),
        "permissions": stat.filemode(facts.st_mode),
        "owner": _name_of(facts.st_uid),
        "group": _name_of(facts.st_gid),
        "modifiedTime": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(facts.st_mtime)),
    }
    return {**known, "symlinkTarget": os.readlink(path)} if is_link else known


def _name_of(number):
    return {0: "root", 1000: "user"}.get(number, str(number))


def list_folder(path, depth):
    if not os.path.exists(path):
        raise RpcError("not_found", f"path '{path}' does not exist")
    if not os.path.isdir(path):
        raise RpcError("invalid_argument", f"path is not a directory: {path}")
    found = []
    for name in sorted(os.listdir(path)):
        child = os.path.join(path, name)
        found.append(entry(child))
        if depth > 1 and os.path.isdir(child) and not os.path.islink(child):
            found.extend(list_folder(child, depth - 1))
    return found


def make_folder(path, user):
    if os.path.isdir(path):
        raise RpcError("already_exists", f"directory already exists: {path}")
    if os.path.exists(path):
        raise RpcError("invalid_argument", f"path already exists but it is not a directory: {path}")
    make_folders(path, user)


def make_folders(path, user):
    """The folder and those above it; the new ones belong to the user."""
    if os.path.isdir(path):
        return
    make_folders(os.path.dirname(path), user)
    os.mkdir(path, 0o755)
    os.chown(path, user.uid, user.gid)


def move(source, destination, user):
    entry(source)
    make_folders(os.path.dirname(destination), user)
    os.rename(source, destination)
    return entry(destination)


def remove(path):
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)


def write(path, data, user):
    if os.path.isdir(path):
        raise RpcError("invalid_argument", f"path is a directory: {path}")
    make_folders(os.path.dirname(path), user)
    with open(path, "wb") as file:
        file.write(data)
    os.chown(path, user.uid, user.gid)
    return {"name": os.path.basename(path), "path": path, "type": "file"}


def read(path):
    if not os.path.exists(path):
        raise RpcError("not_found", f"path '{path}' does not exist")
    if not os.path.isfile(path):
        raise RpcError("invalid_argument", f"path '{path}' is not a regular file")
    with open(path, "rb") as file:
        return file.read()


def uploads(request):
    """The (name or None, bytes) of an upload: the parts named `file` of a form, or the whole body."""
    kind = request.headers.get("content-type", "")
    body = request.body
    if request.headers.get("content-encoding") == "gzip":
        body = gzip.decompress(body)
    if not kind.startswith("multipart/form-data"):
        return [(None, body)]
    boundary = re.search(r'boundary="?([^";]+)"?', kind)
    if boundary is None:
        raise RpcError("invalid_argument", "multipart body without a boundary")
    parts = (b"\r\n" + body).split(b"\r\n--" + boundary.group(1).encode("latin-1"))
    return [upload for upload in map(_upload_of, parts[1:]) if upload is not None]


def _upload_of(part):
    head, blank, data = part.partition(b"\r\n\r\n")
    text = head.decode("utf-8", "replace")
    if not blank or not re.search(r'\bname="file"', text):
        return None
    name = re.search(r'\bfilename="([^"]*)"', text)
    return (None if name is None else name.group(1).replace("%22", '"'), data)
