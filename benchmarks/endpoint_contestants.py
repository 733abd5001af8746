"""Servers that speak SQS: ours, ours without its engine, ElasticMQ, moto, LocalStack; each installed once."""

import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
CACHE = ROOT / ".venv" / "contestants"
ELASTICMQ = "org.elasticmq:elasticmq-server_2.13:1.7.1"
SIGNED = "sqsqlite, signatures verified"
# One whose runtime starts on Python 3.11, with what it asks for as it was then: later ones need a newer Python.
LOCALSTACK = ("localstack-core[base-runtime]==4.9.0", "cbor2<5.8", "localstack-twisted<26", "pyopenssl<25")
BARE = "sqsqlite without its engine"
AT_ROOT = {"PYTHONPATH": str(ROOT)}
MOTO = "moto[server]==5.2.5"


@dataclass
class Contestant:
    """A server.

    Attributes:
        durability: what an answered SendMessage is worth.
        key: id and secret, where requests must be signed.
    """

    port: int
    durability: str
    command: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    key: tuple[str, str] | None = None


def _ours(port, folder, synchronous="FULL"):
    command = [sys.executable, "-m", "sqsqlite.cli", "serve", "--db", str(folder / "queues.db")]
    durability = {"FULL": "FULL: each commit synced", "NORMAL": "NORMAL: the process may die, not the power"}
    return Contestant(
        port, durability[synchronous], [*command, "--port", str(port), "--synchronous", synchronous], AT_ROOT
    )


def _signed(port, folder):
    """With a key in its file, so that each request's signature is verified."""
    found = _ours(port, folder)
    make = [sys.executable, "-m", "sqsqlite.cli", "keys", "add", "--db", str(folder / "queues.db")]
    [made] = json.loads(
        subprocess.run([*make, "--output", "json"], cwd=ROOT, capture_output=True, check=True).stdout
    )
    return replace(found, key=(made["access_key_id"], made["secret_access_key"]))


def _bare(port, _):
    return Contestant(
        port, "none: nothing is kept", [sys.executable, str(HERE / "bare_endpoint.py"), str(port)], AT_ROOT
    )


def _elasticmq(port, folder, storage=""):
    configuration = folder / "elasticmq.conf"
    configuration.write_text(
        f'include classpath("application.conf")\nnode-address {{ port = {port} }}\n'
        f'rest-sqs {{ enabled = true, bind-port = {port}, bind-hostname = "127.0.0.1" }}\n'
        f"rest-stats {{ enabled = false }}\n{storage}"
    )
    java = ["java", f"-Dconfig.file={configuration}", "-cp", f"{installed_jars()}/*"]
    return Contestant(port, "none: in memory", [*java, "org.elasticmq.server.Main"])


def _elasticmq_kept(port, folder):
    found = _elasticmq(
        port, folder, f'messages-storage {{ enabled = true, uri = "jdbc:h2:{folder / "elasticmq"}" }}\n'
    )
    return replace(found, durability="H2's file, whose commits are not synced one by one")


def _moto(port, _):
    return Contestant(
        port, "none: in memory", [str(installed(MOTO) / "moto_server"), "-H", "127.0.0.1", "-p", str(port)]
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
    command = [str(installed(*LOCALSTACK) / "python"), "-m", "localstack.runtime.main"]
    return Contestant(port, "none: in memory", command, environment)


# Each is given its port and a folder for its files.
CONTESTANTS = {
    "sqsqlite": _ours,
    "sqsqlite, NORMAL": partial(_ours, synchronous="NORMAL"),
    SIGNED: _signed,
    BARE: _bare,
    "ElasticMQ": _elasticmq,
    "ElasticMQ, persistence": _elasticmq_kept,
    "moto": _moto,
    "LocalStack": _localstack,
}


def missing(name):
    """What must be installed by hand for it, or nothing."""
    needs = ("java", "mvn") if name.startswith("ElasticMQ") else ()
    return [need for need in needs if shutil.which(need) is None]


def installed_jars():
    """ElasticMQ with all it needs, fetched by its coordinates once."""
    jars = CACHE / ELASTICMQ.replace(":", "-")
    if not (jars / "ready").exists():
        jars.mkdir(parents=True, exist_ok=True)
        group, artifact, version = ELASTICMQ.split(":")
        (jars / "pom.xml").write_text(
            "<project><modelVersion>4.0.0</modelVersion><groupId>b</groupId><artifactId>b</artifactId>"
            f"<version>1</version><dependencies><dependency><groupId>{group}</groupId><artifactId>{artifact}"
            f"</artifactId><version>{version}</version></dependency></dependencies></project>"
        )
        copy = ["dependency:copy-dependencies", "-DoutputDirectory=.", "-DincludeScope=runtime"]
        subprocess.run(["mvn", "-B", "-q", *copy], cwd=jars, check=True)
        (jars / "ready").touch()
    return jars


def installed(*requirements):
    """The programs of an environment of its own."""
    folder = CACHE / re.sub(r"\W+", "-", requirements[0])
    if not (folder / "ready").exists():
        uv = Path(sys.executable).with_name("uv")
        subprocess.run([uv, "venv", "--quiet", "--clear", folder], check=True)
        subprocess.run([uv, "pip", "install", "--quiet", "--python", folder, *requirements], check=True)
        (folder / "ready").touch()
    return folder / "bin"
