"""Becomes the program of its arguments, in a sandbox that has no netlink sockets (seccomp(2)), as
`RestrictAddressFamilies` without `AF_NETLINK` makes one."""

import ctypes
import os
import platform
import struct
import sys

PR_SET_SECCOMP = 22
PR_SET_NO_NEW_PRIVS = 38
SECCOMP_MODE_FILTER = 2
# Of linux/filter.h and linux/seccomp.h.
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
NUMBER_AT, FIRST_ARGUMENT_AT = 0, 16
ALLOW, FAIL_WITH = 0x7FFF0000, 0x00050000
AF_NETLINK, EAFNOSUPPORT = 16, 97
SOCKET = {"x86_64": 41, "aarch64": 198}[platform.machine()]

STEPS = [
    (LOAD, 0, 0, NUMBER_AT),
    (JUMP_IF_EQUAL, 0, 3, SOCKET),
    (LOAD, 0, 0, FIRST_ARGUMENT_AT),
    (JUMP_IF_EQUAL, 0, 1, AF_NETLINK),
    (RETURN, 0, 0, FAIL_WITH | EAFNOSUPPORT),
    (RETURN, 0, 0, ALLOW),
]


class Program(ctypes.Structure):
    """`struct sock_fprog`."""

    _fields_ = [("length", ctypes.c_ushort), ("steps", ctypes.c_char_p)]


def main():
    steps = b"".join(struct.pack("HBBI", *step) for step in STEPS)
    libc = ctypes.CDLL(None, use_errno=True)
    program = ctypes.byref(Program(len(STEPS), steps))
    for call in [(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0)]:
        if libc.prctl(*call) != 0:
            sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")
    os.execv(sys.argv[1], sys.argv[1:])


main()
