from pathlib import Path

import pytest

from sqsqlite.demo import sources


def test_functions_classes_and_lines_are_counted(tmp_path):
    """Methods, functions inside functions and `async def` count as functions."""
    file = tmp_path / "a.py"
    file.write_text("class A:\n    def f(self):\n        def g(): ...\n\nasync def h(): ...\n")
    assert sources.count(file) == sources.Counts(functions=3, classes=1, lines=5)


@pytest.mark.parametrize(
    "source",
    [b"print 'hello'\n", b"def f(:\n", b"x = '\xf6'\n", b"# coding: uft-8\n", b"x = 1\0\n"],
    ids=["another grammar", "broken", "not UTF-8", "unknown encoding", "NUL"],
)
def test_what_is_no_source_is_unparsable(tmp_path, source):
    file = tmp_path / "a.py"
    file.write_bytes(source)
    with pytest.raises(sources.Unparsable, match=r"a\.py"):
        sources.count(file)


def test_a_file_that_is_not_there_is_an_error_of_its_own(tmp_path):
    with pytest.raises(FileNotFoundError):
        sources.count(tmp_path / "a.py")


def test_what_was_installed_beside_the_library_is_left_out(tmp_path):
    for name in ("b.py", "a.py", "json/tool.py", "site-packages/x.py", "dist-packages/y.py", "a.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert sources.find(tmp_path) == [tmp_path / "a.py", tmp_path / "b.py", tmp_path / "json/tool.py"]


def test_a_sample_is_spread_over_all():
    paths = [Path(str(number)) for number in range(10)]
    assert sources.sample(paths, 3) == [Path("0"), Path("3"), Path("6")]
    assert sources.sample(paths, 10) == sources.sample(paths, 11) == sources.sample(paths, None) == paths


def test_a_truncated_copy_does_not_parse(tmp_path):
    truncated = tmp_path / "truncated.py"
    sources.write_truncated(Path(sources.__file__), truncated)
    assert not sources.parses(truncated)
    assert Path(sources.__file__).read_bytes().startswith(truncated.read_bytes())
    assert truncated.stat().st_size > 1000


def test_a_library_with_an_unparsable_file_is_known_by_it(tmp_path):
    good, bad = tmp_path / "bad_idea.py", tmp_path / "tokenizedata" / "x.py"
    good.write_text("pass\n")
    assert not sources.ships_unparsable([good])
    bad.parent.mkdir()
    bad.write_text("def\n")
    assert sources.ships_unparsable([good, bad])
