# SPDX-License-Identifier: Apache-2.0
"""Access keys in a file of the form of the AWS CLI's credentials, for operators who manage secrets as files.

    [shop]
    aws_access_key_id = SHOPKEY
    aws_secret_access_key = ...
    aws_account_id = 111122223333

The section is the key's user for policies; `default` is the account itself. Without `aws_account_id` the account is
000000000000. Other settings of a section are passed over, and so are sections without a key (roles, single sign-on). A
session's token is refused: `sqsqlite keys session` makes sessions of these keys.
"""

import configparser
from pathlib import Path

from sqsqlite.access.keys import Credentials, check_account_id, check_user_name
from sqsqlite.access.signature import is_key_id
from sqsqlite.contract.names import DEFAULT_ACCOUNT_ID
from sqsqlite.errors import InvalidParameterValue, SQSQLiteError

_ID, _SECRET, _ACCOUNT = "aws_access_key_id", "aws_secret_access_key", "aws_account_id"
_TOKEN = "aws_session_token"  # noqa: S105 # its name


class BadKeyFile(SQSQLiteError):
    """The file of keys can't be read, or a section of it lacks something. What to do: mend it."""


class KeyFile:
    """The keys of a file, read again when the file has changed.

    Raises:
        BadKeyFile: the file can't be read, or is not of this form.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._state = self._look()
        self._keys = _read(path)

    def find(self, access_key_id: str) -> Credentials | None:
        """Whose key it is, and its secret.

        Raises:
            BadKeyFile: the changed file can't be read, so the keys that it removes are unknown.
        """
        state = self._look()
        if state != self._state:
            self._keys = _read(self.path)
            self._state = state
        return self._keys.get(access_key_id)

    def _look(self) -> tuple[int, int, int]:
        try:
            found = self.path.stat()
        except OSError as error:
            raise BadKeyFile(f"{self.path}: {error.strerror}") from error
        return found.st_ino, found.st_size, found.st_mtime_ns


def _read(path: Path) -> dict[str, Credentials]:
    parser = configparser.RawConfigParser(default_section="")
    try:
        parser.read_string(path.read_text(encoding="utf-8"), str(path))
    except OSError as error:
        raise BadKeyFile(f"{path}: {error.strerror}") from error
    except (configparser.Error, UnicodeDecodeError) as error:
        # The parser's own words may quote a line, and so a secret.
        raise BadKeyFile(f"{path}: not of the form of a credentials file ({type(error).__name__})") from None
    keys: dict[str, Credentials] = {}
    for name in parser.sections():
        section = parser[name]
        if _ID not in section and _SECRET not in section:
            continue
        if _TOKEN in section:
            raise BadKeyFile(
                f"{path}: [{name}]: {_TOKEN} is not taken from a file; sqsqlite keys session makes sessions"
            )
        missing = [key for key in (_ID, _SECRET) if not section.get(key)]
        if missing:
            raise BadKeyFile(f"{path}: [{name}] has no {' and no '.join(missing)}")
        if not is_key_id(section[_ID]):
            # Not shown: it may be a secret in the wrong place.
            raise BadKeyFile(
                f"{path}: [{name}]: {_ID} is none that a signature can name: up to 128 letters, digits, _ and - can be"
            )
        if section[_ID] in keys:
            raise BadKeyFile(f"{path}: [{name}]: the key {section[_ID]} stands in another section too")
        account_id = section.get(_ACCOUNT, DEFAULT_ACCOUNT_ID)
        try:
            check_account_id(account_id)
            check_user_name(name)
        except InvalidParameterValue as error:
            raise BadKeyFile(f"{path}: [{name}]: {error}") from error
        keys[section[_ID]] = Credentials(account_id, "" if name == "default" else name, section[_SECRET])
    return keys
