# SPDX-License-Identifier: Apache-2.0
"""`receive --exec` runs a command for each message, and extends the message's visibility timeout meanwhile."""

import errno
import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any

from sqsqlite.cli.command_line import CommandLine
from sqsqlite.cli.failures import PARTIAL, Failure, end, failure_of, handled_by
from sqsqlite.cli.message_rows import received_row
from sqsqlite.cli.receiving import Receiving
from sqsqlite.errors import LeaseLost, SQSError

if TYPE_CHECKING:
    from types import FrameType

_ATTRIBUTES = "SQSQLITE_ATTRIBUTES"
_LEFT_OUT = "SQSQLITE_LEFT_OUT"
_LOST = {
    "gone": "another consumer has deleted the message, the queue was purged, or the retention has ended",
    "replaced": "another consumer has received the message",
    "ended": "its visibility timeout had ended",
    "moved": "the message is in the dead-letter queue",
}
_WAITING = b"waiting for the running command to end; another Ctrl-C ends it\n"


class Work:
    """Runs a command for each message.

    Args:
        source: receives the messages.
        command: a line for the shell.
        retry_after: seconds until a failed message becomes visible again; None leaves it to its timeout.
    """

    def __init__(self, line: CommandLine, source: Receiving, command: str, retry_after: int | None) -> None:
        self._line = line
        self._source = source
        self._command = command
        self._retry_after = retry_after
        self._running = False
        self._starting = False  # the command may run, but its process is not known yet: raise nothing
        self._stopped_by = 0  # the signal that asked to stop
        self._stop_again = 0  # the signal that asked again, while the command was starting
        self.done = 0
        self.failed = 0
        self.lost = 0

    def run(self, number: int | None) -> int:
        """Handle `number` messages, or endlessly with None; return the number of successes.

        After SIGINT or SIGTERM, the run ends as soon as no command is running.

        Raises:
            Failure: the command failed for some messages, or they were lost.
        """
        with handled_by(self._stop, signal.SIGINT, signal.SIGTERM):
            for message in self._messages(number):
                self._handle(message)
                if self._stopped_by:
                    end(self._stopped_by)
        lost = f", {self.lost:,} lost" if self.lost else ""
        self._line.say(f"{self.done:,} done, {self.failed:,} failed{lost}")
        if self.failed or self.lost:
            raise Failure("", PARTIAL)
        return self.done

    def _messages(self, number: int | None) -> Iterator[dict[str, Any]]:
        """Yield one message at a time, so that its timeout begins together with its command."""
        portions = self._source.for_ever(at_once=1) if number is None else self._source.one_by_one(number)
        for [message] in portions:
            yield message

    def _stop(self, number: int, _frame: "FrameType | None") -> None:
        if self._stopped_by and self._starting:
            self._stop_again = number
            return
        if not self._running or self._stopped_by:
            end(number)
        self._stopped_by = number
        if not self._line.options.get("quiet"):
            # A handler may interrupt a write to sys.stderr, so it must not use the buffer of sys.stderr.
            os.write(2, _WAITING)

    def _handle(self, message: dict[str, Any]) -> None:
        self._running = True
        try:
            self._settle(message, self._run_command(message))
        except LeaseLost as error:
            # Another consumer has or had the message. Say so, count it, and go on with the next one.
            self._line.say(f"{message['MessageId']}: lost, {_LOST[error.reason]}")
            self.lost += 1
        except SQSError as error:
            self._line.say(f"{message['MessageId']}: {failure_of(error).message}")
            self.failed += 1
        finally:
            self._running = self._starting = False

    def _settle(self, message: dict[str, Any], status: int) -> None:
        """Delete the message, or show it again.

        Raises:
            LeaseLost: the handle is no longer valid.
        """
        if status == 0:
            # Outside a transaction, deleting a missing message succeeds, as in SQS.
            with self._line.sqs.transaction():
                self._source.client.delete_message(
                    QueueUrl=self._source.name, ReceiptHandle=message["ReceiptHandle"]
                )
            self.done += 1
            return
        self._line.say(f"{message['MessageId']}: the command ended with {status}")
        if self._retry_after is not None:
            self._hide(message, self._retry_after)
        self.failed += 1

    def _run_command(self, message: dict[str, Any]) -> int:
        """Run the command to its end, and extend the timeout each time half of it is over."""
        timeout = self._source.visibility_timeout
        with tempfile.TemporaryFile() as body:
            body.write(message["Body"].encode())
            body.seek(0)
            self._starting = True
            process = self._start_command(message, body)
            try:
                self._starting = False
                if self._stop_again:
                    end(self._stop_again)
                while True:
                    try:
                        return process.wait(timeout / 2 if timeout else None)
                    except subprocess.TimeoutExpired:
                        self._hide(message, timeout)
            except BaseException:
                _kill(process)
                raise

    def _start_command(self, message: dict[str, Any], body: IO[bytes]) -> "subprocess.Popen[bytes]":
        """Start the command. If its environment is too large for the system, leave out the attributes."""
        environment = self._environment(message)
        try:
            return self._popen(environment, body)
        except OSError as error:
            if error.errno != errno.E2BIG:
                raise
        left_out = environment.pop(_ATTRIBUTES)
        self._line.say(
            f"{message['MessageId']}: {_ATTRIBUTES} is left out of the command's environment: "
            f"its {len(os.fsencode(left_out)):,} bytes make the environment too large for the system"
        )
        return self._popen({**environment, _LEFT_OUT: _ATTRIBUTES}, body)

    def _popen(self, environment: dict[str, str], body: IO[bytes]) -> "subprocess.Popen[bytes]":
        # The shell is intended: COMMAND is the user's own line, and the message reaches it only as data.
        # The process group of its own keeps Ctrl-C at the terminal from ending the command.
        return subprocess.Popen(  # noqa: S602
            self._command, shell=True, stdin=body, env=environment, process_group=0
        )

    def _hide(self, message: dict[str, Any], seconds: int) -> None:
        self._source.client.change_message_visibility(
            QueueUrl=self._source.name, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=seconds
        )

    def _environment(self, message: dict[str, Any]) -> dict[str, str]:
        row = received_row(message)
        # A command inside another --exec inherits variables. SQSQLITE_LEFT_OUT is about the outer message.
        inherited = {name: value for name, value in os.environ.items() if name != _LEFT_OUT}
        return {
            **inherited,
            "SQSQLITE_DB": str(self._line.path.absolute()),
            "SQSQLITE_QUEUE": self._source.name,
            "SQSQLITE_MESSAGE_ID": row["message_id"],
            "SQSQLITE_RECEIVE_COUNT": str(row["receive_count"]),
            "SQSQLITE_RECEIPT_HANDLE": row["receipt_handle"],
            "SQSQLITE_SENT_AT": row["sent_at"],
            "SQSQLITE_GROUP_ID": row["group_id"] or "",
            # UTF-8 in any locale: an ASCII locale could never encode the message.
            _ATTRIBUTES: os.fsdecode(json.dumps(row["attributes"], ensure_ascii=False).encode()),
        }


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """End the shell and the processes that it started."""
    if hasattr(os, "killpg"):
        os.killpg(process.pid, signal.SIGKILL)  # not yet waited for, so its number is not reused
    else:
        process.kill()
    process.wait()
