# SPDX-License-Identifier: Apache-2.0
"""The AWS CLI's verbs on a file: their effects and their output."""

import json
import shlex

import pytest

from tests.packaging.checkout import ROOT

URL = "http://localhost:9324/000000000000/"
AMAZON = "https://sqs.us-east-1.amazonaws.com/123456789012/"


def test_the_command_lines_of_the_documentation_run_unchanged(run):
    """Chapter on the visibility timeout, "Configuring": `aws sqs` is replaced by `sqsqlite`.

    Its account is unknown here.
    """
    url = f"{AMAZON}MyQueue"
    assert run(*shlex.split("create-queue --queue-name MyQueue --attributes VisibilityTimeout=60")).json == {
        "QueueUrl": f"{URL}MyQueue"
    }
    changed = run(*shlex.split(f"set-queue-attributes --queue-url {url} --attributes VisibilityTimeout=120"))
    assert (changed.code, changed.out) == (0, "")
    shown = run(*shlex.split(f"get-queue-attributes --queue-url {url} --attribute-names VisibilityTimeout"))
    assert shown.json == {"Attributes": {"VisibilityTimeout": "120"}}
    run("send-message", "--queue-url", url, "--message-body", "hi")
    [message] = run("receive-message", "--queue-url", url).json["Messages"]
    words = f"change-message-visibility --queue-url {url} --receipt-handle AQEB --visibility-timeout 300"
    changed = run(*words.replace("AQEB", message["ReceiptHandle"]).split())
    assert (changed.code, changed.out, changed.err) == (0, "", "")


def test_json_is_indented_by_four_and_keeps_letters_unescaped(run, sqs):
    assert run("tag-queue", "--queue-url", "orders", "--tags", '{"straße": "grün"}').out == ""
    assert run("list-queue-tags", "--queue-url", "orders").out == (
        '{\n    "Tags": {\n        "straße": "grün"\n    }\n}\n'
    )


@pytest.mark.parametrize("line", ["receive-message", "list-queue-tags", "list-dead-letter-source-queues"])
def test_an_empty_answer_prints_nothing(run, sqs, line):
    ran = run(line, "--queue-url", "orders")
    assert (ran.code, ran.out) == (0, "")


def test_no_queues_print_nothing(run, sqs):
    assert run("list-queues", "--queue-name-prefix", "x").out == ""


@pytest.mark.parametrize(
    "named", ["orders", f"{URL}orders", f"{AMAZON}orders", "arn:aws:sqs:us-east-1:000000000000:orders"]
)
def test_a_queue_is_found_by_name_url_of_any_host_or_arn(run, sqs, named):
    assert run("send-message", "--queue-url", named, "--message-body", "hi").code == 0
    assert len(sqs.queue("orders")) == 1


@pytest.mark.parametrize("named", ["not a queue", "nope"])
def test_an_invalid_queue_url_is_named_in_the_error(run, sqs, path, named):
    said = f"QueueDoesNotExist: {named}: no such queue in {path} (its queues: orders)\n"
    refused = run("purge-queue", "--queue-url", named)
    assert (refused.code, refused.err) == (1, said)
    assert run("get-queue-url", "--queue-name", "nope").err.startswith(
        "QueueDoesNotExist: nope: no such queue"
    )
    refused = run("purge-queue", "--cli-input-json", json.dumps({"QueueUrl": named}))
    assert (refused.code, refused.err) == (1, said)


def test_query_and_text_fill_a_shell_variable(run, sqs):
    ran = run("get-queue-url", "--queue-name", "orders", "--query", "QueueUrl", "--output", "text")
    assert ran.out == f"{URL}orders\n"


def test_a_query_that_finds_nothing_is_null(run, sqs):
    assert run("get-queue-url", "--queue-name", "orders", "--query", "Nothing").out == "null\n"
    assert (
        run("get-queue-url", "--queue-name", "orders", "--query", "Nothing", "--output", "text").out
        == "None\n"
    )


def test_attributes_and_binary_values_come_back_as_they_were_sent(run, sqs):
    attributes = {
        "kind": {"StringValue": "a, {b}", "DataType": "String"},
        "price": {"StringValue": "1.50", "DataType": "Number.euro"},
        "raw": {"BinaryValue": "AP8=", "DataType": "Binary"},
    }
    words = [
        "send-message",
        "--queue-url",
        "orders",
        "--message-body",
        "hi",
        "--message-attributes",
        json.dumps(attributes),
    ]
    assert run(*words).code == 0
    words = ["receive-message", "--queue-url", "orders", "--message-attribute-names", "All"]
    [message] = run(*words).json["Messages"]
    assert message["MessageAttributes"] == attributes
    assert sqs.queue("orders").peek(hidden=True)[0].attributes["raw"].binary_value == b"\x00\xff"


def test_binary_values_can_be_given_raw(run, sqs):
    words = "send-message --queue-url orders --message-body hi --cli-binary-format raw-in-base64-out"
    words += " --message-attributes"
    run(*words.split(), "raw={DataType=Binary,BinaryValue=plain}")
    assert sqs.queue("orders").peek()[0].attributes["raw"].binary_value == b"plain"
    refused = run(
        *words.replace("raw-in-base64-out", "base64").split(), "raw={DataType=Binary,BinaryValue=plain}"
    )
    assert refused.code == 2
    assert "'plain' is not Base64" in refused.err


def test_failed_entries_are_printed_and_exit_with_4(run, sqs):
    ran = run(
        "send-message-batch",
        "--queue-url",
        "orders",
        "--entries",
        "Id=1,MessageBody=x",
        "Id=2,MessageBody=y,DelaySeconds=901",
    )
    assert ran.code == 4
    assert [entry["Id"] for entry in ran.json["Successful"]] == ["1"]
    assert [entry["Id"] for entry in ran.json["Failed"]] == ["2"]
    assert len(sqs.queue("orders")) == 1


def test_refused_values_exit_with_1_and_missing_options_with_2(run, sqs):
    refused = run("send-message", "--queue-url", "orders", "--message-body", "hi", "--delay-seconds", "901")
    assert refused.code == 1
    assert refused.err.startswith("InvalidParameterValue: Value 901 for parameter DelaySeconds is invalid.")
    assert run("send-message", "--queue-url", "orders").code == 2
    assert "--message-body" in run("send-message", "--queue-url", "orders").err
    assert (
        run("send-message", "--queue-url", "orders", "--message-body", "x", "--delay-seconds", "soon").code
        == 2
    )
    assert len(sqs.queue("orders")) == 0


@pytest.mark.parametrize(
    ("flag", "value", "said"),
    [
        ("--tags", "a", "expected '='"),
        ("--tags", "{not json", "Expecting property name"),
        ("--tags", "file:///no/such/file", "No such file"),
        ("--tags", "a=b,c", "Invalid type for parameter Tags.a, value: ['b', 'c']"),
        ("--tags", '{"a": 5}', "Invalid type for parameter Tags.a, value: 5"),
        ("--cli-input-json", "[]", "it must be a JSON object"),
        ("--cli-input-json", '{"Unknown": 1, "Tags": {}}', 'Unknown parameter in input: "Unknown"'),
    ],
)
def test_values_of_the_wrong_form_are_usage_errors(run, sqs, flag, value, said):
    refused = run("tag-queue", "--queue-url", "orders", flag, value)
    assert refused.code == 2
    assert said in refused.err
    assert sqs.queue("orders").tags == {}


def test_a_body_can_come_from_a_file(run, sqs, path):
    (path.parent / "body.txt").write_text("several\nlines\n")
    run("send-message", "--queue-url", "orders", "--message-body", "file://body.txt")
    assert sqs.queue("orders").peek()[0].body == "several\nlines\n"


def test_a_skeleton_filled_in_is_the_command_s_input(run, sqs, path):
    skeleton = run("send-message", "--generate-cli-skeleton").json
    assert list(skeleton)[:2] == ["QueueUrl", "MessageBody"]
    assert skeleton["MessageAttributes"]["KeyName"]["DataType"] == ""
    filled = {"QueueUrl": "orders", "MessageBody": skeleton["MessageBody"] + "from JSON", "DelaySeconds": 7}
    (path.parent / "input.json").write_text(json.dumps(filled))
    assert run("send-message", "--cli-input-json", "file://input.json", "--delay-seconds", "0").code == 0
    assert [(message.body, message.state) for message in sqs.queue("orders").peek()] == [
        ("from JSON", "visible")
    ]


def test_a_list_has_all_pages_and_continues_from_a_token(run, sqs):
    for number in range(5):
        sqs.create_queue(f"page-{number}")
    names = ["--queue-name-prefix", "page-"]
    whole = run("list-queues", *names, "--page-size", 2).json
    assert whole == {"QueueUrls": [f"{URL}page-{number}" for number in range(5)]}
    first = run("list-queues", *names, "--max-items", 3).json
    assert len(first["QueueUrls"]) == 3
    rest = run("list-queues", *names, "--starting-token", first["NextToken"]).json
    assert first["QueueUrls"] + rest["QueueUrls"] == whole["QueueUrls"]
    page = run("list-queues", *names, "--max-results", 2).json
    assert (len(page["QueueUrls"]), "NextToken" in page) == (2, True)
    assert run("list-queues", *names, "--no-paginate").json == whole


def test_a_whole_life_of_a_message_and_its_queue(run):
    url = run("create-queue", "--queue-name", "q", "--query", "QueueUrl", "--output", "text").out.strip()
    sent = run("send-message", "--queue-url", url, "--message-body", "hi").json
    [message] = run("receive-message", "--queue-url", url, "--attribute-names", "All").json["Messages"]
    assert (message["MessageId"], message["Attributes"]["ApproximateReceiveCount"]) == (
        sent["MessageId"],
        "1",
    )
    entry = f"Id=1,ReceiptHandle={message['ReceiptHandle']},VisibilityTimeout=0"
    assert run("change-message-visibility-batch", "--queue-url", url, "--entries", entry).json == {
        "Successful": [{"Id": "1"}]
    }
    [again] = run("receive-message", "--queue-url", url).json["Messages"]
    assert run("delete-message", "--queue-url", url, "--receipt-handle", again["ReceiptHandle"]).out == ""
    assert run("purge-queue", "--queue-url", url).out == ""
    assert run("purge-queue", "--queue-url", url).err.startswith("PurgeQueueInProgress: ")
    assert run("delete-queue", "--queue-url", url).out == ""
    assert run("create-queue", "--queue-name", "q").err.startswith("QueueDeletedRecently: ")


def test_permissions_are_words_after_their_flags(run, sqs):
    words = "add-permission --queue-url orders --label read --aws-account-ids 111122223333 444455556666"
    added = run(*words.split(), "--actions", "ReceiveMessage", "DeleteMessage")
    assert (added.code, added.out, added.err) == (0, "", "")
    shown = run("get-queue-attributes", "--queue-url", "orders", "--attribute-names", "Policy").json
    [statement] = json.loads(shown["Attributes"]["Policy"])["Statement"]
    assert statement["Principal"]["AWS"] == [
        "arn:aws:iam::111122223333:root",
        "arn:aws:iam::444455556666:root",
    ]
    assert statement["Action"] == ["SQS:ReceiveMessage", "SQS:DeleteMessage"]
    removed = run("remove-permission", "--queue-url", "orders", "--label", "read")
    assert (removed.code, removed.out) == (0, "")
    assert run("get-queue-attributes", "--queue-url", "orders", "--attribute-names", "Policy").out == ""
    again = run("remove-permission", "--queue-url", "orders", "--label", "read")
    assert (again.code, again.err.partition(":")[0]) == (1, "InvalidParameterValue")


def test_a_move_task_is_carried_out_by_the_commands_themselves(run):
    """A file has no server process: the next command continues the task of the last one."""
    arn = "arn:aws:sqs:us-east-1:000000000000:dead"
    policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 1})
    run("create", "dead")
    run("create-queue", "--queue-name", "q", "--attributes", json.dumps({"RedrivePolicy": policy}))
    run("create", "target")
    run("send", "dead", "a")
    started = run(
        "start-message-move-task", "--source-arn", arn, "--destination-arn", arn.replace("dead", "target")
    )
    [task] = run("list-message-move-tasks", "--source-arn", arn).json["Results"]
    assert (task["Status"], task["ApproximateNumberOfMessagesMoved"]) == ("COMPLETED", 1)
    over = run("cancel-message-move-task", "--task-handle", started.json["TaskHandle"])
    assert (over.code, over.err.partition(":")[0]) == (1, "ResourceNotFoundException")


@pytest.mark.parametrize("dead", ["dead", "https://sqs.us-east-1.amazonaws.com/123456789012/dead"])
def test_a_move_task_accepts_a_queue_name_or_url_for_an_arn(run, sqs, dead):
    sqs.create_queue("dead").send("a")
    sqs.queue("orders").set_attributes(dead_letter_queue="dead", max_receive_count=1)
    started = run("start-message-move-task", "--source-arn", dead, "--destination-arn", "orders")
    assert (started.code, list(started.json)) == (0, ["TaskHandle"])
    [task] = run("list-message-move-tasks", "--source-arn", dead).json["Results"]
    assert task["SourceArn"] == sqs.queue("dead").arn
    assert task["DestinationArn"] == sqs.queue("orders").arn
    refused = run("list-message-move-tasks", "--source-arn", "no name")
    assert (refused.code, refused.out) == (1, "")


def test_flags_about_servers_are_accepted_and_change_nothing(run, sqs):
    words = "list-queues --no-cli-pager --no-sign-request --cli-read-timeout 5 --color off --no-verify-ssl"
    assert run(*words.split()).json == {"QueueUrls": [f"{URL}orders"]}


def test_the_examples_in_the_document_run(run):
    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8").partition("## The AWS CLI's commands")[2]
    lines = text.split("```")[1].strip().replace("$(sqsqlite", "(sqsqlite").splitlines()
    for line in lines:
        words = shlex.split(
            line.partition("(")[2].rstrip(")") if line.startswith("URL=") else line.replace("$URL", "MyQueue")
        )
        assert words[0] == "sqsqlite"
        assert run(*words[1:]).code == 0, line
