# SPDX-License-Identifier: Apache-2.0
"""Servers that speak SQS: ours, ours without its engine, ElasticMQ, moto, LocalStack; each installed once."""

import hashlib
import json
import shutil
import subprocess
import sys
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
CACHE = ROOT / ".venv" / "contestants"
LOCKS = ROOT / "requirements" / "servers"
ELASTICMQ = "org.elasticmq:elasticmq-server_2.13:1.7.1"
OURS = "sqsqlite"
SIGNED = "sqsqlite, signatures verified"
BARE = "sqsqlite without its engine"
IN_MEMORY = "none: in memory"
AT_ROOT = {"PYTHONPATH": str(ROOT)}


class CannotRun(Exception):
    """A contestant does not run on this machine, with the reason."""


@dataclass
class Contestant:
    """A server.

    Attributes:
        durability: what an answered SendMessage guarantees.
        version: of the server, and of what it runs on.
        key: id and secret, if requests must be signed.
    """

    port: int
    durability: str
    version: str
    command: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    key: tuple[str, str] | None = None


def _ours(port, folder, synchronous="FULL", processes=1):
    command = [sys.executable, "-m", "sqsqlite.cli", "serve", "--db", str(folder / "queues.db")]
    durability = {"FULL": "FULL: each commit synced", "NORMAL": "NORMAL: the process may die, not the power"}
    return Contestant(
        port,
        durability[synchronous],
        _our_version(),
        [*command, "--port", str(port), "--synchronous", synchronous, "--processes", str(processes)],
        AT_ROOT,
    )


def _our_version():
    return f"this commit, uvicorn {version('uvicorn')}"


def _signed(port, folder):
    """With a key in its file, so that each request's signature is verified."""
    found = _ours(port, folder)
    make = [sys.executable, "-m", "sqsqlite.cli", "keys", "add", "--db", str(folder / "queues.db")]
    [made] = json.loads(_run([*make, "--output", "json"], cwd=ROOT))
    return replace(found, key=(made["access_key_id"], made["secret_access_key"]))


def _bare(port, _):
    command = [sys.executable, str(HERE / "bare_endpoint.py"), str(port)]
    return Contestant(port, "none: nothing is kept", _our_version(), command, AT_ROOT)


def _elasticmq(port, folder, storage=""):
    configuration = folder / "elasticmq.conf"
    configuration.write_text(
        f'include classpath("application.conf")\nnode-address {{ port = {port} }}\n'
        f'rest-sqs {{ enabled = true, bind-port = {port}, bind-hostname = "127.0.0.1" }}\n'
        f"rest-stats {{ enabled = false }}\n{storage}"
    )
    java = ["java", f"-Dconfig.file={configuration}", "-cp", f"{_jars()}/*"]
    told = f"{ELASTICMQ.rpartition(':')[2]}, {_run(['java', '--version']).splitlines()[0]}"
    return Contestant(port, IN_MEMORY, told, [*java, "org.elasticmq.server.Main"])


def _elasticmq_kept(port, folder):
    found = _elasticmq(
        port, folder, f'messages-storage {{ enabled = true, uri = "jdbc:h2:{folder / "elasticmq"}" }}\n'
    )
    return replace(found, durability="H2's file, whose commits are not synced one by one")


def _moto(port, _):
    programs = _programs("moto")
    told = _version_of(programs, "moto")
    return Contestant(
        port, IN_MEMORY, told, [str(programs / "moto_server"), "-H", "127.0.0.1", "-p", str(port)]
    )


def _localstack(port, folder):
    environment = {
        "GATEWAY_LISTEN": f"127.0.0.1:{port}",
        "SERVICES": "sqs",
        "FILESYSTEM_ROOT": str(folder / "localstack"),
        "HOME": str(folder),
        "DNS_ADDRESS": "0",
        "DISABLE_EVENTS": "1",
        "SKIP_SSL_CERT_DOWNLOAD": "1",
    }
    programs = _programs("localstack")
    command = [str(programs / "python"), "-m", "localstack.runtime.main"]
    return Contestant(port, IN_MEMORY, _version_of(programs, "localstack-core"), command, environment)


# Each gets its port and a folder for its files, and raises CannotRun if it cannot be installed.
CONTESTANTS = {
    OURS: _ours,
    "sqsqlite, two processes": partial(_ours, processes=2),
    "sqsqlite, NORMAL": partial(_ours, synchronous="NORMAL"),
    SIGNED: _signed,
    BARE: _bare,
    "ElasticMQ": _elasticmq,
    "ElasticMQ, persistence": _elasticmq_kept,
    "moto": _moto,
    "LocalStack": _localstack,
}


def _run(command, **options):
    """Run a step of an installation. Returns its output."""
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout
    except OSError as error:
        raise CannotRun(f"{command[0]} is missing ({error.strerror})") from error
    except subprocess.CalledProcessError as error:
        told = (error.stderr or error.stdout).strip() or f"exit code {error.returncode}"
        raise CannotRun(f"{Path(command[0]).name} failed: {told.splitlines()[-1]}") from error


def _jars():
    """ElasticMQ with all its dependencies, fetched once by its coordinates."""
    jars = CACHE / ELASTICMQ.replace(":", "-")
    if not (jars / "ready").exists():
        jars.mkdir(parents=True, exist_ok=True)
        group, artifact, number = ELASTICMQ.split(":")
        (jars / "pom.xml").write_text(
            "<project><modelVersion>4.0.0</modelVersion><groupId>b</groupId><artifactId>b</artifactId>"
            f"<version>1</version><dependencies><dependency><groupId>{group}</groupId><artifactId>{artifact}"
            f"</artifactId><version>{number}</version></dependency></dependencies></project>"
        )
        copy = ["dependency:copy-dependencies", "-DoutputDirectory=.", "-DincludeScope=runtime"]
        _run(["mvn", "-B", "-q", *copy], cwd=jars)
        (jars / "ready").touch()
    return jars


def _programs(name):
    """An environment's programs, as requirements/servers/NAME.lock pins them, made again after a change."""
    lock = LOCKS / f"{name}.lock"
    folder = CACHE / f"{name}-{hashlib.sha256(lock.read_bytes()).hexdigest()[:12]}"
    if not (folder / "ready").exists():
        shutil.rmtree(folder, ignore_errors=True)
        uv = str(Path(sys.executable).with_name("uv"))
        _run([uv, "venv", "--quiet", "--python", sys.executable, str(folder)])
        install = ["pip", "install", "--quiet", "--python", str(folder), "--require-hashes"]
        _run([uv, *install, "--requirement", str(lock)])
        (folder / "ready").touch()
    return folder / "bin"


def _version_of(programs, package):
    told = f"from importlib.metadata import version; print(version('{package}'))"
    python = sys.version.split()[0]
    return f"{_run([str(programs / 'python'), '-c', told]).strip()}, Python {python}"
