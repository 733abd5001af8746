# SPDX-License-Identifier: Apache-2.0
"""Each module names its licence, which is the package's."""

from tests.packaging.checkout import ROOT, modules, pyproject

HEADER = "# SPDX-License-Identifier: Apache-2.0"


def test_each_module_names_its_licence():
    texts = {path: path.read_text(encoding="utf-8") for path in modules().values()}
    assert len(texts) > 100
    assert [
        path for path, text in texts.items() if text.strip() and HEADER not in text.splitlines()[:2]
    ] == []


def test_the_licence_is_that_of_the_package():
    assert pyproject()["project"]["license"] == "Apache-2.0"
    assert (ROOT / "LICENSE").read_text(encoding="utf-8").lstrip().startswith("Apache License")
