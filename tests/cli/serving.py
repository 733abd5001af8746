# SPDX-License-Identifier: Apache-2.0
"""`sqsqlite serve` as a process of its own."""

import contextlib
import re
import subprocess
import sys
import threading

import boto3
from botocore import UNSIGNED
from botocore.config import Config

PROGRAM = "import sys; from sqsqlite.cli import main; main(sys.argv[1:], 'sqsqlite')"


class Served:
    """A running command. `url` is where it says that it listens, `said` the lines that it has printed."""

    def __init__(self, process, until):
        self.process = process
        self.said = []
        self._new = threading.Condition()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        self.url = self.until_said(r"serving .* on (https?://\S+?)(?:,|$)").group(1)
        self.until_said(until)

    def _read(self):
        for line in self.process.stderr:
            with self._new:
                self.said.append(line.rstrip("\n"))
                self._new.notify_all()

    def until_said(self, pattern, seconds=300):
        """Wait for a line on standard error."""

        def found():
            return next((match for line in self.said if (match := re.search(pattern, line))), None)

        with self._new:
            match = self._new.wait_for(found, seconds)
        assert match, (pattern, self.said)
        return match

    def client(self, key=None, **options):
        """A boto3 client of the server: unsigned, or with a row of `keys add`."""
        if key is None:
            config = Config(signature_version=UNSIGNED, retries={"total_max_attempts": 1})
        else:
            config = Config(retries={"total_max_attempts": 1})
            options["aws_access_key_id"] = key["access_key_id"]
            options["aws_secret_access_key"] = key["secret_access_key"]
        return boto3.client(
            "sqs", **{"endpoint_url": self.url, "region_name": "us-east-1", "config": config, **options}
        )

    def end(self, number):
        """Send the process a signal. Returns its exit code."""
        self.process.send_signal(number)
        return self.process.wait(300)


@contextlib.contextmanager
def served(path, *options, until="access keys"):
    """`sqsqlite serve --port 0` with these options, yielded once it has printed enough.

    Killed at the end if it still runs.
    """
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "serve", "--db", str(path), "--port", "0", *map(str, options)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    found = None
    try:
        found = Served(process, until)
        yield found
    finally:
        process.kill()
        process.wait()
        if found is not None:
            found._reader.join(300)
        process.stderr.close()
