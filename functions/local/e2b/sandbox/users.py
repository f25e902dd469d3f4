"""The accounts of a sandbox: `root`, and `user`, whom calls mean when they name nobody."""

from collections import namedtuple

User = namedtuple("User", "name uid gid home")

DEFAULT_USER = "user"


def accounts(has_many_ids):
    """Where an ordinary user of the host made the sandbox there is one id in it, and both accounts are that one."""
    user_id = 1000 if has_many_ids else 0
    return [User("root", 0, 0, "/root"), User(DEFAULT_USER, user_id, user_id, "/home/user")]
