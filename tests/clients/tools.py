# SPDX-License-Identifier: Apache-2.0
"""The programs that clients need in addition to Python: found, or installed once from a lock into .venv/clients."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packaging.checkout import ROOT

CACHE = ROOT / ".venv" / "clients"
INSTALL_SECONDS = 600


def need(program, install):
    """The path of a program. Without it the test fails in CI, which leaves nothing out, and is skipped elsewhere."""
    found = shutil.which(program)
    if found is None:
        told = f"{program} is missing: {install}"
        if os.environ.get("CI"):
            pytest.fail(told)
        pytest.skip(told)
    return found


def kept(name, *pinned, make):
    """A folder of the cache that `make(folder)` filled.

    It is made again if a file that pins its content has changed.
    """
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in pinned)).hexdigest()
    folder = CACHE / f"{name}-{digest[:12]}"
    ready = folder / "ready"
    if not ready.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        make(folder)
        ready.touch()
    return folder


def run(*command, **options):
    """Run a step of an installation. Its output is shown only if it fails."""
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=INSTALL_SECONDS, **options
    )
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def programs(name):
    """The folder of the programs of an environment of its own: what requirements/clients/NAME.lock pins, and Python."""
    lock = ROOT / "requirements" / "clients" / f"{name}.lock"
    uv = Path(sys.executable).with_name("uv")

    def make(folder):
        run(uv, "venv", "--quiet", "--python", sys.executable, folder / "venv")
        run(
            *(uv, "pip", "install", "--quiet", "--python", folder / "venv"),
            *("--require-hashes", "--requirement", lock),
        )

    return kept(name, lock, make=make) / "venv" / "bin"


def version_of(python, package):
    """The version of a package that the interpreter has."""
    return run(python, "-c", f"from importlib.metadata import version; print(version('{package}'))").strip()
