# SPDX-License-Identifier: Apache-2.0
"""Use an installed sqsqlite as its first user would: `python -I installed_wheel.py` in an empty folder.

Run by `make wheel` with the Python of an environment that holds the wheel and what it asks for with the extra `serve`,
nothing else.
Exits 0 and says so, or ends in the AssertionError that tells what is wrong.
"""

import subprocess
import sys
import urllib.request
from pathlib import Path

import sqsqlite

HEAVY = {"alembic", "boto3", "botocore", "click", "jmespath", "pyspark", "rich", "sqlalchemy", "uvicorn"}
# SQLAlchemy and Alembic take longer to load than a send takes. Only the command itself may need Click.
COMMAND_MAY_LOAD = {"click"}


def run(*command: str) -> str:
    """The command's stdout. It must end with 0 within a minute, without a warning."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, f"{' '.join(command)}: exit {done.returncode}\n{done.stdout}{done.stderr}"
    assert "Warning" not in done.stderr, done.stderr
    return done.stdout


def loaded_by(program: str) -> set[str]:
    """The heavy modules that are loaded after a separate Python has run the program."""
    last = run(
        sys.executable, "-I", "-c", f"{program}\nimport sys; print('loaded', *sys.modules)"
    ).splitlines()[-1]
    return HEAVY & set(last.split())


def comes_from_the_wheel() -> None:
    """The whole package lies inside this environment, with its types, and not in a checkout."""
    package = Path(sqsqlite.__file__).parent
    assert package.is_relative_to(sys.prefix), package
    assert (package / "py.typed").exists()
    assert (package / "cli" / "__init__.py").exists()
    assert list((package / "migrations" / "versions").glob("[!_]*.py")) != []


def python_sends_and_receives(path: str) -> None:
    with sqsqlite.connect(path) as sqs:
        queue = sqs.create_queue("orders")
        queue.send("hi")
        [message] = queue.receive()
        assert message.body == "hi"
        message.delete()
        assert queue.receive(visibility_timeout=0) == []


def command_sends_and_receives(path: str) -> None:
    command = (str(Path(sys.executable).with_name("sqsqlite")), "--db", path)
    run(*command, "create-queue", "--queue-name", "q")
    run(*command, "send", "q", "hello")
    assert "hello" in run(*command, "receive", "q")


def command_serves(path: str) -> None:
    command = (str(Path(sys.executable).with_name("sqsqlite")), "--db", path)
    with subprocess.Popen((*command, "serve", "--port", "0"), stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            url = server.stderr.readline().split()[-1]
            with urllib.request.urlopen(f"{url}/?Action=ListQueues", timeout=600) as answer:
                assert b"/orders</QueueUrl>" in answer.read()
        finally:
            server.terminate()


def command_migrates(path: str) -> None:
    command = (str(Path(sys.executable).with_name("sqsqlite")), "--db", path)
    assert run(*command, "db", "current").strip() != ""
    run(*command, "db", "check")
    run(*command, "db", "upgrade")
    run(*command, "db", "check")


def stays_light(path: str) -> None:
    assert loaded_by("import sqsqlite") == set()
    assert loaded_by(f"import sqsqlite; sqsqlite.connect({path!r}).queue('orders').send('light')") == set()
    sends = f"import sys; sys.argv = ['sqsqlite', '--db', {path!r}, 'send', 'q', 'light']\n"
    sends += (
        "from sqsqlite.cli import main\ntry: main()\nexcept SystemExit as end: assert not end.code, end.code"
    )
    assert loaded_by(sends) - COMMAND_MAY_LOAD == set()


def main() -> None:
    path = "installed.db"
    comes_from_the_wheel()
    python_sends_and_receives(path)
    command_sends_and_receives(path)
    command_serves(path)
    command_migrates(path)
    stays_light(path)
    print(f"sqsqlite {sqsqlite.__file__}: sends, receives, serves and migrates from its wheel")


if __name__ == "__main__":
    main()
