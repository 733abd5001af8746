# SPDX-License-Identifier: Apache-2.0
"""The lock is what a new machine installs: complete, checked by hash, and consistent with pyproject.toml."""

import re
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from tests.packaging.checkout import FOLDERS, ROOT, modules, pyproject

LOCKS = {path.stem: path for path in sorted((ROOT / "requirements").glob("*.lock"))}
PINNED = re.compile(r"^(?P<name>[a-z0-9.-]+)==(?P<version>[^ ;]+)(?: ; (?P<marker>.*?))? \\$", re.MULTILINE)


def pins(lock: str) -> dict[str, set[str]]:
    """The versions of each package, several if they differ by Python version."""
    versions: dict[str, set[str]] = {}
    for pin in PINNED.finditer(LOCKS[lock].read_text(encoding="utf-8")):
        versions.setdefault(pin["name"], set()).add(pin["version"])
    return versions


def wanted(*, extras: tuple[str, ...] = (), groups: tuple[str, ...] = ()) -> list[Requirement]:
    project: dict[str, Any] = pyproject()
    lines = list(project["project"]["dependencies"])
    lines += [line for extra in extras for line in project["project"]["optional-dependencies"][extra]]
    lines += [line for group in groups for line in project["dependency-groups"][group]]
    return [Requirement(line) for line in lines]


@pytest.mark.parametrize(
    ("lock", "requirements"),
    [
        ("runtime", wanted(extras=("serve",))),
        ("dev", wanted(extras=("boto3", "serve"), groups=("build", "lint", "lock", "test"))),
        ("spark", wanted(extras=("spark",))),
        ("bench", wanted(groups=("bench",))),
        ("bench-honker", wanted(groups=("bench-honker",))),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_lock_satisfies_pyproject(lock: str, requirements: list[Requirement]):
    """After a change of pyproject.toml: make lock."""
    held = pins(lock)
    missing = [
        str(requirement)
        for requirement in requirements
        if not any(
            requirement.specifier.contains(version) for version in held.get(requirement.name.lower(), ())
        )
    ]
    assert missing == []


@pytest.mark.parametrize("path", LOCKS.values(), ids=LOCKS.keys())
def test_lock_names_no_registry_and_has_a_hash_for_every_package(path: Path):
    text = path.read_text(encoding="utf-8")
    assert "://" not in text
    packages = re.split(r"^(?=\S)", text, flags=re.MULTILINE)[1:]
    assert [package.split()[0] for package in packages if "--hash=sha256:" not in package] == []
    assert len(packages) == len(PINNED.findall(text)) > 0


@pytest.mark.parametrize("lock", [name for name in LOCKS if name != "dev"])
def test_locks_agree(lock: str):
    """Each is installed together with dev.lock, or instead of it."""
    dev = pins("dev")
    assert {
        name: versions for name, versions in pins(lock).items() if dev.get(name, versions) != versions
    } == {}


def test_every_package_folder_ships():
    """pyproject.toml lists the packages by hand, since two of them lie outside sqsqlite/."""
    folders = {name for name, path in modules().items() if path.name == "__init__.py"}
    assert set(pyproject()["tool"]["setuptools"]["packages"]) == folders
    assert all((ROOT / folder / "__init__.py").exists() for folder in FOLDERS)
