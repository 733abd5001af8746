# SPDX-License-Identifier: Apache-2.0
"""Options without an effect on a report, or without a meaning, are refused before Spark starts."""

import pytest


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("backlog --since 0s", "'0s': a length of time is at least 1s"),
        ("backlog --since 2999-01-01", "'2999-01-01' is in the future: an instant is before now"),
        ("ages --since 1h", "ages has no --since. These have it: backlog, receives, poison, "),
        ("groups --since 1h", "groups has no --since. These have it: "),
        ("fleet --since 1h", "fleet has no --since. These have it: "),
        (
            "ages --top 5",
            "ages has no --top. These have it: receives, poison, groups, leases, expiring, all.",
        ),
        ("backlog --every hour", "backlog has no --every. These have it: throughput, all."),
        ("backlog --live --partitions 2", "--partitions is about the snapshot, and --live takes no snapshot"),
        (
            "backlog --live --snapshot-dir .",
            "--snapshot-dir is about the snapshot, and --live takes no snapshot",
        ),
        ("all --output html --query []", "--query does not work with html"),
        ("backlog --output parquet --out lake --query []", "--query does not work with parquet"),
    ],
)
def test_an_option_that_a_report_does_not_have_is_refused(run, sqs, words, said):
    refused = run("report", *words.split())
    assert (refused.code, refused.out) == (2, "")
    assert said in " ".join(refused.err.split())
