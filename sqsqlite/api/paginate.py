# SPDX-License-Identifier: Apache-2.0
"""Paginators as boto3 has them."""

from collections.abc import Callable, Iterator
from typing import Any


class Paginator:
    """Goes through all pages of a listing method."""

    def __init__(self, method: Callable[..., dict[str, Any]], result_key: str) -> None:
        self._method = method
        self._result_key = result_key

    def paginate(self, *, PaginationConfig: dict[str, Any] | None = None, **parameters: Any) -> "Pages":  # noqa: N803
        """The pages of one listing.

        Args:
            PaginationConfig: PageSize (results a page), MaxItems (results in all), StartingToken.
            parameters: the method's own.
        """
        return Pages(self._method, self._result_key, PaginationConfig or {}, parameters)


class Pages:
    """Iterating asks for one page after the other."""

    def __init__(
        self,
        method: Callable[..., dict[str, Any]],
        result_key: str,
        configuration: dict[str, Any],
        parameters: dict[str, Any],
    ) -> None:
        self._method = method
        self._result_key = result_key
        self._max_items = configuration.get("MaxItems")
        self._parameters = dict(parameters)
        # Without MaxResults SQS returns no NextToken, and there would be one page.
        self._parameters.setdefault("MaxResults", int(configuration.get("PageSize") or 1000))
        if configuration.get("StartingToken"):
            self._parameters["NextToken"] = configuration["StartingToken"]
        self.resume_token: str | None = None

    def __iter__(self) -> Iterator[dict[str, Any]]:
        left = None if self._max_items is None else int(self._max_items)
        parameters = dict(self._parameters)
        while True:
            if left is not None:
                parameters["MaxResults"] = min(parameters["MaxResults"], left)
            page = self._method(**parameters)
            yield page
            token = page.get("NextToken")
            if left is not None:
                left -= len(page.get(self._result_key, ()))
                if left <= 0:
                    self.resume_token = token
                    return
            if token is None:
                return
            parameters["NextToken"] = token

    def build_full_result(self) -> dict[str, Any]:
        """All pages as one."""
        results: list[Any] = []
        for page in self:
            results += page.get(self._result_key, ())
        full: dict[str, Any] = {self._result_key: results}
        if self.resume_token is not None:
            full["NextToken"] = self.resume_token
        return full

    def search(self, expression: str) -> Iterator[Any]:
        """Each page's results of a JMESPath expression."""
        import jmespath

        compiled = jmespath.compile(expression)
        for page in self:
            found = compiled.search(page)
            yield from found if isinstance(found, list) else [found]
