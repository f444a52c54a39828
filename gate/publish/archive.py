"""One member of a zip archive that anybody could have written: never extracted, bounded in every way."""

from __future__ import annotations

import io
import stat
import zipfile
import zlib
from enum import StrEnum

MAX_MEMBERS = 1000
_CENTRAL_HEADER = b"PK\x01\x02"  # begins every entry of a zip's directory
_ENCRYPTED = 0x1
_UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,  # a compression or a version that this Python lacks
    RuntimeError,
    OSError,
    ValueError,
    OverflowError,
    MemoryError,  # zlib asked for a window that a broken stream claims to need
)


class ArchiveFault(StrEnum):
    """What is wrong with an archive; the value is shown."""

    NOT_AN_ARCHIVE = "is not a usable zip archive"
    NO_MEMBER = "does not hold exactly one regular file of the expected name"
    TOO_LARGE = "is larger than anything that compile-gate writes"


class ArchiveError(Exception):
    """The archive cannot be used."""

    def __init__(self, fault: ArchiveFault) -> None:
        super().__init__(fault.value)
        self.fault = fault


def read_member(archive: bytes, name: str, limit_bytes: int) -> bytes:
    """Read the member ``name`` of at most ``limit_bytes``.

    Raises:
        ArchiveError: It is not there once, is no regular file, or is too large or broken.
    """
    if archive.count(_CENTRAL_HEADER) > MAX_MEMBERS:
        raise ArchiveError(ArchiveFault.TOO_LARGE)  # before zipfile makes an object of each
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            member = _find_member(opened, name, limit_bytes)
            with opened.open(member) as stream:
                content = stream.read(limit_bytes + 1)
    except _UNREADABLE:
        raise ArchiveError(ArchiveFault.NOT_AN_ARCHIVE) from None
    if len(content) > limit_bytes:
        raise ArchiveError(ArchiveFault.TOO_LARGE)
    return content


def _find_member(archive: zipfile.ZipFile, name: str, limit_bytes: int) -> zipfile.ZipInfo:
    members = [member for member in archive.infolist() if member.filename == name]
    if len(members) != 1:
        raise ArchiveError(ArchiveFault.NO_MEMBER)
    member = members[0]
    kind = stat.S_IFMT(member.external_attr >> 16)  # 0 where the archive was not made on Unix
    if kind not in (0, stat.S_IFREG) or member.flag_bits & _ENCRYPTED:
        raise ArchiveError(ArchiveFault.NO_MEMBER)
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ArchiveError(ArchiveFault.NOT_AN_ARCHIVE)
    if member.file_size > limit_bytes:
        raise ArchiveError(ArchiveFault.TOO_LARGE)
    return member
