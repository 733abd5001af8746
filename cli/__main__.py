# SPDX-License-Identifier: Apache-2.0
"""`python -m sqsqlite.cli` runs the command where its script is not on the path."""

from sqsqlite.cli import main

main(prog_name="sqsqlite")
