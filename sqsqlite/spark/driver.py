"""The JDBC driver of SQLite: one pinned jar, looked for in the places where it may be, fetched if it is in none.

The version and its SHA-256 are fixed here: what a cache or a registry gives is compared before Spark sees it. The
fetch goes by Maven coordinates, through the Ivy that PySpark ships: no Maven is needed, no binary is committed.
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

# 3.51.3 or newer: the first without SQLite's WAL-reset bug.
GROUP, ARTIFACT, VERSION = "org.xerial", "sqlite-jdbc", "3.54.1.0"
SHA256 = "f8dce420a6016278497f4f0560f65602b9db858de141b541cf91a4644ebe4639"
CLASS = "org.sqlite.JDBC"
ENVIRONMENT = "SQSQLITE_JDBC_JAR"
FETCH_SECONDS = 120
JAVA_SECONDS = 30
JAVA_VERSION = 17
# Debian's package libxerial-sqlite-jdbc-java: another version, so only where nothing else can be had.
DEBIAN_JAR = Path("/usr/share/java/sqlite-jdbc.jar")

_NAME = f"{ARTIFACT}-{VERSION}.jar"


def driver_jar(given: str | os.PathLike[str] | None = None, *, fetch: bool = True) -> Path:
    """The driver's jar.

    The first of: `given`, else the file that SQSQLITE_JDBC_JAR names (either as it is: whoever names a jar wants that
    one); our own cache; Maven's and Ivy's caches, if the SHA-256 fits; a fetch into our cache; Debian's package.

    Args:
        fetch: False never asks the network.

    Raises:
        DriverMissing: a named jar does not exist, or there is none and none can be fetched.
        JavaMissing, SparkMissing: what the fetch needs is not there.
    """
    named = given or os.environ.get(ENVIRONMENT)
    if named:
        jar = Path(named).absolute()
        if not jar.is_file():
            raise DriverMissing(
                f"{named}: there is no such jar ({'--jdbc-jar' if given else ENVIRONMENT} names it)"
            )
        return jar
    for jar in (cached_jar(), *_caches_of_others()):
        if is_sound(jar):
            return jar
    if not fetch:
        raise DriverMissing(_missing("it is in no cache, and was not to be fetched"))
    try:
        return fetch_driver()
    except DriverMissing:
        if DEBIAN_JAR.is_file():
            return DEBIAN_JAR
        raise


def check_driver(jar: Path) -> None:
    """Refuse a file that is no driver before Spark tells of a class that it does not find.

    Raises:
        DriverMissing: it is no jar, or has no driver of SQLite's in it.
    """
    try:
        with zipfile.ZipFile(jar) as found:
            found.getinfo(CLASS.replace(".", "/") + ".class")
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise DriverMissing(
            f"{jar}: it is no JDBC driver of SQLite, as it has no {CLASS}. One is {GROUP}:{ARTIFACT}:{VERSION}, which "
            "`sqsqlite analytics fetch-driver` fetches"
        ) from error


def cached_jar() -> Path:
    """Where our own copy is kept, whether or not it is there: below XDG_CACHE_HOME, else ~/.cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "sqsqlite" / "jdbc" / _NAME


def is_sound(jar: Path) -> bool:
    """Whether the file is there and is the pinned driver, byte for byte."""
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
    """Fetch the driver by its Maven coordinates into our cache, and compare it with its SHA-256.

    Raises:
        SparkMissing: the Ivy that does it comes with PySpark.
        JavaMissing: it is a Java program.
        DriverMissing: no registry answered, or what came is not the pinned driver.
    """
    ivy, java, target = _ivy(), java_command(), cached_jar()
    target.parent.mkdir(parents=True, exist_ok=True)
    # Beside its place, so that the last step is a rename: another process sees a whole jar or none.
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
        came = Path(folder, _NAME)
        if run.returncode or not came.is_file():
            raise DriverMissing(_missing("it could not be fetched: is there a network?"))
        if not is_sound(came):
            raise DriverMissing(_missing(f"what the registry sent does not have the SHA-256 {SHA256}"))
        os.replace(came, target)
    return target


def _ivy() -> Path:
    found = importlib.util.find_spec("pyspark")  # without importing it
    if found is None or found.origin is None:
        raise SparkMissing(f"PySpark is not installed: {install_command('spark')}")
    jars = sorted(Path(found.origin).parent.glob("jars/ivy-*.jar"))
    if not jars:
        raise DriverMissing(_missing(f"the PySpark in {Path(found.origin).parent} comes without Ivy"))
    return jars[-1]


def java_command() -> str:
    """The Java that Spark would run: of JAVA_HOME, else the one on PATH.

    Raises:
        JavaMissing: there is none.
    """
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home, "bin")) if home else None)
    if found is None:
        where = f"JAVA_HOME is {home}, and has no bin/java" if home else "there is no java on the PATH"
        raise JavaMissing(
            f"Spark needs Java 17 or newer: {where} (Debian: apt-get install openjdk-17-jre-headless)"
        )
    return found


def check_java(java: str) -> None:
    """Refuse a Java that is too old for Spark, or does not run.

    Raises:
        JavaMissing: says which, and what to do.
    """
    try:
        run = subprocess.run(  # noqa: S603 # Java, with an argument of our own
            [java, "-version"], capture_output=True, text=True, timeout=JAVA_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise JavaMissing(f"Spark needs Java 17 or newer: {java} does not run ({error})") from error
    told = run.stderr + run.stdout
    version = re.search(r'version "(?:1\.)?(\d+)', told)
    if run.returncode or version is None:
        line = told.strip().partition("\n")[0]
        raise JavaMissing(f"Spark needs Java 17 or newer: {java} does not run ({line or 'it says nothing'})")
    if int(version[1]) < JAVA_VERSION:
        raise JavaMissing(
            f"Spark needs Java 17 or newer: {java} is Java {version[1]}. JAVA_HOME names another "
            "(Debian: apt-get install openjdk-17-jre-headless)"
        )


def _missing(why: str) -> str:
    return (
        f"the JDBC driver {GROUP}:{ARTIFACT}:{VERSION} is missing: {why}. `sqsqlite analytics fetch-driver` on a "
        f"machine with a network puts it into {cached_jar()}; --jdbc-jar or {ENVIRONMENT} names a jar elsewhere"
    )
