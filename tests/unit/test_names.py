# SPDX-License-Identifier: Apache-2.0
"""Names, URLs and ARNs of queues."""

import pytest

from sqsqlite.contract.names import check_queue_name, is_queue_arn, queue_arn, queue_name, queue_url
from sqsqlite.errors import InvalidAttributeName, InvalidParameterValue, QueueDoesNotExist

ACCOUNT = "123456789012"


@pytest.mark.rule("queue.16")
@pytest.mark.parametrize("name", ["orders", "Orders_2-b", "orders.fifo", "a" * 80, "a" * 75 + ".fifo"])
def test_a_bare_name_leaves_the_account_open(name):
    assert queue_name(name) == (None, name)


@pytest.mark.rule("queue.17", "queue.18")
@pytest.mark.parametrize(
    "text",
    [
        f"https://sqs.eu-west-1.amazonaws.com/{ACCOUNT}/orders.fifo",
        f"https://eu-west-1.queue.amazonaws.com/{ACCOUNT}/orders.fifo",
        f"https://queue.amazonaws.com/{ACCOUNT}/orders.fifo",
        f"http://localhost:9324/{ACCOUNT}/orders.fifo",
        f"http://localhost:9324/{ACCOUNT}/orders.fifo/",
        f"http://[::1]:9324/{ACCOUNT}/orders.fifo",
        f"http://localhost:4566/queue/eu-west-1/{ACCOUNT}/orders.fifo",
        f"http://sqs.eu-west-1.local.example:4566/{ACCOUNT}/orders.fifo",
        f"arn:aws:sqs:eu-west-1:{ACCOUNT}:orders.fifo",
        f"arn:aws-cn:sqs:cn-north-1:{ACCOUNT}:orders.fifo",
    ],
)
def test_account_and_name_are_found_in_a_url_of_any_host(text):
    assert queue_name(text) == (ACCOUNT, "orders.fifo")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a" * 81,
        "a" * 76 + ".fifo",
        "orders.FIFO",
        "two words",
        "orders\n",
        "o\N{COMBINING DIAERESIS}rders",
        "٣",
        "a/b",
        "http://localhost:9324/orders",
        "http://localhost:9324/12345/orders",
        f"http://localhost:9324/{ACCOUNT}/",
        f"http://localhost:9324/{ACCOUNT}/orders?x=1",
        f"ftp://localhost/{ACCOUNT}/orders",
        f"arn:aws:sns:eu-west-1:{ACCOUNT}:orders",
        f"arn:aws:sqs:eu-west-1:{ACCOUNT}:two words",
    ],
)
def test_a_malformed_text_names_no_queue(text):
    with pytest.raises(QueueDoesNotExist, match=r"^The specified queue does not exist\.$"):
        queue_name(text)


@pytest.mark.rule("attribute.28")
def test_url_and_arn_lead_back_to_the_queue():
    url = queue_url("http://localhost:9324/", ACCOUNT, "orders")
    assert url == f"http://localhost:9324/{ACCOUNT}/orders"
    arn = queue_arn("us-east-1", ACCOUNT, "orders")
    assert arn == f"arn:aws:sqs:us-east-1:{ACCOUNT}:orders"
    assert queue_name(url) == queue_name(arn) == (ACCOUNT, "orders")
    assert is_queue_arn(arn)
    assert not is_queue_arn(url)


@pytest.mark.rule("queue.2", "queue.3")
@pytest.mark.parametrize("name", ["", "a" * 81, "two words", "a/b", "orders.fifo", "a.b", "ö"])
def test_standard_names_have_their_own_refusal(name):
    with pytest.raises(InvalidParameterValue) as refused:
        check_queue_name(name, fifo=False)
    assert refused.value.message == (
        "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length"
    )


@pytest.mark.rule("queue.4")
@pytest.mark.parametrize("name", ["", ".fifo", "orders", "a" * 76 + ".fifo", "two words.fifo", "orders.FIFO"])
def test_fifo_names_have_their_own_refusal(name):
    with pytest.raises(InvalidParameterValue) as refused:
        check_queue_name(name, fifo=True, attributes_has_fifo=True)
    assert refused.value.message == (
        "The name of a FIFO queue can only include alphanumeric characters, hyphens, or underscores, "
        "must end with .fifo suffix and be 1 to 80 in length."
    )


def test_fifo_queue_false_is_unknown_on_a_standard_queue():
    with pytest.raises(InvalidAttributeName, match=r"^Unknown Attribute FifoQueue\.$"):
        check_queue_name("orders", fifo=False, attributes_has_fifo=True)


def test_good_names_pass():
    check_queue_name("a" * 80, fifo=False)
    check_queue_name("a" * 75 + ".fifo", fifo=True, attributes_has_fifo=True)
