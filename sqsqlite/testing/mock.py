# SPDX-License-Identifier: Apache-2.0
"""`mock_sqs`: while it lasts, every boto3 and aiobotocore client of SQS in the process is answered from a file.

It takes the place of moto's `mock_aws` for SQS: a decorator, a context manager, or `start()` and `stop()`.
"""

import functools
import inspect
import os
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, TypedDict, TypeVar, Unpack, cast, overload

from sqsqlite.contract.names import DEFAULT_REGION
from sqsqlite.store.clock import Clock
from sqsqlite.testing.classes import decorated_class
from sqsqlite.testing.regions import Regions

# A client is not made without them. None of them is used: nothing is signed, nothing is sent.
_ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_SESSION_TOKEN": "testing",
}

T = TypeVar("T")


class MockOptions(TypedDict, total=False):
    """Options of `mock_sqs`; see there."""

    clock: Clock
    compat: str
    limits: str
    cooldowns: bool
    account_id: str


class _State:
    """The mock that is in force in this process, and how often it was started."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.regions: Regions | None = None
        self.depth = 0
        self.options: MockOptions = {}
        self.before: dict[str, str | None] = {}


_state = _State()


class MockSQS:
    """A mock of SQS for this process. Make one with `mock_sqs`.

    A mock within a mock joins it: queues and clock are the outer one's, and its end removes them.
    """

    def __init__(self, **options: Unpack[MockOptions]) -> None:
        self._options = options
        self._started = 0

    @property
    def clock(self) -> Any:
        """The clock of the mock in force: `clock.advance(seconds)` moves it.

        Raises:
            RuntimeError: the mock was not started.
        """
        return self._regions.clock

    @property
    def _regions(self) -> Regions:
        if _state.regions is None or not self._started:
            raise RuntimeError("mock_sqs was not started: use it as a decorator, in `with`, or call start()")
        return _state.regions

    def start(self) -> Self:
        """Put the mock in force.

        Raises:
            ValueError: an option has a value that is not allowed, or differs from that of the mock in force.
            ModuleNotFoundError: boto3 is not installed.
        """
        from sqsqlite.testing.clients import answer_from

        with _state.lock:
            if _state.regions is None:
                regions = Regions(**self._options)
                answer_from(regions)
                _state.regions = regions
                _state.options = self._options
                _state.before = _set_environment()
            elif any(_state.options.get(name) != value for name, value in self._options.items()):
                raise ValueError(
                    f"mock_sqs({_as_arguments(self._options)}) within mock_sqs({_as_arguments(_state.options)}): "
                    "the inner one joins the outer one, so its options may only repeat the outer one's"
                )
            _state.depth += 1
            self._started += 1
        return self

    def stop(self) -> None:
        """End the mock; the outermost one's end removes its queues. Clients made in it stay off this file.

        Raises:
            RuntimeError: the mock was not started.
        """
        from sqsqlite.testing.clients import release

        with _state.lock:
            regions = self._regions
            self._started -= 1
            _state.depth -= 1
            if _state.depth:
                return
            _restore_environment(_state.before)
            release()
            _state.regions = None
        regions.remove()

    def reset(self) -> None:
        """Remove all queues of all regions. The clock stays where it is."""
        self._regions.clear()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.stop()

    def __call__(self, target: T) -> T:
        """Decorate a function (plain, async or generator) or a class of tests: each call has queues of its own.

        Raises:
            TypeError: the target is neither.
        """
        if isinstance(target, type):
            return decorated_class(target, self._fresh)
        if not callable(target):
            raise TypeError(f"mock_sqs can't decorate {target!r}: a function or a class is allowed")
        return cast("T", _decorated(target, self._fresh))

    def _fresh(self) -> "MockSQS":
        """Another mock like this, so that a decorated function may run in several threads at once."""
        return MockSQS(**self._options)


@overload
def mock_sqs(target: T, /) -> T: ...
@overload
def mock_sqs(**options: Unpack[MockOptions]) -> MockSQS: ...
def mock_sqs(target: Any = None, /, **options: Unpack[MockOptions]) -> Any:
    """Answer every client of SQS in this process from a file that goes away: boto3, resources, aiobotocore.

    Clients made before it are answered too. Dummy credentials and, where none is set, the region us-east-1 stand in
    the environment meanwhile. Queues belong to account 123456789012, and each region has its own.

    Use it as `@mock_sqs`, `@mock_sqs()`, `with mock_sqs() as mock:`, or by `mock.start()` and `mock.stop()`.

    Args:
        target: the function or class to decorate.
        clock: Default: a `MovableClock()`. With `MovableClock(waits=False)` long polls of an empty queue end at once.
        compat: "aws" (the default): expired receipt handles as softly as Amazon treats them; "docs": an error.
        limits: "sqs" (the default): Amazon's; "native": without those that exist for Amazon's sake.
        cooldowns: True: 60 s must pass after DeleteQueue and PurgeQueue, as at Amazon. Default: False.
        account_id: 12 digits.

    Raises:
        TypeError: an option does not exist.
    """
    for name in options:
        if name not in MockOptions.__annotations__:
            raise TypeError(
                f"mock_sqs() got an unexpected keyword argument {name!r}: "
                f"{', '.join(MockOptions.__annotations__)} exist"
            )
    mock = MockSQS(**options)
    return mock if target is None else mock(target)


def _decorated(function: Any, fresh: Callable[[], MockSQS]) -> Any:
    """The function within a mock, of the same kind as it was: pytest and asyncio look at that."""
    wraps = functools.wraps(function)
    if inspect.iscoroutinefunction(function):

        async def awaited(*args: Any, **kwargs: Any) -> Any:
            with fresh():
                return await function(*args, **kwargs)

        return wraps(awaited)
    if inspect.isasyncgenfunction(function):

        async def iterated(*args: Any, **kwargs: Any) -> Any:
            with fresh():
                async for item in function(*args, **kwargs):
                    yield item

        return wraps(iterated)
    if inspect.isgeneratorfunction(function):

        def yielded(*args: Any, **kwargs: Any) -> Any:
            with fresh():
                yield from function(*args, **kwargs)

        return wraps(yielded)

    def called(*args: Any, **kwargs: Any) -> Any:
        with fresh():
            return function(*args, **kwargs)

    return wraps(called)


def _set_environment() -> dict[str, str | None]:
    """Put dummy credentials into the environment. Returns what stood there."""
    wanted = dict(_ENVIRONMENT)
    if "AWS_DEFAULT_REGION" not in os.environ:
        wanted["AWS_DEFAULT_REGION"] = DEFAULT_REGION
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    return before


def _restore_environment(before: dict[str, str | None]) -> None:
    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _as_arguments(options: MockOptions) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in options.items())
