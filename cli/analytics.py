# SPDX-License-Identifier: Apache-2.0
"""`sqsqlite analytics` fetches Spark's JDBC driver and prints the types that JDBC readers need."""

import click

from sqsqlite.cli.command_line import CommandLine


@click.group("analytics")
def analytics() -> None:
    r"""Fetch the JDBC driver, or print the types of the reporting views.

    \b
      sqsqlite analytics fetch-driver
      sqsqlite analytics schema
    """


@analytics.command("fetch-driver")
@click.pass_obj
def fetch_driver(line: CommandLine) -> None:
    r"""Fetch SQLite's JDBC driver, once.

    \b
      sqsqlite analytics fetch-driver

    `report` fetches the driver itself when it needs one. Use this command on a machine that will have no network
    later. The version and its SHA-256 are fixed. Prints the path of the driver.
    """
    from sqsqlite.spark import DRIVER_VERSION, driver_jar

    line.print_rows([{"driver": str(driver_jar()), "version": DRIVER_VERSION}])


@analytics.command("schema")
@click.argument("view", metavar="[VIEW]", required=False)
@click.pass_obj
def schema(line: CommandLine, view: str | None) -> None:
    r"""Print the customSchema of each reporting view.

    \b
      sqsqlite analytics schema
      sqsqlite analytics schema sqs_report_messages --output text

    Without the option customSchema, Spark's JDBC reader cuts SQLite's integers to 32 bits and reads computed numbers as
    decimals. Other readers that need types can use the same list.
    """
    from sqsqlite.spark import VIEWS, custom_schema

    if view is not None and view not in VIEWS:
        raise click.UsageError(f"there is no reporting view {view}: the views are {', '.join(VIEWS)}")
    names = VIEWS if view is None else (view,)
    line.print_rows({"view": name, "custom_schema": custom_schema(VIEWS[name])} for name in names)
