# SPDX-License-Identifier: Apache-2.0
"""Writes docs/conformance.md from the results of a run, which `make conformance` gives it as JUnit's XML."""

import sys
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree as ET

from tests.packaging.checkout import ROOT

PAGE = ROOT / "docs" / "conformance.md"
# What a client's user copies, by the module of its tests.
EXAMPLES = {
    "test_aws_cli": "clients/aws_cli.sh",
    "test_boto3": "clients/boto3_orders.py",
    "test_aiobotocore": "clients/aiobotocore_orders.py",
    "test_celery": "clients/celery_orders.py",
    "test_javascript": "clients/javascript/orders.mjs",
    "test_java": "clients/java/src/main/java/Orders.java",
    "test_extended": "clients/extended_orders.py",
}
HEAD = """# The clients that were run against `sqsqlite serve`

Each in an environment of its own, from a package registry, over a real socket to `sqsqlite serve` with a new file.
`make conformance` runs them and writes this page: what passed, by the names of the tests in `tests/clients`; if
anything did not, nothing is written. The versions are pinned in `requirements/clients` and beside the examples. Apart
from them the whole behaviour suite, `tests/behaviour`, goes through a served file.

- The server has a key, and checks the clients' signatures. What ran without keys says so by its name.
- The clients are told the endpoint's URL and the key, and are unchanged otherwise, but for one line: Celery's worker
  polls with curl, to which kombu gives no other authorities than botocore's. Over HTTPS with a certificate of one's own
  the example therefore replaces `kombu.asynchronous.aws.connection.get_cert_path`.
- The AWS CLI is version 1. Version 2 comes from no package registry, and was not run.
- boto3 1.28.80 is the last whose SQS client speaks Query. 1.17.0 is not the first: it is the oldest that still runs on
  each Python that SQSQLite runs on. Of those between and before none was run.
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
    """What a test's name says: its parameters are told by the version."""
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
