# SPDX-License-Identifier: Apache-2.0
"""Where payloads are kept: a folder, which needs no other package, or anything that fsspec reaches.

fsspec can't sync a file, so a folder is written here: an acknowledged message must survive a power loss with its
payload.
"""

import errno
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from urllib.parse import quote, unquote, urlsplit

from sqsqlite.operators.installed import install_command
from sqsqlite.payloads.errors import PayloadError, PayloadMissing, PayloadStoreDown

# Of a key that no file has, or can have.
_NO_FILE = (errno.ENOENT, errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG)
_TIMES = ("LastModified", "mtime", "last_modified", "updated", "created")


class Stored(NamedTuple):
    """An object of a store.

    Attributes:
        name: below the store's URL.
        changed_at: seconds since 1970 UTC, by the store's clock.
    """

    name: str
    size_bytes: int
    changed_at: float


class Place(Protocol):
    """Where objects are. A name is relative to the store's URL, with `/` between its parts.

    Attributes:
        shown: the URL, without a password.
        bucket: what pointers call the place.
        prefix: what stands before a name in the key of a pointer: empty, or a path with `/` at its end.
    """

    shown: str
    bucket: str
    prefix: str

    def put(self, name: str, data: bytes) -> None:
        """Store an object, durably. Raises PayloadStoreDown."""

    def get(self, name: str) -> bytes:
        """Read an object. Raises PayloadMissing, PayloadStoreDown."""

    def remove(self, name: str) -> None:
        """Remove an object. One that is gone is no error. Raises PayloadStoreDown."""

    def list(self, folder: str) -> list[Stored]:
        """All objects below a folder; none if the folder is missing. Raises PayloadStoreDown."""


class Folder:
    """A folder of this machine, or one that it has mounted.

    Args:
        path: the folder.
        create: make it if it is missing, but not the folder around it.

    Raises:
        ValueError: the path has no name, such as `/`.
        PayloadStoreDown: it is missing, and can't or shall not be made.
    """

    prefix = ""

    def __init__(self, path: Path, *, create: bool) -> None:
        self.path = path.absolute()
        self.shown = self.path.as_uri()
        self.bucket = quote(self.path.name, safe="")
        self._synced: set[Path] = set()
        if not self.bucket:
            raise ValueError(f"{path}: this folder has no name, which pointers could use")
        with self._reached():
            if create and not self.path.is_dir():
                self.path.mkdir()
                _sync(self.path.parent)
            self._require()

    def put(self, name: str, data: bytes) -> None:
        path = self._below(name)
        with self._reached():
            folder = path.parent
            # Never the folder of the store itself: where a mount is missing, payloads would land on another disk.
            folder.mkdir(exist_ok=True)
            if folder not in self._synced:
                _sync(self.path)
                self._synced.add(folder)
            partial = folder / f".{path.name}.{secrets.token_hex(4)}.partial"
            try:
                with partial.open("xb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                partial.replace(path)
            except BaseException:
                partial.unlink(missing_ok=True)
                raise
            _sync(folder)

    def get(self, name: str) -> bytes:
        path = self._below(name)
        with self._reached():
            try:
                return path.read_bytes()
            except OSError as error:
                if error.errno not in _NO_FILE or not self.path.is_dir():
                    raise
                raise PayloadMissing(f"{self.shown} has no {name}") from error

    def remove(self, name: str) -> None:
        path = self._below(name)
        with self._reached():
            self._require()
            path.unlink(missing_ok=True)

    def list(self, folder: str) -> list[Stored]:
        with self._reached():
            self._require()
            return list(self._walk(self._below(folder)))

    def _walk(self, folder: Path) -> Iterator[Stored]:
        try:
            entries = list(os.scandir(folder))
        except FileNotFoundError:
            return
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from self._walk(Path(entry.path))
                continue
            try:
                found = entry.stat(follow_symlinks=False)
            except FileNotFoundError:  # removed or renamed meanwhile
                continue
            name = Path(entry.path).relative_to(self.path).as_posix()
            yield Stored(name, found.st_size, found.st_mtime)

    def _require(self) -> None:
        if not self.path.is_dir():
            raise FileNotFoundError(f"{self.path} is not there")

    def _below(self, name: str) -> Path:
        """The path of a name. `PayloadStore` has refused `..` and the like; a link could still lead out."""
        path = self.path.joinpath(*name.split("/"))
        if not path.resolve().is_relative_to(self.path.resolve()):
            raise PayloadMissing(f"{self.shown} has no {name}: a link there leads out of the folder")
        return path

    @contextmanager
    def _reached(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise PayloadStoreDown(f"the payload store {self.shown} can't be used: {error}") from error


class Remote:
    """Anything that fsspec has an implementation for, such as `s3://BUCKET/PREFIX`.

    Args:
        options: of the implementation.

    Raises:
        ModuleNotFoundError: fsspec, or the package that the URL needs, is not installed.
        ValueError: fsspec does not know the URL, or it names no bucket.
    """

    def __init__(self, url: str, options: dict[str, Any]) -> None:
        parts = urlsplit(url)
        self.bucket = unquote(parts.netloc.rpartition("@")[2])
        if not self.bucket or "::" in url or parts.query or parts.fragment:
            raise ValueError(f"{url!r}: a payload store is a folder, or a URL such as s3://BUCKET/PREFIX")
        path = parts.path.strip("/")
        self.prefix = f"{path}/" if path else ""
        self.shown = f"{parts.scheme}://{self.bucket}/{self.prefix}".rstrip("/")
        self._url, self._options = url, options
        self._connect()

    def _connect(self) -> None:
        try:
            from fsspec.core import url_to_fs
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                f"a payload store at {self.shown} needs fsspec: {install_command('payloads')}"
            ) from error
        self._pid = os.getpid()
        try:
            # An instance of its own: shared ones keep lists of what was there once.
            self._system, root = url_to_fs(self._url, skip_instance_cache=True, **self._options)
        except ImportError as error:  # fsspec's sentence names the package
            raise ModuleNotFoundError(
                f"a payload store at {self.shown} needs another package: {error}"
            ) from error
        self._root = root.rstrip("/")

    def put(self, name: str, data: bytes) -> None:
        self._run(lambda system: system.pipe_file(self._path(name), data))

    def get(self, name: str) -> bytes:
        try:
            found: bytes = self._run(lambda system: system.cat_file(self._path(name)))
        except FileNotFoundError as error:
            raise PayloadMissing(f"{self.shown} has no {name}") from error
        return found

    def remove(self, name: str) -> None:
        try:
            self._run(lambda system: system.rm_file(self._path(name)))
        except FileNotFoundError:
            return

    def list(self, folder: str) -> list[Stored]:
        def find(system: Any) -> dict[str, dict[str, Any]]:
            system.invalidate_cache()
            found: dict[str, dict[str, Any]] = system.find(self._path(folder), detail=True)
            return found

        try:
            found = self._run(find)
        except FileNotFoundError:
            return []
        return [
            Stored(path[len(self._root) :].lstrip("/"), int(one["size"] or 0), self._changed_at(one))
            for path, one in found.items()
        ]

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    def _changed_at(self, info: dict[str, Any]) -> float:
        for name in _TIMES:
            match info.get(name):
                case datetime() as told:
                    return (told if told.tzinfo else told.replace(tzinfo=UTC)).timestamp()
                case int() | float() as told:
                    return told
        raise PayloadError(f"{self.shown} does not say when its objects were made: it can't be swept")

    def _run(self, work: Callable[[Any], Any]) -> Any:
        """Call fsspec. What it raises is FileNotFoundError for an object, and else PayloadStoreDown."""
        if self._pid != os.getpid():
            self._connect()  # its threads stayed in the parent
        try:
            return work(self._system)
        except Exception as error:
            if isinstance(error, FileNotFoundError) and not _is_of_bucket(error):
                raise
            raise PayloadStoreDown(
                f"the payload store {self.shown} can't be used: {type(error).__name__}: {error}"
            ) from error


def _is_of_bucket(error: FileNotFoundError) -> bool:
    """Whether S3 says that the bucket is missing, which s3fs raises as for an object."""
    response = getattr(error.__cause__, "response", None)
    code = response.get("Error", {}).get("Code") if isinstance(response, dict) else None
    return code == "NoSuchBucket"


def _sync(folder: Path) -> None:
    """Sync a folder's entries. Windows can't, and does not need to."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def place_at(url: str | os.PathLike[str], options: dict[str, Any], *, create: bool) -> Place:
    """The place that a URL or a path names.

    Args:
        create: make a missing folder.

    Raises:
        TypeError: options with a folder, which has none.
        ValueError, ModuleNotFoundError, PayloadStoreDown: see `Folder` and `Remote`.
    """
    if isinstance(url, str) and "://" in url and not url.startswith("file://"):
        return Remote(url, options)
    if options:
        raise TypeError(f"{', '.join(options)}: a folder has no options")
    path = os.fspath(url)
    if path.startswith("file://"):
        parts = urlsplit(path)
        if parts.netloc not in ("", "localhost"):
            raise ValueError(f"{path!r}: a folder's URL has three slashes, as file:///var/lib/payloads")
        path = unquote(parts.path)
    return Folder(Path(path), create=create)
