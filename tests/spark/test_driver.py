# SPDX-License-Identifier: Apache-2.0
"""The places of the JDBC driver, their order, and the error if it is in none of them."""

import hashlib
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from sqsqlite.operators.installed import install_command
from sqsqlite.spark import driver
from sqsqlite.spark import session as spark
from sqsqlite.spark.errors import DriverMissing, JavaMissing

BYTES = b"a driver, as far as its digest goes"


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """An empty home. A driver is some bytes with a known digest, and no registry answers."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(driver.ENVIRONMENT, raising=False)
    monkeypatch.setattr(driver, "SHA256", hashlib.sha256(BYTES).hexdigest())
    monkeypatch.setattr(driver, "DEBIAN_JAR", tmp_path / "debian.jar")
    monkeypatch.setattr(driver, "java_command", lambda: "java")
    monkeypatch.setattr(driver, "_ivy", lambda: tmp_path / "ivy.jar")
    registry(monkeypatch, None)
    return tmp_path


def registry(monkeypatch, content):
    """The result of the fetch: bytes, or no network."""

    def run(arguments, **_):
        if content is not None:
            target = arguments[arguments.index("-retrieve") + 1]
            Path(target.replace("[artifact]-[revision].[ext]", driver._NAME)).write_bytes(content)
        return subprocess.CompletedProcess(arguments, 0 if content is not None else 1, "", "")

    monkeypatch.setattr(driver, "subprocess", subprocess_with(run))


def subprocess_with(run):
    return SimpleNamespace(run=run, TimeoutExpired=subprocess.TimeoutExpired)


def lay(path, content=BYTES):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def maven(home):
    return home / ".m2/repository/org/xerial/sqlite-jdbc" / driver.VERSION / driver._NAME


def ivy(home):
    return home / ".ivy2.5.2/jars" / f"org.xerial_{driver._NAME}"


def test_the_first_place_that_has_it_wins(home, monkeypatch):
    """From the last place to the first: each new one takes precedence over those after it."""
    debian = lay(driver.DEBIAN_JAR, b"another version")
    assert driver.driver_jar() == debian
    registry(monkeypatch, BYTES)
    assert driver.driver_jar() == driver.cached_jar()
    driver.cached_jar().unlink()
    registry(monkeypatch, None)
    lay(ivy(home))
    assert driver.driver_jar() == ivy(home)
    lay(maven(home))
    assert driver.driver_jar() == maven(home)
    lay(driver.cached_jar())
    assert driver.driver_jar() == driver.cached_jar()
    monkeypatch.setenv(driver.ENVIRONMENT, str(lay(home / "environment.jar", b"of the user's choice")))
    assert driver.driver_jar() == home / "environment.jar"
    assert driver.driver_jar(lay(home / "given.jar", b"of the user's choice")) == home / "given.jar"


def test_a_missing_named_jar_is_an_error_and_no_other_is_used(home, monkeypatch):
    lay(driver.cached_jar())
    with pytest.raises(DriverMissing, match=r"no\.jar: this jar does not exist \(--jdbc-jar"):
        driver.driver_jar(home / "no.jar")
    monkeypatch.setenv(driver.ENVIRONMENT, str(home / "nor.jar"))
    with pytest.raises(DriverMissing, match=r"nor\.jar: .*SQSQLITE_JDBC_JAR"):
        driver.driver_jar()


@pytest.mark.parametrize("place", [lambda _: driver.cached_jar(), maven, ivy])
def test_a_jar_with_another_digest_is_skipped_and_fetched_again(home, monkeypatch, place):
    lay(place(home), b"damaged, or not what it seems")
    registry(monkeypatch, BYTES)
    assert driver.driver_jar() == driver.cached_jar()
    assert driver.cached_jar().read_bytes() == BYTES


def test_a_fetched_jar_with_another_digest_is_refused_and_not_kept(monkeypatch):
    registry(monkeypatch, b"something else")
    with pytest.raises(DriverMissing, match="SHA-256"):
        driver.driver_jar()
    assert not driver.cached_jar().exists()
    assert list(driver.cached_jar().parent.iterdir()) == []


def test_error_without_a_network_names_a_remedy(home):
    with pytest.raises(DriverMissing, match=r"could not be fetched.*fetch-driver.*--jdbc-jar"):
        driver.driver_jar()
    with pytest.raises(DriverMissing, match="did not allow a fetch"):
        driver.driver_jar(fetch=False)


def test_a_registry_that_does_not_answer_causes_a_timeout(monkeypatch):
    def run(arguments, timeout, **_):
        raise subprocess.TimeoutExpired(arguments, timeout)

    monkeypatch.setattr(driver, "subprocess", subprocess_with(run))
    with pytest.raises(DriverMissing, match="did not answer within 120 s"):
        driver.driver_jar()


def program(home, text, **environment):
    return subprocess.run(
        [sys.executable, "-c", text],
        env={"HOME": str(home), "PATH": str(home), **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


def test_without_java_a_report_says_so_in_one_line(home):
    """Only reports need Java: the same process has created the file and sent to it."""
    text = (
        "import sqsqlite; sqs = sqsqlite.connect('queues.db'); sqs.create_queue('q').send('hi'); sqs.close()\n"
        "from sqsqlite.cli import main; main(['--db', 'queues.db', 'report', 'backlog'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", text],
        cwd=home,
        env={"HOME": str(home), "PATH": str(home)},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert "JavaMissing: Spark needs Java 17 or newer: there is no java on the PATH" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_java_home_without_java_is_named(home):
    done = program(
        home, "from sqsqlite.spark.driver import java_command; java_command()", JAVA_HOME="/nowhere"
    )
    assert (
        "JavaMissing: Spark needs Java 17 or newer: JAVA_HOME is /nowhere, which has no bin/java"
        in done.stderr
    )


def test_without_pyspark_the_extra_is_named(home):
    text = (
        "import sys; sys.modules['pyspark'] = None\n"
        "from sqsqlite.spark.session import spark_session\n"
        "with spark_session(jar=sys.executable): pass"
    )
    said = f"SparkMissing: PySpark is not installed: {install_command('spark')}"
    assert said in program(home, text).stderr


@pytest.mark.parametrize("text", ["no jar at all", None], ids=["text", "another jar"])
def test_a_jar_without_the_driver_is_refused(home, text):
    jar = home / "another.jar"
    if text is None:
        with zipfile.ZipFile(jar, "w") as made:
            made.writestr("org/h2/Driver.class", b"")
    else:
        jar.write_text(text)
    with pytest.raises(
        DriverMissing, match=r"another\.jar: this file is not a JDBC driver of SQLite.*fetch-driver"
    ):
        driver.check_driver(jar)
    with pytest.raises(DriverMissing), spark.spark_session(jar=jar):
        pass


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo 'openjdk version \"11.0.2\" 2019-01-15' >&2", "is Java 11. Set JAVA_HOME to another one"),
        ("echo 'java version \"1.8.0_392\"' >&2", "is Java 8. "),
        (
            "echo 'Error: could not find libjava.so' >&2; exit 1",
            "does not run .Error: could not find libjava.so",
        ),
        ("exit 3", "does not run .it prints nothing"),
    ],
)
def test_a_java_that_can_t_run_spark_is_named(home, monkeypatch, script, said):
    monkeypatch.undo()
    java = lay(home / "bin" / "java", b"#!/bin/sh\n" + script.encode() + b"\n")
    java.chmod(0o755)
    with pytest.raises(JavaMissing, match=f"Spark needs Java 17 or newer: {java} {said}"):
        driver.check_java(str(java))
    done = program(
        home,
        "import sys; from sqsqlite.spark import session as spark, driver; spark.check_driver = lambda jar: None\n"
        "with spark.spark_session(jar=sys.executable): pass",
        JAVA_HOME=str(home),
        PATH=f"{home}/bin:{os.environ['PATH']}",
    )
    assert f"JavaMissing: Spark needs Java 17 or newer: {java} " in done.stderr


def test_java_comes_from_java_home_or_else_from_the_path(tmp_path, monkeypatch):
    monkeypatch.undo()
    for folder in ("home/bin", "path"):
        java = lay(tmp_path / folder / "java", b"#!/bin/sh\n")
        java.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert driver.java_command() == str(tmp_path / "path/java")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert driver.java_command() == str(tmp_path / "home/bin/java")
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME")
    with pytest.raises(JavaMissing):
        driver.java_command()


def test_the_real_driver_is_the_pinned_one(jar, monkeypatch):
    """Unless the environment names another jar, the jar of the tests has the digest in the source."""
    monkeypatch.undo()
    if jar in (driver.cached_jar(), *driver._caches_of_others()):
        assert driver.is_sound(jar)
