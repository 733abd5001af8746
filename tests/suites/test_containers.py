# SPDX-License-Identifier: Apache-2.0
"""The samples of docs/examples/containers.

No image is built: its steps run in an environment of their own, and its commands as processes.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.clients.tools import programs, run
from tests.packaging.checkout import ROOT
from tests.testing.serving import Server

pytestmark = pytest.mark.slow

SAMPLES = ROOT / "docs" / "examples" / "containers"
CONTAINERFILE = (SAMPLES / "Containerfile").read_text(encoding="utf-8").replace("\\\n", "")
COMPOSE, ACTIONS = SAMPLES / "compose.yaml", SAMPLES / "github-actions.yml"
STYLE = "{extends: default, rules: {line-length: {max: 120}, document-start: disable, truthy: {check-keys: false}}}"


def lines(word):
    """What stands behind this word of the Containerfile, for each of its lines."""
    return re.findall(rf"^\s*{word} (.+)$", CONTAINERFILE, re.MULTILINE)


def of_yaml(path):
    read = "import json, sys, yaml; print(json.dumps(yaml.safe_load(open(sys.argv[1])), default=str))"
    return json.loads(run(programs("samples") / "python", "-c", read, path))


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """The programs of an environment that is made as the Containerfile says."""
    folder = tmp_path_factory.mktemp("image")
    source = folder / "src"
    for copied in lines("COPY"):
        *names, target = copied.split()
        for name in names:
            path, place = ROOT / name, source / target
            if path.is_dir():
                shutil.copytree(path, place, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                place.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, place)
    run(sys.executable, "-m", "venv", folder / "venv")
    [steps] = lines("RUN")
    installations = [step.split() for step in steps.split("&&") if step.split()[0] == "pip"]
    assert len(installations) == 2
    for step in installations:
        run(folder / "venv" / "bin" / "pip", *step[1:], cwd=source)
    yield folder / "venv" / "bin"
    shutil.rmtree(folder)


def test_linters_accept_the_samples():
    bin_ = programs("samples")
    run(bin_ / "hadolint", "--failure-threshold", "style", SAMPLES / "Containerfile")
    run(bin_ / "yamllint", "--strict", "-d", STYLE, COMPOSE, ACTIONS)
    for schema, path in (("compose-spec", COMPOSE), ("github-workflows", ACTIONS)):
        run(bin_ / "check-jsonschema", "--builtin-schema", f"vendor.{schema}", path)


def test_the_container_of_the_compose_file_serves_its_queues_and_is_healthy(image, tmp_path):
    service = of_yaml(COMPOSE)["services"]["sqs"]
    assert (COMPOSE.parent / service["build"]["context"]).resolve() == ROOT
    assert (ROOT / service["build"]["dockerfile"]).resolve() == SAMPLES / "Containerfile"
    [volume] = service["volumes"]
    source, target, mode = volume.split(":")
    assert mode == "ro"
    command = [str(COMPOSE.parent / source) if word == target else word for word in service["command"]]
    [entry] = (json.loads(words) for words in lines("ENTRYPOINT"))
    told = tmp_path / "told"
    with told.open("wb") as log:
        server = subprocess.Popen(
            [image / entry[0], *entry[1:], *command, "--port", "0"],
            stderr=log,
            cwd=tmp_path,
            env={"PATH": str(image), "TMPDIR": str(tmp_path)},
        )
    try:
        found = port_in(told, server)
        asked = Server(f"http://127.0.0.1:{found}").client().list_queues()["QueueUrls"]
        assert [url.rpartition("/")[2] for url in asked] == ["orders", "orders-dead", "payments.fifo"]
        [health] = (json.loads(words) for words in re.findall(r"HEALTHCHECK .*?CMD (\[.*\])", CONTAINERFILE))
        checked = [word.replace("9324", found) for word in health[1:]]
        run(image / health[0], *checked)
    finally:
        server.terminate()
        assert server.wait(300) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["told"]
    refused = subprocess.run([image / health[0], *checked], capture_output=True, check=False)
    assert refused.returncode != 0


def port_in(told, server):
    deadline = time.monotonic() + 300
    while not (found := re.search(r"TEST MODE on http://0\.0\.0\.0:(\d+):", told.read_text("utf-8"))):
        assert server.poll() is None, told.read_text("utf-8")
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found[1]


def test_the_step_of_github_actions_that_starts_the_server_does_so(tmp_path):
    """By the shell that GitHub runs it with, on a port that is free."""
    steps = of_yaml(ACTIONS)["jobs"]["test"]["steps"]
    [script] = (step["run"] for step in steps if step.get("name") == "Start SQS")
    free = script.replace("--test-mode", "--test-mode --port 0")
    assert free != script
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", f"{free}\nkill $!\nwait $!\ncat sqs.log"],
        cwd=tmp_path,
        env={
            "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
            "TMPDIR": str(tmp_path),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "TEST MODE on http://127.0.0.1:" in done.stdout
