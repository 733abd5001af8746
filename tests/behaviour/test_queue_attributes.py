# SPDX-License-Identifier: Apache-2.0
"""Attributes of queues: names, ranges, defaults, changes; and tags."""

import json
import re

import pytest

from tests.behaviour.bound_queue import without_metadata
from tests.behaviour.refusals import INVALID, MISSING, refused

RANGES = {
    "DelaySeconds": (0, 900),
    "MaximumMessageSize": (1024, 1_048_576),
    "MessageRetentionPeriod": (60, 1_209_600),
    "ReceiveMessageWaitTimeSeconds": (0, 20),
    "VisibilityTimeout": (0, 43_200),
    "KmsDataKeyReusePeriodSeconds": (60, 86_400),
}
READ_ONLY = (
    "QueueArn",
    "CreatedTimestamp",
    "LastModifiedTimestamp",
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)
FIFO_ONLY = ("FifoQueue", "ContentBasedDeduplication", "DeduplicationScope", "FifoThroughputLimit")
BOTH_ENCRYPTIONS = (
    "You can use one type of server-side encryption (SSE) at one time. "
    "You can either enable KMS SSE or SQS SSE."
)


def unknown(name):
    return f"Unknown Attribute {name}."


@pytest.mark.rule(
    "attribute.1",
    "attribute.2",
    "attribute.3",
    "attribute.4",
    "attribute.5",
    "attribute.6",
    "attribute.7",
    "attribute.27",
    "attribute.34",
)
def test_a_new_queue_has_exactly_these_attributes(queue, clock):
    created = str(clock.now_ms() // 1000)
    assert queue.attributes("All") == {
        "ApproximateNumberOfMessages": "0",
        "ApproximateNumberOfMessagesDelayed": "0",
        "ApproximateNumberOfMessagesNotVisible": "0",
        "CreatedTimestamp": created,
        "DelaySeconds": "0",
        "LastModifiedTimestamp": created,
        "MaximumMessageSize": "1048576",
        "MessageRetentionPeriod": "345600",
        "QueueArn": "arn:aws:sqs:us-east-1:000000000000:q",
        "ReceiveMessageWaitTimeSeconds": "0",
        "SqsManagedSseEnabled": "true",
        "VisibilityTimeout": "30",
    }


@pytest.mark.rule("attribute.8", "attribute.28")
def test_attributes_are_returned_by_name(queue):
    assert queue.attributes("VisibilityTimeout", "QueueArn") == {
        "QueueArn": "arn:aws:sqs:us-east-1:000000000000:q",
        "VisibilityTimeout": "30",
    }


@pytest.mark.rule("attribute.9")
def test_without_names_no_attributes_are_returned(queue):
    assert without_metadata(queue.client.get_queue_attributes(QueueUrl=queue.url)) == {}
    assert "Attributes" not in queue.client.get_queue_attributes(QueueUrl=queue.url, AttributeNames=[])


@pytest.mark.rule("attribute.10", "attribute.34")
@pytest.mark.parametrize(
    "name",
    ["Policy", "RedrivePolicy", "RedriveAllowPolicy", "KmsMasterKeyId", "KmsDataKeyReusePeriodSeconds"],
)
def test_a_name_that_is_known_but_not_set_is_left_out(queue, name):
    assert queue.attributes(name, "DelaySeconds") == {"DelaySeconds": "0"}


@pytest.mark.rule("attribute.11", "attribute.12")
@pytest.mark.parametrize("name", ["Nothing", "visibilitytimeout", "all", "", *FIFO_ONLY])
def test_an_unknown_name_is_refused(queue, name):
    """On a standard queue, the attributes of FIFO queues are unknown."""
    with refused(queue.client, "InvalidAttributeName", unknown(name)):
        queue.attributes("DelaySeconds", name)


@pytest.mark.rule("attribute.13", "attribute.14", "attribute.15", "attribute.16", "attribute.17")
@pytest.mark.parametrize("name", [name for name in RANGES if not name.startswith("Kms")])
def test_both_ends_of_a_range_are_allowed(make_queue, name):
    """In CreateQueue and in SetQueueAttributes."""
    low, high = RANGES[name]
    queue = make_queue(**{name: low})
    assert queue.attributes(name) == {name: str(low)}
    queue.set(**{name: high})
    assert queue.attributes(name) == {name: str(high)}


@pytest.mark.rule(
    "attribute.13",
    "attribute.14",
    "attribute.15",
    "attribute.16",
    "attribute.17",
    "attribute.18",
    "attribute.19",
)
@pytest.mark.parametrize("name", RANGES)
def test_a_value_outside_its_range_is_refused(queue, make_queue, name):
    """Neither clipped nor rounded. A value that is not a whole number is refused alike."""
    low, high = RANGES[name]
    before = queue.attributes("All")
    for value in (low - 1, high + 1, "", "ten", f"{low}.0", f" {low}", "1e3", "٣"):
        with refused(
            queue.client, "InvalidAttributeValue", re.compile(f"^Invalid value for the parameter {name}.")
        ):
            queue.set(**{name: value})
        with refused(
            queue.client, "InvalidAttributeValue", re.compile(f"^Invalid value for the parameter {name}.")
        ):
            make_queue("other", **{name: value})
    assert queue.attributes("All") == before
    assert queue.client.list_queues()["QueueUrls"] == [queue.url]


@pytest.mark.rule("attribute.20")
@pytest.mark.parametrize("name", READ_ONLY)
def test_counted_attributes_cannot_be_set(queue, make_queue, name):
    with refused(queue.client, "InvalidAttributeName", unknown(name)):
        queue.set(**{name: "1"})
    with refused(queue.client, "InvalidAttributeName", unknown(name)):
        make_queue("other", **{name: "1"})


@pytest.mark.rule("attribute.21", "attribute.22")
@pytest.mark.parametrize("name", ["Nothing", "All", "FifoQueue", "ContentBasedDeduplication"])
def test_an_unknown_attribute_cannot_be_set(queue, make_queue, name):
    """On a standard queue FifoQueue is unknown, even with "false"."""
    with refused(queue.client, "InvalidAttributeName", unknown(name)):
        queue.set(**{name: "false"})
    with refused(queue.client, "InvalidAttributeName", unknown(name)):
        make_queue("other", **{name: "false"})


@pytest.mark.rule("attribute.23")
@pytest.mark.parametrize(
    ("name", "value"), [("DeduplicationScope", "queue"), ("FifoThroughputLimit", "perQueue")]
)
def test_attributes_of_high_throughput_fifo_need_a_fifo_queue(queue, make_queue, name, value):
    reason = f"You can specify the {name} only when FifoQueue is set to true."
    with refused(queue.client, "InvalidAttributeName", reason):
        queue.set(**{name: value})
    with refused(queue.client, "InvalidAttributeName", reason):
        make_queue("other", **{name: value})


@pytest.mark.rule("attribute.24")
def test_attributes_are_set_all_or_none(queue):
    before = queue.attributes("All")
    with refused(queue.client, "InvalidAttributeValue", re.compile("DelaySeconds")):
        queue.set(VisibilityTimeout=60, DelaySeconds=901)
    with refused(queue.client, "InvalidAttributeName", unknown("Nothing")):
        queue.set(VisibilityTimeout=60, Nothing=1)
    assert queue.attributes("All") == before


@pytest.mark.rule("attribute.25")
def test_setting_replaces_the_named_attributes_alone(queue):
    queue.set(VisibilityTimeout=60, DelaySeconds=5)
    queue.set(DelaySeconds=6)
    assert queue.attributes("VisibilityTimeout", "DelaySeconds") == {
        "VisibilityTimeout": "60",
        "DelaySeconds": "6",
    }


@pytest.mark.rule("attribute.26", "attribute.27")
def test_last_modified_is_the_second_of_the_last_change(queue, clock):
    created = clock.now_ms() // 1000
    clock.advance(90)
    queue.set(DelaySeconds=1)
    assert queue.attributes("CreatedTimestamp", "LastModifiedTimestamp") == {
        "CreatedTimestamp": str(created),
        "LastModifiedTimestamp": str(created + 90),
    }


@pytest.mark.rule("send.18")
def test_a_changed_attribute_holds_from_the_next_request_on(queue):
    """The change needs no propagation, as it does at Amazon (60 s)."""
    queue.set(MaximumMessageSize=1024)
    with refused(
        queue.client,
        INVALID,
        "One or more parameters are invalid. Reason: Message must be shorter than 1024 bytes.",
    ):
        queue.send("x" * 1025)


@pytest.mark.rule("attribute.29", "attribute.30")
def test_a_policy_is_kept_as_it_was_given_and_removed_by_an_empty_text(queue):
    policy = json.dumps({"Version": "2012-10-17", "Statement": []}, indent=2)
    queue.set(Policy=policy)
    assert queue.attributes("Policy") == {"Policy": policy}
    queue.set(Policy="")
    assert queue.attributes("Policy") == {}
    queue.set(Policy="")


@pytest.mark.rule("attribute.31")
def test_a_policy_is_json_of_at_most_8192_bytes(queue):
    def policy(size):
        return json.dumps({"Statement": [], "Id": "x" * (size - len('{"Statement": [], "Id": ""}'))})

    queue.set(Policy=policy(8192))
    for wrong in (policy(8193), "no json", "[]", "{}"):
        with refused(
            queue.client, "InvalidAttributeValue", re.compile("^Invalid value for the parameter Policy.")
        ):
            queue.set(Policy=wrong)


@pytest.mark.rule("permission.20")
@pytest.mark.parametrize(
    "wrong",
    [
        {"Effect": "Perhaps"},
        {"Principal": {"AWS": "nobody"}},
        {"Action": "SendMessage"},
        {"Action": [f"sqs:{letter}*" for letter in "acdglprs"]},
        {"Conditions": {"Bool": {"aws:SecureTransport": "true"}}},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_a_policy_without_a_clear_meaning_is_refused(queue, make_queue, wrong):
    """In CreateQueue and in SetQueueAttributes. The old policy stays."""
    good = {"Effect": "Allow", "Principal": "*", "Action": "sqs:SendMessage", "Resource": queue.arn}
    queue.set(Policy={"Statement": [good]})
    before = queue.attributes("Policy")
    for set_policy in (queue.set, lambda **attributes: make_queue("other", **attributes)):
        with refused(
            queue.client, "InvalidAttributeValue", re.compile("^Invalid value for the parameter Policy.")
        ):
            set_policy(Policy={"Statement": [good, {**good, **wrong}]})
    assert queue.attributes("Policy") == before


def test_a_queue_is_created_with_a_policy_and_found_by_its_meaning(sqs, make_queue):
    policy = {"Version": "2012-10-17", "Statement": []}
    queue = make_queue(Policy=policy)
    assert queue.attributes("Policy") == {"Policy": json.dumps(policy)}
    assert make_queue(Policy=json.dumps(dict(reversed(policy.items())), indent=2)).url == queue.url
    reason = "A queue already exists with the same name and a different value for attribute Policy"
    with refused(sqs, "QueueNameExists", reason):
        make_queue(Policy={**policy, "Id": "other"})


@pytest.mark.rule("attribute.32", "attribute.33", "attribute.34", "attribute.35", "attribute.38")
def test_encryption_by_key_switches_that_by_sqs_off(queue):
    queue.set(KmsMasterKeyId="alias/aws/sqs")
    names = ("KmsMasterKeyId", "KmsDataKeyReusePeriodSeconds", "SqsManagedSseEnabled")
    assert queue.attributes(*names) == {
        "KmsMasterKeyId": "alias/aws/sqs",
        "KmsDataKeyReusePeriodSeconds": "300",
        "SqsManagedSseEnabled": "false",
    }
    queue.set(KmsMasterKeyId="", KmsDataKeyReusePeriodSeconds=300)
    assert queue.attributes(*names) == {"SqsManagedSseEnabled": "false"}


@pytest.mark.rule("attribute.36")
def test_encryption_by_sqs_switches_that_by_key_off(queue):
    queue.set(KmsMasterKeyId="alias/aws/sqs", KmsDataKeyReusePeriodSeconds=60)
    assert queue.attributes("KmsDataKeyReusePeriodSeconds") == {"KmsDataKeyReusePeriodSeconds": "60"}
    queue.set(SqsManagedSseEnabled="true")
    names = ("KmsMasterKeyId", "KmsDataKeyReusePeriodSeconds", "SqsManagedSseEnabled")
    assert queue.attributes(*names) == {"SqsManagedSseEnabled": "true"}


def test_a_period_without_a_key_is_not_shown_and_not_compared(queue, make_queue):
    """CreateQueue compares the given attributes only."""
    queue.set(KmsDataKeyReusePeriodSeconds=60)
    assert queue.attributes("KmsDataKeyReusePeriodSeconds", "SqsManagedSseEnabled") == {
        "SqsManagedSseEnabled": "true"
    }
    assert make_queue(SqsManagedSseEnabled="true").url == queue.url


def test_a_queue_is_created_with_a_key_and_found_by_it(sqs, make_queue):
    """The existence of the key is not checked."""
    queue = make_queue(KmsMasterKeyId="nobody's", KmsDataKeyReusePeriodSeconds=60)
    assert make_queue(KmsMasterKeyId="nobody's").url == queue.url
    exists = "A queue already exists with the same name and a different value for attribute "
    with refused(sqs, "QueueNameExists", exists + "KmsMasterKeyId"):
        make_queue(KmsMasterKeyId="another's")
    with refused(sqs, "QueueNameExists", exists + "SqsManagedSseEnabled"):
        make_queue(SqsManagedSseEnabled="true")


@pytest.mark.rule("attribute.37")
def test_both_encryptions_at_once_are_refused(queue, make_queue):
    both = {"KmsMasterKeyId": "alias/aws/sqs", "SqsManagedSseEnabled": "true"}
    with refused(queue.client, "InvalidAttributeName", BOTH_ENCRYPTIONS):
        queue.set(**both)
    with refused(queue.client, "InvalidAttributeName", BOTH_ENCRYPTIONS):
        make_queue("other", **both)


@pytest.mark.rule("attribute.39")
def test_a_switch_is_true_or_false(queue):
    queue.set(SqsManagedSseEnabled="false")
    assert queue.attributes("SqsManagedSseEnabled") == {"SqsManagedSseEnabled": "false"}
    with refused(
        queue.client,
        "InvalidAttributeValue",
        re.compile("^Invalid value for the parameter SqsManagedSseEnabled."),
    ):
        queue.set(SqsManagedSseEnabled="yes")


# Counts


@pytest.mark.rule("attribute.40", "attribute.41", "attribute.42", "attribute.43")
def test_counts_follow_a_message_through_its_life(queue, clock):
    """Delayed, visible, in flight, visible again, deleted; each message is in one of them."""
    queue.send(DelaySeconds=10)
    assert queue.counts == (0, 0, 1)
    clock.advance(10)
    assert queue.counts == (1, 0, 0)
    queue.receive_one()
    assert queue.counts == (0, 1, 0)
    clock.advance(30)
    assert queue.counts == (1, 0, 0)
    queue.delete(queue.receive_one())
    assert queue.counts == (0, 0, 0)


@pytest.mark.rule("attribute.40", "attribute.41", "attribute.42", "attribute.43")
def test_counts_are_exact_at_every_instant(queue, clock):
    """Of many messages in every state, without a receive that brings them up to date."""
    for n in range(12):
        queue.send(str(n), DelaySeconds=0 if n < 8 else n)
    for timeout in (5, 10, 15):
        queue.receive_one(VisibilityTimeout=timeout)
    seen = []
    for _ in range(16):
        seen.append(queue.counts)
        clock.advance(1)
    in_flight = [sum(second < timeout for timeout in (5, 10, 15)) for second in range(16)]
    delayed = [sum(second < delay for delay in (8, 9, 10, 11)) for second in range(16)]
    assert seen == [(12 - one - other, one, other) for one, other in zip(in_flight, delayed, strict=True)]


# Tags


@pytest.mark.rule("tag.1", "tag.14")
def test_a_queue_is_created_with_tags(sqs):
    url = sqs.create_queue(QueueName="q", tags={"team": "blue", "empty": ""})["QueueUrl"]
    assert sqs.list_queue_tags(QueueUrl=url)["Tags"] == {"team": "blue", "empty": ""}


@pytest.mark.rule("tag.6")
def test_without_tags_the_key_is_left_out(queue):
    assert without_metadata(queue.client.list_queue_tags(QueueUrl=queue.url)) == {}


@pytest.mark.rule("tag.2", "tag.3")
def test_a_tag_gets_a_new_value_and_the_others_stay(queue):
    queue.client.tag_queue(QueueUrl=queue.url, Tags={"team": "blue", "Team": "capital", "cost": "7"})
    queue.client.tag_queue(QueueUrl=queue.url, Tags={"team": "red"})
    tags = queue.client.list_queue_tags(QueueUrl=queue.url)["Tags"]
    assert tags == {"team": "red", "Team": "capital", "cost": "7"}


@pytest.mark.rule("tag.4", "tag.5")
def test_untagging_ignores_keys_that_are_not_there(queue):
    queue.client.tag_queue(QueueUrl=queue.url, Tags={"a": "1", "b": "2"})
    queue.client.untag_queue(QueueUrl=queue.url, TagKeys=["a", "nobody"])
    assert queue.client.list_queue_tags(QueueUrl=queue.url)["Tags"] == {"b": "2"}


@pytest.mark.rule("tag.9", "tag.10")
def test_a_queue_has_at_most_50_tags(queue):
    """New values for old keys do not count."""
    queue.client.tag_queue(QueueUrl=queue.url, Tags={str(n): "" for n in range(50)})
    queue.client.tag_queue(QueueUrl=queue.url, Tags={"49": "new"})
    with refused(queue.client, INVALID, "Too many tags added for queue q."):
        queue.client.tag_queue(QueueUrl=queue.url, Tags={"50": ""})
    with refused(queue.client, INVALID, "Too many tags added for queue other."):
        queue.client.create_queue(QueueName="other", tags={str(n): "" for n in range(51)})
    assert queue.client.list_queues()["QueueUrls"] == [queue.url]


@pytest.mark.rule("tag.13")
@pytest.mark.parametrize("tags", [{"k" * 128: "v" * 256}, {"ö 1_.:/=+-@": "ö 1_.:/=+-@"}])
def test_the_longest_tags_with_all_their_characters_are_accepted(queue, tags):
    queue.client.tag_queue(QueueUrl=queue.url, Tags=tags)
    assert queue.client.list_queue_tags(QueueUrl=queue.url)["Tags"] == tags


@pytest.mark.rule("tag.11", "tag.12", "tag.15", "tag.16")
@pytest.mark.parametrize(
    "tags",
    [
        {"": "v"},
        {"k" * 129: "v"},
        {"k": "v" * 257},
        {"k!": "v"},
        {"k": "v!"},
        {"aws:k": "v"},
        {"k\x1f": "v"},
        {"k": "v\x0b"},
        {"AWS:k": "v"},
    ],
)
def test_other_tags_are_refused(queue, tags):
    with refused(queue.client, INVALID, re.compile("^Tag ")):
        queue.client.tag_queue(QueueUrl=queue.url, Tags=tags)
    with refused(queue.client, INVALID, re.compile("^Tag ")):
        queue.client.create_queue(QueueName="other", tags=tags)
    assert "Tags" not in queue.client.list_queue_tags(QueueUrl=queue.url)


@pytest.mark.rule("tag.7", "tag.8")
def test_an_empty_set_of_tags_is_refused(queue):
    with refused(queue.client, MISSING, "The request must contain the parameter Tags."):
        queue.client.tag_queue(QueueUrl=queue.url, Tags={})
    with refused(queue.client, INVALID, "Tag keys must be between 1 and 128 characters in length."):
        queue.client.untag_queue(QueueUrl=queue.url, TagKeys=[])


@pytest.mark.rule("tag.17")
def test_tags_are_each_queues_own(make_queue):
    one, other = make_queue("one"), make_queue("other")
    one.client.tag_queue(QueueUrl=one.url, Tags={"a": "1"})
    assert "Tags" not in other.client.list_queue_tags(QueueUrl=other.url)
