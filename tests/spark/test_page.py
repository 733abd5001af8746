# SPDX-License-Identifier: Apache-2.0
"""The page: complete, self-contained, and safe for any names of queues and groups. No Spark here."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from sqsqlite.spark import page
from sqsqlite.spark.catalogue import REPORTS
from sqsqlite.spark.facts import Facts

BACKLOG = {
    "queue": "orders",
    "visible": 1200,
    "in_flight": 30,
    "delayed": 4,
    "oldest_age_seconds": 93_784,
    "age_p50_seconds": 59,
    "age_p95_seconds": None,
    "bytes": 5_000_000_000,
    "sent_per_minute": 1.5,
    "deleted_per_minute": 2.0,
    "drain_seconds": 36,
}
FACTS = Facts(Path("facts"), 1, 1234, 1_795_240_000_000)


class Elements(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.found = []
        self.open = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag not in {"meta", "br", "rect", "line"}:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in {"rect", "line"}:
            assert self.open.pop() == tag


def made(**sections):
    return page.html_page(
        {name.replace("_", "-"): rows for name, rows in sections.items()}, [Path("/srv/q.db")], FACTS
    )


def test_the_page_is_well_formed_and_self_contained():
    text = made(backlog=[BACKLOG])
    elements = Elements(text)
    assert elements.open == []
    assert {tag for tag, _ in elements.found} & {"script", "link", "img", "iframe"} == set()
    assert [attrs for _, attrs in elements.found if {"src", "href"} & attrs.keys()] == []
    assert re.search(r"https?:|url\(|@import", text) is None
    assert ("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}) in elements.found
    assert "prefers-color-scheme: dark" in text
    assert "<svg" in text


def test_numbers_are_formatted_for_people():
    text = made(backlog=[BACKLOG])
    assert "1,200" in text
    assert "5,000,000,000" in text
    assert "1 d 2 h" in text
    assert "2026-11-21 05:46:40 UTC" in text
    assert 'title="CloudWatch: ApproximateAgeOfOldestMessage"' in text


def test_names_are_escaped_in_the_markup():
    hostile = "<script>alert('x')</script>\"&"
    text = page.html_page({"backlog": [{**BACKLOG, "queue": hostile}]}, [Path(f"/srv/{hostile}.db")], FACTS)
    assert "<script" not in text
    assert "&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;&quot;&amp;" in text
    assert Elements(text).open == []


def test_a_page_without_rows_says_so():
    text = made(backlog=[], dead_letters=[], throughput=[])
    assert text.count("Nothing.") == 3
    assert Elements(text).open == []


def test_problems_of_a_fleet_are_on_the_page():
    facts = Facts(Path("facts"), 2, 5, FACTS.taken_at, {"/srv/b.db": "/srv/b.db: the file is damaged"})
    text = page.html_page(
        {"backlog": [{"file": "/srv/a.db", **BACKLOG}]}, [Path("/srv/a.db"), Path("/srv/b.db")], facts
    )
    assert "<li>/srv/b.db: the file is damaged</li>" in text
    assert "2 files" in text
    assert "a.db: orders" in text


def test_files_of_a_fleet_are_named_by_the_parts_that_differ():
    paths = [Path(f"/srv/tenants/{name}/queues.db") for name in ("north", "south", "east/1")]
    text = page.html_page({"backlog": [{"file": str(path), **BACKLOG} for path in paths]}, paths, FACTS)
    for name in ("north", "south", "east/1"):
        assert f">{name}: orders</span>" in text
        assert f"<td>{name}</td>" in text
    assert "3 files, /srv/tenants/…/queues.db" in text


@pytest.mark.parametrize(
    ("files", "names"),
    [
        (["/srv/a.db", "/srv/b.db"], ["a.db", "b.db"]),
        (["/srv/q.db", "/srv/a/q.db"], ["q.db", "a/q.db"]),
        (["/a/x.db", "/b/y.db"], ["a/x.db", "b/y.db"]),
        (["/srv/q.db"], ["q.db"]),
    ],
)
def test_a_short_name_is_never_empty(files, names):
    assert list(page._short_names([Path(file) for file in files]).values()) == names


@pytest.mark.parametrize(
    ("names", "heading"),
    [
        (["throughput"], "Throughput of q.db"),
        (["backlog", "ages"], "Backlog of q.db"),
        (["dead-letters"], "Dead letters of q.db"),
        (list(REPORTS), "Queues of q.db"),
    ],
)
def test_the_heading_names_the_report(names, heading):
    text = page.html_page({name: [] for name in names}, [Path("/srv/q.db")], FACTS)
    assert f"<h1>{heading}</h1>" in text
    assert f"<title>{heading}</title>" in text


def test_a_live_page_shows_the_time_of_its_data():
    assert "read live at 20" in page.html_page({"backlog": [BACKLOG]}, [Path("/srv/q.db")], None)


def test_periods_without_activity_keep_their_place():
    flows = {
        "queue": "q",
        "received": 0,
        "empty_receives": 0,
        "deduplicated": 0,
        "sent_bytes": 0,
        "dead_lettered": 0,
    }
    hours = [f"2026-11-21T{hour:02}:00:00.000Z" for hour in (5, 6, 9)]
    starts = page._without_gaps(hours)
    assert [start[11:13] for start in starts] == ["05", "06", "07", "08", "09"]
    assert page._without_gaps(hours[:1]) == hours[:1]
    text = made(throughput=[{**flows, "at": at, "sent": 5, "deleted": 2} for at in hours])
    assert "2026-11-21 05:00" in text
    assert "2026-11-21 08:00: 0 sent" in text


def test_a_decade_of_minutes_is_drawn_without_the_gaps():
    ends = ["2016-11-21T05:00:00.000Z", "2016-11-21T05:01:00.000Z", "2026-11-21T05:00:00.000Z"]
    assert page._without_gaps(ends) == ends


def test_a_long_table_is_cut_and_says_by_how_much():
    text = made(
        fleet=[
            {
                "file": f"/srv/{number}.db",
                "queues": 1,
                "messages": 1,
                "visible": 1,
                "in_flight": 0,
                "delayed": 0,
                "oldest_age_seconds": 1,
                "bytes": 1,
                "problem": None,
            }
            for number in range(page.MOST_ROWS + 7)
        ]
    )
    assert "And 7 more rows." in text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (59, "59 s"),
        (60, "1 m"),
        (61, "1 m 1 s"),
        (3600, "1 h"),
        (3661, "1 h 1 m"),
        (93_784, "1 d 2 h"),
    ],
)
def test_ages_have_two_units(seconds, text):
    assert page._seconds(seconds) == text
