# SPDX-License-Identifier: Apache-2.0
"""Node.js, and the modules that the example's lock pins."""

import shutil

from tests.clients.tools import kept, need, run
from tests.packaging.checkout import ROOT

EXAMPLE = ROOT / "docs" / "clients" / "javascript"
_INSTALL = "apt-get install nodejs npm, version 20 or newer"


def node_and_modules():
    """The program node, and a folder with the modules of docs/clients/javascript. Programs run in that folder."""
    npm, program = need("npm", _INSTALL), need("node", _INSTALL)
    pins = [EXAMPLE / "package.json", EXAMPLE / "package-lock.json"]

    def make(folder):
        for pin in pins:
            shutil.copy(pin, folder)
        run(npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", cwd=folder)

    return program, kept("javascript", *pins, make=make)
