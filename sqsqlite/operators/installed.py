# SPDX-License-Identifier: Apache-2.0
"""How SQSQLite was installed, so that a hint can name a command that works.

`pip install 'sqsqlite[spark]'` is right only if the package came from an index. pip and uv record any other origin (a
checkout, a wheel, a repository) in `direct_url.json` next to the package's metadata.

Source: the Python Packaging User Guide, "Recording the Direct URL Origin of installed distributions".
"""

import json
import shlex
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

_CHECKOUT = Path(__file__).resolve().parents[2]


def install_command(extra: str) -> str:
    """The command that adds an extra to this installation.

    Args:
        extra: its name in pyproject.toml: `boto3`, `serve` or `spark`.

    Returns:
        For example `pip install 'sqsqlite[spark]'`, or `pip install -e '/srv/checkout[spark]'`.
    """
    options, requirement = _origin(extra)
    return " ".join(["pip install", *options, shlex.quote(requirement)])


def _origin(extra: str) -> tuple[list[str], str]:
    """Options of pip and the requirement."""
    try:
        recorded = distribution("sqsqlite").read_text("direct_url.json")
    except PackageNotFoundError:  # the checkout is on sys.path, but it is not installed
        return ["-e"], f"{_CHECKOUT}[{extra}]"
    if recorded is None:
        return [], f"sqsqlite[{extra}]"
    origin: dict[str, Any] = json.loads(recorded)
    url = str(origin["url"])
    if "vcs_info" in origin:
        version = origin["vcs_info"]
        url = f"{version['vcs']}+{url}@{version.get('requested_revision') or version['commit_id']}"
    elif url.startswith("file:"):
        options = ["-e"] if origin.get("dir_info", {}).get("editable") else []
        return options, f"{url2pathname(urlsplit(url).path)}[{extra}]"
    if "subdirectory" in origin:
        url += f"#subdirectory={origin['subdirectory']}"
    return [], f"sqsqlite[{extra}] @ {url}"
