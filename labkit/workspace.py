"""Where files may be: one folder, and nothing outside it, by resolved path and never by how a path is spelt.

Read `Workspace.locate` first: from a path that a model wrote to a place inside, or a WorkspaceError that says why not.
Reading and writing go through `read` and `write`, which walk from the folder down with every link refused, so that a
link put there between check and use leads nowhere. Whether a call may write at all is for `labkit.permissions`.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from labkit.errors import WorkspaceError

_WALKS = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")  # not on Windows, where a checked path is opened
_FLAGS = getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_SPECIAL = "that is a special file (a pipe, socket or device) or a link, which no tool touches"

MAX_PATH = 1_000
"""So long may a path be, in characters. Walking would reach deeper, to where no other program could follow."""


class Workspace:
    """One folder. It must exist; links on the way to it are followed once, here."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.root = Path(folder).resolve()
        if not self.root.is_dir():
            raise WorkspaceError(f"the workspace {os.fspath(folder)!r} is no folder; make it first")

    def locate(self, path: str) -> Path:
        """The place that a relative path means, links followed. It need not exist. WorkspaceError if outside."""
        if "\0" in path:
            raise WorkspaceError("a path holds no NUL character")
        if not path.strip():
            raise WorkspaceError("the path is empty; name a file in the workspace")
        if len(path) > MAX_PATH:
            raise WorkspaceError(f"the path is too long; {MAX_PATH} characters are allowed at the most")
        if path.startswith("~"):
            raise WorkspaceError("'~' is no path here; give a path relative to the workspace")
        parts = path.replace("\\", "/").split("/") if os.name == "nt" else path.split("/")
        if Path(path).is_absolute() or Path(path).drive or parts[0] == "":
            raise WorkspaceError("an absolute path is outside the workspace; give a path relative to it")
        if ".." in parts:
            raise WorkspaceError("'..' leads out of the workspace; give a path without it")
        try:
            place = (self.root / path).resolve()
        except (OSError, ValueError, RuntimeError):
            raise WorkspaceError("the path cannot be followed (a loop of links, or a name too long)") from None
        if not place.is_relative_to(self.root):
            raise WorkspaceError("the path follows a link that leads out of the workspace")
        return place

    def read(self, path: str, limit: int = -1) -> tuple[bytes, int]:
        """At most `limit` bytes of a plain file (-1: all), and how many bytes it has in all."""
        with self._file(self.locate(path)) as file, open(file, "rb", closefd=False) as stream:
            return stream.read(limit), os.fstat(file).st_size

    def write(self, path: str, data: bytes) -> None:
        """Put these bytes in the place of the file, whole or not at all. Folders on the way are made."""
        place = self.locate(path)
        if place == self.root:
            raise WorkspaceError("that is the workspace itself, no file")
        with self._folder(place.parent, make=True) as folder:
            at = {"dir_fd": folder} if folder is not None else {}
            name = place.name if folder is not None else str(place)
            mode: int | None = None
            with contextlib.suppress(FileNotFoundError):
                found = os.stat(name, follow_symlinks=False, **at)
                if not stat.S_ISREG(found.st_mode):
                    raise WorkspaceError("that is no plain file (a folder, link or special file); choose another path")
                mode = stat.S_IMODE(found.st_mode)

            def create(path: str, flags: int) -> int:
                return os.open(path, flags | _NOFOLLOW | _FLAGS, 0o666, **at)

            # subtle: beside the target, so that the rename stays on one disk and is one act
            scratch = f".{os.urandom(8).hex()}.tmp"
            scratch = scratch if folder is not None else str(place.parent / scratch)
            try:
                with open(scratch, "xb", opener=create) as stream:
                    stream.write(data)
                    if mode is not None and hasattr(os, "fchmod"):
                        os.fchmod(stream.fileno(), mode)
                if folder is not None:
                    os.replace(scratch, name, src_dir_fd=folder, dst_dir_fd=folder)
                else:
                    os.replace(scratch, name)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(scratch, **at)
                raise

    def entries(self, place: Path) -> list[tuple[str, bool, bool]]:
        """What is in a located folder: each name, whether a folder, whether a plain file. A link is neither."""
        with self._folder(place) as folder, os.scandir(place if folder is None else folder) as found:
            return [(one.name, one.is_dir(follow_symlinks=False), one.is_file(follow_symlinks=False)) for one in found]

    @contextlib.contextmanager
    def _file(self, place: Path) -> Iterator[int]:
        """An open plain file, closed at the end."""
        if place == self.root:
            raise WorkspaceError("that is the workspace itself, no file")
        with self._folder(place.parent) as folder:
            try:
                if folder is None:
                    file = os.open(place, os.O_RDONLY | _FLAGS)
                else:
                    file = os.open(place.name, os.O_RDONLY | _FLAGS | _NOFOLLOW, dir_fd=folder)
            except FileNotFoundError:
                raise WorkspaceError("there is no such file; glob lists what is there") from None
            except PermissionError:
                if place.is_dir():  # Windows says so for folders
                    raise WorkspaceError("that is a folder, no file; glob lists what is in it") from None
                raise
            except OSError as error:
                if error.errno in (errno.ENXIO, errno.ELOOP):
                    raise WorkspaceError(_SPECIAL) from None
                raise
            try:
                mode = os.fstat(file).st_mode
                if stat.S_ISDIR(mode):
                    raise WorkspaceError("that is a folder, no file; glob lists what is in it")
                if not stat.S_ISREG(mode):
                    raise WorkspaceError(_SPECIAL)
                yield file
            finally:
                os.close(file)

    @contextlib.contextmanager
    def _folder(self, place: Path, *, make: bool = False) -> Iterator[int | None]:
        """The folder of a located file, reached from the root part by part, none of them a link. None on Windows."""
        if not _WALKS:
            if make:
                place.mkdir(parents=True, exist_ok=True)
            yield None
            return
        try:
            at = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | _NOFOLLOW | _FLAGS)
        except (FileNotFoundError, NotADirectoryError):
            raise WorkspaceError("the workspace folder is gone; nothing can be read or written") from None
        try:
            for name in place.relative_to(self.root).parts:
                if make:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(name, dir_fd=at)
                try:
                    deeper = os.open(name, os.O_RDONLY | os.O_DIRECTORY | _NOFOLLOW | _FLAGS, dir_fd=at)
                except FileNotFoundError:
                    raise WorkspaceError("there is no such folder; glob lists what is there") from None
                except OSError as error:
                    if error.errno in (errno.ENOTDIR, errno.ELOOP):
                        raise WorkspaceError("a part of the path is a file or a link, no folder") from None
                    raise
                at, above = deeper, at  # subtle: before closing, so that an interrupt never closes one twice
                os.close(above)
            yield at
        finally:
            os.close(at)
