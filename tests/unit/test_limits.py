# SPDX-License-Identifier: Apache-2.0
"""The quotas of SQS, and those that the native limits lift."""

import pytest

from sqsqlite.contract.limits import NATIVE, SQS, Range


@pytest.mark.parametrize(("number", "inside"), [(-1, False), (0, True), (900, True), (901, False)])
def test_both_ends_of_a_range_are_inside(number, inside):
    assert (number in Range(0, 900)) is inside


def test_limits_can_not_be_changed():
    with pytest.raises(AttributeError, match="attribute"):
        SQS.batch_entry_count = 11


def test_numbers_are_those_of_the_quotas_page():
    assert SQS.delay_seconds == Range(0, 900)
    assert SQS.visibility_timeout_seconds == Range(0, 43_200)
    assert SQS.message_retention_period_seconds == Range(60, 1_209_600)
    assert SQS.maximum_message_size_bytes == Range(1_024, 1_048_576)
    assert (SQS.batch_entry_count, SQS.batch_bytes) == (10, 1_048_576)
    assert (SQS.standard_in_flight_count, SQS.fifo_in_flight_count) == (120_000, 20_000)


def test_native_limits_lift_only_amazons_limits():
    lifted = {name for name in SQS._fields if getattr(SQS, name) != getattr(NATIVE, name)}
    assert lifted == {
        "policy_resource_count",
        "policy_value_count",
        "delay_seconds",
        "maximum_message_size_bytes",
        "receive_message_wait_time_seconds",
        "max_number_of_messages",
        "batch_entry_count",
        "batch_bytes",
        "deleted_name_seconds",
        "purge_interval_seconds",
    }


def test_the_largest_native_message_fits_in_a_row_even_as_base64():
    assert NATIVE.maximum_message_size_bytes.high * 4 // 3 < 1_000_000_000
