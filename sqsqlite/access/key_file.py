# SPDX-License-Identifier: Apache-2.0
"""Access keys in a file like the AWS CLI's `credentials`, for operators who manage secrets as files.

    [shop]
    aws_access_key_id = SHOPKEY
    aws_secret_access_key = ...
    aws_account_id = 111122223333

The section is the key's user for policies; `default` is the account itself. Without `aws_account_id` the account is
000000000000. Other settings of a section are ignored, and so are sections without a key (roles, single sign-on). A
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
    """The key file can't be read, or a section of it is wrong. Correct the file."""


class KeyFile:
    """The keys of a file, read again when the file changes.

    Raises:
        BadKeyFile: the file can't be read, or a section of it is wrong.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._state = self._look()
        self._keys = _read(path)

    def find(self, access_key_id: str) -> Credentials | None:
        """Return a key's account, user and secret; None: the file has no such key.

        Raises:
            BadKeyFile: the file changed and can't be read now, so it may have lost keys.
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
        # The parser's message may quote a line, and so a secret.
        raise BadKeyFile(f"{path}: not a credentials file ({type(error).__name__})") from None
    keys: dict[str, Credentials] = {}
    for name in parser.sections():
        section = parser[name]
        if _ID not in section and _SECRET not in section:
            continue
        if _TOKEN in section:
            raise BadKeyFile(
                f"{path}: [{name}]: {_TOKEN} is not allowed in a key file; sqsqlite keys session makes sessions"
            )
        missing = [key for key in (_ID, _SECRET) if not section.get(key)]
        if missing:
            raise BadKeyFile(f"{path}: [{name}] has no {' and no '.join(missing)}")
        if not is_key_id(section[_ID]):
            # The message does not show the id: it may be a secret in the wrong place.
            raise BadKeyFile(f"{path}: [{name}]: {_ID} must be up to 128 letters, digits, _ and -")
        if section[_ID] in keys:
            raise BadKeyFile(f"{path}: [{name}]: another section has the key {section[_ID]} too")
        account_id = section.get(_ACCOUNT, DEFAULT_ACCOUNT_ID)
        try:
            check_account_id(account_id)
            check_user_name(name)
        except InvalidParameterValue as error:
            raise BadKeyFile(f"{path}: [{name}]: {error}") from error
        keys[section[_ID]] = Credentials(account_id, "" if name == "default" else name, section[_SECRET])
    return keys
