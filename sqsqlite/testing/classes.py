# SPDX-License-Identifier: Apache-2.0
"""A class of tests, each of which runs within a mock of its own, what sets it up included."""

import inspect
import unittest
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Any, TypeVar

T = TypeVar("T", bound=type)

_STACK = "_sqsqlite_mock"


def decorated_class(target: T, fresh: Callable[[], AbstractContextManager[Any]]) -> T:
    """Change a class of tests, and return it.

    Args:
        target: a subclass of unittest.TestCase, or a plain class for pytest.
        fresh: makes the mock of one test.
    """
    if issubclass(target, unittest.TestCase):
        _wrap_run(target, fresh)
    else:
        _wrap_setup(target, fresh)
    return target


def _wrap_run(target: Any, fresh: Callable[[], AbstractContextManager[Any]]) -> None:
    """`run` is one test with its setUp and its clean-up."""
    run = target.run

    def run_mocked(self: unittest.TestCase, result: unittest.TestResult | None = None) -> Any:
        with fresh():
            return run(self, result)

    target.run = run_mocked


def _wrap_setup(target: Any, fresh: Callable[[], AbstractContextManager[Any]]) -> None:
    """Called by pytest: `setup_method` before each test, and `teardown_method` after it unless the former raised."""
    set_up, tear_down = getattr(target, "setup_method", None), getattr(target, "teardown_method", None)

    def setup_method(self: Any, method: Any) -> None:
        with ExitStack() as stack:
            stack.enter_context(fresh())
            _call(set_up, self, method)
            setattr(self, _STACK, stack.pop_all())

    def teardown_method(self: Any, method: Any) -> None:
        with getattr(self, _STACK):
            _call(tear_down, self, method)

    target.setup_method, target.teardown_method = setup_method, teardown_method


def _call(function: Any, self: Any, method: Any) -> None:
    """Call what the class had, with as many arguments as it takes: pytest allows both forms."""
    if function is None:
        return
    takes_method = len(inspect.signature(function.__get__(self)).parameters) > 0
    function.__get__(self)(*([method] if takes_method else []))
