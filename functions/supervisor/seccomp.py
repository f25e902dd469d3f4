"""The system call filter that every case runs under.

Theory of operation. Namespaces and an empty capability set already take away most of what a program could do to the
host. The filter takes away the rest of the kernel's surface that Python programs have no use for: other ABIs,
new namespaces, sockets other than AF_UNIX, keyrings (not namespaced), SysV and POSIX queues, io_uring, bpf, ptrace,
and memory that no accounting sees (memfd). What is denied fails with an errno, so that a program which merely probes
goes on; only a foreign ABI kills, since there the numbers below would mean other calls.

The filter is classic BPF: a list of 8-byte instructions whose jumps reach 255 instructions at most, which is why
the denied numbers are searched as a binary tree.
"""

from __future__ import annotations

import errno
import struct

from kernel import MACHINE

# name: (x86_64, aarch64); None where the architecture lacks the call.
DENIED_CALLS = {
    # looking into, or steering, other processes
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "pidfd_getfd": (438, 438), "process_madvise": (440, 440),
    # mounts and namespaces
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "setns": (308, 268),
    "unshare": (272, 97), "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442),
    "open_by_handle_at": (304, 265), "name_to_handle_at": (303, 264),
    # kernel facilities with a long history of holes
    "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218), "bpf": (321, 280),
    "perf_event_open": (298, 241), "userfaultfd": (323, 282), "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426), "io_uring_register": (427, 427), "seccomp": (317, 277),
    "fanotify_init": (300, 262), "fanotify_mark": (301, 263), "lookup_dcookie": (212, 18), "vmsplice": (278, 75),
    "modify_ldt": (154, None), "iopl": (172, None), "ioperm": (173, None), "personality": (135, 92),
    # the machine itself
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "init_module": (175, 105), "finit_module": (313, 273),
    "delete_module": (176, 106), "reboot": (169, 142), "swapon": (167, 224), "swapoff": (168, 225),
    "syslog": (103, 116), "acct": (163, 89), "quotactl": (179, 60), "quotactl_fd": (443, 443),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "adjtimex": (159, 171), "clock_adjtime": (305, 266),
    "sethostname": (170, 161), "setdomainname": (171, 162), "vhangup": (153, 58),
    # memory placement, and memory that belongs to no process
    "move_pages": (279, 239), "migrate_pages": (256, 238), "mbind": (237, 235), "set_mempolicy": (238, 237),
    "memfd_create": (319, 279), "memfd_secret": (447, 447),
    # System V and POSIX message passing
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "semget": (64, 190), "semop": (65, 193),
    "semctl": (66, 191), "semtimedop": (220, 192), "msgget": (68, 186), "msgsnd": (69, 189), "msgrcv": (70, 188),
    "msgctl": (71, 187), "mq_open": (240, 180), "mq_unlink": (241, 181), "mq_timedsend": (242, 182),
    "mq_timedreceive": (243, 183), "mq_notify": (244, 184), "mq_getsetattr": (245, 185),
    # a case stays on its slot's CPU and in the ordinary scheduling class
    "sched_setaffinity": (203, 122), "sched_setscheduler": (144, 119), "sched_setparam": (142, 118),
    "sched_setattr": (314, 274),
}  # fmt: skip

# Done in appearance only: a program that lowers its own priority would be starved by its neighbours, and thereby
# escape judgement; one that fails over it would be judged for nothing. setpriority, ioprio_set.
_PRETENDED_CALLS = ((141, 140), (251, 30))

_COLUMN = {"x86_64": 0, "aarch64": 1}
_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_CLONE, _SOCKET, _SOCKETPAIR = (56, 220), (41, 198), (53, 199)
_CLONE3 = 435
_FIRST_UNKNOWN_CALL = 453  # newer than the table above: refused as unknown, which every libc copes with
_X32_BIT = 0x40000000
_CLONE_NEW_ANY = 0x7E020000  # every CLONE_NEW* flag that clone takes
_AF_UNIX = 1

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL = 0x7FFF0000, 0x80000000
_OFFSET_NUMBER, _OFFSET_ARCH, _OFFSET_FIRST_ARGUMENT = 0, 4, 16


def _refuse(code: int) -> int:
    return 0x00050000 | code


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    if if_true > 255 or if_false > 255:
        raise ValueError("a BPF jump reaches 255 instructions at most")
    return struct.pack("<HBBI", code, if_true, if_false, value)


def _deny_tree(numbers) -> list:
    """Denies the sorted `numbers` and allows the rest, in a few comparisons per call."""
    if len(numbers) <= 3:
        tests = [_instruction(_EQUAL, number, len(numbers) - i) for i, number in enumerate(numbers)]
        return tests + [_instruction(_RETURN, _ALLOW), _instruction(_RETURN, _refuse(errno.EPERM))]
    middle = len(numbers) // 2
    low, high = _deny_tree(numbers[:middle]), _deny_tree(numbers[middle:])
    return [_instruction(_AT_LEAST, numbers[middle], len(low))] + low + high


def build_filter() -> bytes:
    """The filter's instructions for this machine; raises KeyError on an architecture without a table."""
    column, arch = _COLUMN[MACHINE], _AUDIT_ARCH[MACHINE]
    program = [
        _instruction(_LOAD, _OFFSET_ARCH),
        _instruction(_EQUAL, arch, 1),
        _instruction(_RETURN, _KILL),
        _instruction(_LOAD, _OFFSET_NUMBER),
        _instruction(_AT_LEAST, _X32_BIT, 0, 1),
        _instruction(_RETURN, _KILL),
        _instruction(_AT_LEAST, _FIRST_UNKNOWN_CALL, 0, 1),
        _instruction(_RETURN, _refuse(errno.ENOSYS)),
        # clone3 passes its flags by pointer, out of a filter's sight; libc falls back to clone.
        _instruction(_EQUAL, _CLONE3, 0, 1),
        _instruction(_RETURN, _refuse(errno.ENOSYS)),
        _instruction(_EQUAL, _CLONE[column], 0, 4),
        _instruction(_LOAD, _OFFSET_FIRST_ARGUMENT),
        _instruction(_ANY_BIT, _CLONE_NEW_ANY, 0, 1),
        _instruction(_RETURN, _refuse(errno.EPERM)),
        _instruction(_RETURN, _ALLOW),
    ]
    for call in (_SOCKET, _SOCKETPAIR):
        program += [
            _instruction(_EQUAL, call[column], 0, 4),
            _instruction(_LOAD, _OFFSET_FIRST_ARGUMENT),
            _instruction(_EQUAL, _AF_UNIX, 0, 1),
            _instruction(_RETURN, _ALLOW),
            _instruction(_RETURN, _refuse(errno.EAFNOSUPPORT)),
        ]
    for call in _PRETENDED_CALLS:
        program += [_instruction(_EQUAL, call[column], 0, 1), _instruction(_RETURN, _refuse(0))]
    denied = sorted(numbers[column] for numbers in DENIED_CALLS.values() if numbers[column] is not None)
    return b"".join(program + _deny_tree(denied))


def build_socketless_filter() -> bytes:
    """For a judge, on top of the other: it has its network namespace for itself, and needs no socket even there."""
    return b"".join(
        (
            _instruction(_LOAD, _OFFSET_NUMBER),
            _instruction(_EQUAL, _SOCKET[_COLUMN[MACHINE]], 0, 1),
            _instruction(_RETURN, _refuse(errno.EAFNOSUPPORT)),
            _instruction(_RETURN, _ALLOW),
        )
    )
