# SPDX-License-Identifier: Apache-2.0
"""What Spark needs to read SQLite: Java, and one pinned version of the JDBC driver.

A file from a cache or a registry must have the SHA-256 that stands here. Ivy, which comes with PySpark, fetches the
driver by its Maven coordinates. So Maven is not needed, and the repository holds no binary.
"""

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from sqsqlite.operators.installed import install_command
from sqsqlite.spark.errors import DriverMissing, JavaMissing, SparkMissing

# 3.51.3 is the first without SQLite's WAL-reset bug.
GROUP, ARTIFACT, VERSION = "org.xerial", "sqlite-jdbc", "3.54.1.0"
SHA256 = "f8dce420a6016278497f4f0560f65602b9db858de141b541cf91a4644ebe4639"
CLASS = "org.sqlite.JDBC"
ENVIRONMENT = "SQSQLITE_JDBC_JAR"
FETCH_SECONDS = 120
JAVA_SECONDS = 30
JAVA_VERSION = 17
# Of Debian's package libxerial-sqlite-jdbc-java. It is another version, so it comes last.
DEBIAN_JAR = Path("/usr/share/java/sqlite-jdbc.jar")

_NAME = f"{ARTIFACT}-{VERSION}.jar"


def driver_jar(given: str | os.PathLike[str] | None = None, *, fetch: bool = True) -> Path:
    """The path of the driver's jar.

    The first of these: `given`, or else the file that SQSQLITE_JDBC_JAR names, both of any version; our own cache;
    Maven's and Ivy's caches, if the SHA-256 fits; a fetch into our cache; Debian's package.

    Args:
        given: a jar to use instead of the pinned one.
        fetch: False never uses the network.

    Raises:
        DriverMissing: the named jar does not exist, or there is no jar and the fetch failed.
        JavaMissing, SparkMissing: the fetch needs Java and PySpark.
    """
    named = given or os.environ.get(ENVIRONMENT)
    if named:
        jar = Path(named).absolute()
        if not jar.is_file():
            raise DriverMissing(
                f"{named}: this jar does not exist ({'--jdbc-jar' if given else ENVIRONMENT} names it)"
            )
        return jar
    for jar in (cached_jar(), *_caches_of_others()):
        if is_sound(jar):
            return jar
    if not fetch:
        raise DriverMissing(_missing("no cache has it, and the caller did not allow a fetch"))
    try:
        return fetch_driver()
    except DriverMissing:
        if DEBIAN_JAR.is_file():
            return DEBIAN_JAR
        raise


def check_driver(jar: Path) -> None:
    """Refuse a file that is not a driver. Spark would only say that it does not find a class.

    Raises:
        DriverMissing: the file is not a jar, or a jar without SQLite's driver.
    """
    try:
        with zipfile.ZipFile(jar) as found:
            found.getinfo(CLASS.replace(".", "/") + ".class")
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise DriverMissing(
            f"{jar}: this file is not a JDBC driver of SQLite: it has no {CLASS}. `sqsqlite analytics fetch-driver` "
            f"fetches {GROUP}:{ARTIFACT}:{VERSION}, which is"
        ) from error


def cached_jar() -> Path:
    """The path of our own copy, which may not exist yet: below XDG_CACHE_HOME, or else below ~/.cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "sqsqlite" / "jdbc" / _NAME


def is_sound(jar: Path) -> bool:
    """Whether the file exists and is the pinned driver, byte for byte."""
    try:
        with jar.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == SHA256
    except OSError:
        return False


def _caches_of_others() -> Iterator[Path]:
    home = Path.home()
    yield home.joinpath(".m2", "repository", *GROUP.split("."), ARTIFACT, VERSION, _NAME)
    for ivy in sorted(home.glob(".ivy2*")):
        yield ivy / "jars" / f"{GROUP}_{_NAME}"


def fetch_driver() -> Path:
    """Fetch the driver by its Maven coordinates into our cache, and check its SHA-256.

    Raises:
        SparkMissing: PySpark is not installed, and Ivy comes with it.
        JavaMissing: there is no Java, and Ivy needs it.
        DriverMissing: no registry answered, or the file that it sent is not the pinned driver.
    """
    ivy, java, target = _ivy(), java_command(), cached_jar()
    target.parent.mkdir(parents=True, exist_ok=True)
    # In the cache's own folder, so that the last step is a rename: other processes see the whole jar or no jar.
    with tempfile.TemporaryDirectory(prefix="fetch-", dir=target.parent) as folder:
        arguments = [java, "-jar", str(ivy), "-cache", f"{folder}/cache", "-confs", "default"]
        arguments += ["-dependency", GROUP, ARTIFACT, VERSION]
        arguments += ["-retrieve", f"{folder}/[artifact]-[revision].[ext]"]
        try:
            run = subprocess.run(  # noqa: S603 # Java, with arguments of our own
                arguments, capture_output=True, text=True, timeout=FETCH_SECONDS, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise DriverMissing(_missing(f"the registry did not answer within {FETCH_SECONDS} s")) from error
        fetched = Path(folder, _NAME)
        if run.returncode or not fetched.is_file():
            raise DriverMissing(_missing("it could not be fetched: is there a network?"))
        if not is_sound(fetched):
            raise DriverMissing(
                _missing(f"the file that the registry sent does not have the SHA-256 {SHA256}")
            )
        os.replace(fetched, target)
    return target


def _ivy() -> Path:
    found = importlib.util.find_spec("pyspark")  # without importing it
    if found is None or found.origin is None:
        raise SparkMissing(f"PySpark is not installed: {install_command('spark')}")
    jars = sorted(Path(found.origin).parent.glob("jars/ivy-*.jar"))
    if not jars:
        raise DriverMissing(_missing(f"the PySpark in {Path(found.origin).parent} has no Ivy"))
    return jars[-1]


def java_command() -> str:
    """The Java that Spark runs: that of JAVA_HOME, or else the one on the PATH.

    Raises:
        JavaMissing: there is no Java.
    """
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home, "bin")) if home else None)
    if found is None:
        where = f"JAVA_HOME is {home}, which has no bin/java" if home else "there is no java on the PATH"
        raise JavaMissing(
            f"Spark needs Java 17 or newer: {where} (Debian: apt-get install openjdk-17-jre-headless)"
        )
    return found


def check_java(java: str) -> None:
    """Refuse a Java that is too old for Spark, or that does not run.

    Raises:
        JavaMissing: the message has the path, the version and what to do.
    """
    try:
        run = subprocess.run(  # noqa: S603 # Java, with an argument of our own
            [java, "-version"], capture_output=True, text=True, timeout=JAVA_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise JavaMissing(f"Spark needs Java 17 or newer: {java} does not run ({error})") from error
    printed = run.stderr + run.stdout
    version = re.search(r'version "(?:1\.)?(\d+)', printed)
    if run.returncode or version is None:
        line = printed.strip().partition("\n")[0]
        raise JavaMissing(
            f"Spark needs Java 17 or newer: {java} does not run ({line or 'it prints nothing'})"
        )
    if int(version[1]) < JAVA_VERSION:
        raise JavaMissing(
            f"Spark needs Java 17 or newer: {java} is Java {version[1]}. Set JAVA_HOME to another one "
            "(Debian: apt-get install openjdk-17-jre-headless)"
        )


def _missing(why: str) -> str:
    return (
        f"the JDBC driver {GROUP}:{ARTIFACT}:{VERSION} is missing: {why}. On a machine with a network, "
        f"`sqsqlite analytics fetch-driver` fetches it into {cached_jar()}. --jdbc-jar or {ENVIRONMENT} names another"
    )
