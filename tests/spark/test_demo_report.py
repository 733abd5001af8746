# SPDX-License-Identifier: Apache-2.0
"""The demo ends with Spark's report of the file that it has just made."""

import sqsqlite
from tests.cli.runs import runner_on


def test_the_demo_ends_with_the_report_of_its_file(session, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = runner_on(tmp_path / "unused.db")("demo", "--limit", "40", "--workers", "2", "--db", "demo.db")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    [heading] = [place for place, line in enumerate(lines) if "drains in" in line]
    with sqsqlite.connect("demo.db") as sqs:
        counts = {found.name: str(found.visible) for found in sqs.stats()}
    assert {
        line.split()[0]: line.split()[1] for line in lines[heading + 1 : heading + 1 + len(counts)]
    } == counts
    assert counts["source-files"] == "0" != counts["source-files-dead"]
    assert "All of Spark's reports, as a page: demo.html" in done.err
    page = (tmp_path / "demo.html").read_text()
    assert "source-files-dead" in page
    assert "<svg" in page
