# SPDX-License-Identifier: Apache-2.0
"""The server that the clients talk to: `sqsqlite serve`, on a real socket, with a new file and mostly with a key."""

import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from tests.packaging.checkout import ROOT

# The secret has the characters of Amazon's secrets, and some that a URL must encode.
KEY = {"AWS_ACCESS_KEY_ID": "CLIENTSKEY", "AWS_SECRET_ACCESS_KEY": "of/the+clients"}
REGION = {
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}


@dataclass
class Endpoint:
    """A server that runs.

    Attributes:
        home: an empty folder, the home of the clients: no configuration of this machine's user reaches them.
        authority: the file of the certificate that signed the server's; None: it serves without TLS.
        is_keyed: whether requests must be signed with KEY; otherwise the clients have no credentials.
    """

    url: str
    path: Path
    process: subprocess.Popen
    home: Path
    authority: Path | None = None
    is_keyed: bool = True

    def environment(self, **more):
        """The environment of a client's process: only the way to the server, and its own programs."""
        found = {
            **REGION,
            **(KEY if self.is_keyed else {}),
            "AWS_ENDPOINT_URL": self.url,
            "HOME": str(self.home),
            "PATH": os.environ["PATH"],
        }
        if self.authority is not None:
            found["AWS_CA_BUNDLE"] = str(self.authority)
        return {**found, **more}

    def run(self, *command, seconds=800, environment=None, **options):
        """Run a client. Returns its output, and fails with the output if the client fails."""
        done = subprocess.run(
            [str(word) for word in command],
            env=self.environment(**(environment or {})),
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds,
            **{"cwd": self.home, **options},
        )
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        return done.stdout

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(300) == 0


def start(folder, *options, certificate=None, key=None, authority=None, is_keyed=True):
    """Start `sqsqlite serve` of a new file in the folder, on a port that is free.

    Args:
        folder: empty.
        options: more options of the command.
        certificate, key, authority: files; None: it serves without TLS.
        is_keyed: whether it has KEY.
    """
    path, home, told = folder / "queues.db", folder / "home", folder / "server.log"
    home.mkdir()
    tls = [] if certificate is None else ["--tls-cert", str(certificate), "--tls-key", str(key)]
    keys = ["--keys", str(make_key_file(folder))] if is_keyed else []
    with told.open("wb") as log:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "sqsqlite.cli",
                "serve",
                "--db",
                str(path),
                "--port",
                "0",
                *tls,
                *keys,
                *options,
            ],
            cwd=ROOT,
            stderr=log,
        )
    deadline = time.monotonic() + 300
    while not (found := re.search(r" on (https?)://127\.0\.0\.1:(\d+)\b", told.read_text("utf-8"))):
        assert process.poll() is None, told.read_text("utf-8")
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return Endpoint(f"{found[1]}://localhost:{found[2]}", path, process, home, authority, is_keyed)


def make_key_file(folder):
    """A file of credentials with KEY, which is the key of account 000000000000 itself."""
    path = folder / "keys"
    lines = ["[default]", *(f"{name} = {value}" for name, value in KEY.items())]
    path.write_text("\n".join(lines), encoding="utf-8")
    path.chmod(0o600)
    return path


def make_certificates(folder):
    """Files of a certificate for localhost, its key, and the private authority that signed it."""
    make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    authority, authority_key = folder / "authority.pem", folder / "authority.key"
    certificate, key = folder / "server.pem", folder / "server.key"
    for arguments in (
        (authority_key, "-out", authority, "-subj", "/CN=Tests", "-addext", "keyUsage=keyCertSign"),
        (
            *(key, "-out", certificate, "-subj", "/CN=localhost", "-CA", authority, "-CAkey", authority_key),
            *(
                "-addext",
                "subjectAltName=DNS:localhost,IP:127.0.0.1",
                "-addext",
                "basicConstraints=critical,CA:FALSE",
            ),
        ),
    ):
        subprocess.run(
            [*make, "-days", "2", "-keyout", *arguments], check=True, capture_output=True, timeout=600
        )
    return certificate, key, authority
