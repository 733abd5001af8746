# SPDX-License-Identifier: Apache-2.0
"""Looks for a history in which model and engine differ: `python -m tests.model.seek docs|aws`, for mutants.

Writes one line of JSON: how many histories were walked, and how the last one ended; null if all agreed.
"""

import json
import sys
from collections import Counter

from tests.model.compare import Difference
from tests.model.histories import failure_of, find_failure

HISTORIES, STEPS = 400, 60


def main(compat):
    happened = Counter()
    failed = find_failure(HISTORIES, STEPS, happened, compat=compat)
    ended = None
    if failed is not None:
        error = failure_of(failed, Counter(), compat=compat)
        ended = "difference" if isinstance(error, Difference) else repr(error)
    print(json.dumps([happened["histories"], ended]))


if __name__ == "__main__":
    main(sys.argv[1])
