# SPDX-License-Identifier: Apache-2.0
"""Writes docs/conformance.md from the results of a run, which `make conformance` gives it as JUnit's XML."""

import sys
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree as ET

from tests.packaging.checkout import ROOT

PAGE = ROOT / "docs" / "conformance.md"
# The example for a client's users, by the module of its tests.
EXAMPLES = {
    "test_aws_cli": "clients/aws_cli.sh",
    "test_boto3": "clients/boto3_orders.py",
    "test_aiobotocore": "clients/aiobotocore_orders.py",
    "test_celery": "clients/celery_orders.py",
    "test_javascript": "clients/javascript/orders.mjs",
    "test_java": "clients/java/src/main/java/Orders.java",
    "test_extended": "clients/extended_orders.py",
}
HEAD = """# Clients that were run against `sqsqlite serve`

Each client ran in its own environment, from a package registry, over a real socket, against `sqsqlite serve` with a
new file. `make conformance` runs them and writes this page: the tests of `tests/clients` that passed, by name. If one
fails, the page stays as it is. The versions are pinned in `requirements/clients` and next to the examples. The whole
behaviour suite, `tests/behaviour`, also runs through a served file.

- The server has a key and checks the clients' signatures. Tests without keys say so in their name.
- The clients get the endpoint's URL and the key. Only one line of one client changes: Celery's worker polls with curl,
  which kombu lets trust only botocore's authorities. So over HTTPS with an own certificate the example
  replaces `kombu.asynchronous.aws.connection.get_cert_path`.
- The AWS CLI is version 1. No package registry has version 2, so it was not run.
- boto3 1.28.80 is the last whose SQS client speaks Query. 1.17.0 is the oldest that runs on each Python that SQSQLite
  runs on. No version between them or before was run.
- The extended client's S3 is moto's server.

| client | version | what was run | date | example |
|---|---|---|---|---|
"""


@dataclass
class Row:
    """One client in one version."""

    module: str
    client: str
    version: str
    date: str
    run: list[str] = field(default_factory=list)

    def line(self):
        example = EXAMPLES[self.module]
        ran = "; ".join(self.run)
        name = example.rpartition("/")[2]
        return f"| {self.client} | {self.version} | {ran} | {self.date} | [{name}]({example}) |\n"


def sentence(name):
    """A test's name as a sentence, without its parameters, which the version says."""
    return name.partition("[")[0].removeprefix("test_").replace("_", " ")


def rows(results):
    found = {}
    for suite in results.iter("testsuite"):
        date = suite.get("timestamp").partition("T")[0]
        for case in suite.iter("testcase"):
            add(found, case, date)
    return list(found.values())


def add(found, case, date):
    name, module = case.get("name"), case.get("classname").rpartition(".")[2]
    bad = [child.tag for child in case if child.tag in {"failure", "error", "skipped"}]
    if bad:
        raise SystemExit(f"{module}: {name}: {bad[0]}: the page is not written")
    told = {entry.get("name"): entry.get("value") for entry in case.iter("property")}
    key = (told["client"], told["version"])
    row = found.setdefault(key, Row(module, *key, date))
    row.run.append(sentence(name))


def main(results):
    tree = ET.parse(results)
    lines = sorted(row.line() for row in rows(tree.getroot()))
    PAGE.write_text(HEAD + "".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
