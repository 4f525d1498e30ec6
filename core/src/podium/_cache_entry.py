"""One entry of the disk cache: a file that is either whole and right, or not an entry."""

from __future__ import annotations

import errno
import os
import stat
import struct
from contextlib import suppress
from pathlib import Path

from podium._digest import sha256

__all__ = ["HEADER_SIZE", "SCHEMA", "read_entry", "write_entry"]

SCHEMA = 1
"""Rises with the layout of entries; it is in every key, and in the first line of every file."""

_MAGIC = b"podium cache %d\n" % SCHEMA
# The first line, the checksum of key and payload, and the payload's bytes.
_HEADER = struct.Struct(f"<{len(_MAGIC)}s32sQ")

HEADER_SIZE = _HEADER.size

# Where a flag does not exist the kind of trouble that it prevents does not either. Without O_NONBLOCK, opening a
# named pipe would wait for its writer.
_READ_FLAGS = os.O_RDONLY
for _flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY"):
    _READ_FLAGS |= getattr(os, _flag, 0)
_WRITE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL
for _flag in ("O_NOFOLLOW", "O_CLOEXEC", "O_BINARY"):
    _WRITE_FLAGS |= getattr(os, _flag, 0)

# A network file system answers with the first when the file was replaced between look-up and use; Windows denies
# access while a replacement is under way.
_WORTH_A_RETRY = {errno.ESTALE, errno.EACCES} if os.name == "nt" else {errno.ESTALE}
_ATTEMPTS = 3


# The payload, when it was last used, and what is wrong with the file; a tuple, since a first launch reads ten entries.
_Reading = tuple["bytes | None", float, str]


def read_entry(path: str, key: str, owners: frozenset[int] | None) -> _Reading:
    """Read and check the entry of `key`. `owners` are the users whose files are accepted, None meaning anyone.

    Return the payload, when it was last used in seconds since 1970, and what is wrong with the file. Without either
    payload or fault there is no entry, or none that can be read now.
    """
    for _ in range(_ATTEMPTS):
        try:
            return _read(path, key, owners)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.EMLINK):
                return _faulty("it is a symbolic link")
            if error.errno == errno.ENXIO:
                return _faulty("it is not a regular file")
            if error.errno not in _WORTH_A_RETRY:
                break
    # Whatever the file system says, compiling again is right and failing is not.
    return _faulty("")


def _faulty(fault: str) -> _Reading:
    return None, 0.0, fault


def _read(path: str, key: str, owners: frozenset[int] | None) -> _Reading:
    descriptor = os.open(path, _READ_FLAGS)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return _faulty("it is not a regular file")
        if owners is not None and status.st_uid not in owners:
            return _faulty(f"it belongs to user {status.st_uid}")
        if owners is not None and status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return _faulty(f"others can write to it (mode {stat.S_IMODE(status.st_mode):04o})")
        if status.st_size < HEADER_SIZE:
            return _faulty(f"it has {status.st_size} bytes, less than its header")
        magic, checksum, length = _HEADER.unpack(_read_exactly(descriptor, HEADER_SIZE))
        if magic != _MAGIC:
            return _faulty("it does not start as an entry")
        if status.st_size != HEADER_SIZE + length:
            return _faulty(f"its payload has {status.st_size - HEADER_SIZE} bytes instead of {length}")
        data = _read_exactly(descriptor, length)
    except EOFError:
        return _faulty("it became shorter while it was read")
    finally:
        with suppress(OSError):
            os.close(descriptor)
    if _checksum(key, data) != checksum:
        return _faulty("its checksum does not match")
    return data, status.st_mtime, ""


def _read_exactly(descriptor: int, length: int) -> bytes:
    pieces: list[bytes] = []
    missing = length
    while missing:
        piece = os.read(descriptor, missing)
        if not piece:
            raise EOFError
        pieces.append(piece)
        missing -= len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def write_entry(path: Path, temporary: Path, key: str, data: bytes, bits: int) -> None:
    """Write the entry to `temporary`, which must not exist, and publish it as `path` with permissions `bits`.

    Raises OSError, and leaves nothing behind then.
    """
    descriptor = os.open(temporary, _WRITE_FLAGS, 0o600)
    try:
        # No fsync: after a crash the file may be torn, and the checksum tells.
        try:
            if bits != 0o600:
                os.fchmod(descriptor, bits)
            for piece in (_HEADER.pack(_MAGIC, _checksum(key, data), len(data)), data):
                view = memoryview(piece)
                while view:
                    view = view[os.write(descriptor, view) :]
        finally:
            # A full network disk may say so only here.
            os.close(descriptor)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def _checksum(key: str, data: bytes) -> bytes:
    # The key is part of it, so that an entry under another's name is not taken for that one.
    return sha256(key.encode(), b"\n", data).digest()
