"""What only the Query protocol has: names of parameters that older SDKs send."""

import json
from urllib.parse import urlencode

import pytest

from tests.wire.raw import FORM, ask, json_of, post
from tests.wire.serving import serving


@pytest.fixture
def url(store):
    with serving(store) as found:
        ask(found, json_of(b"CreateQueue", b'{"QueueName":"q"}'))
        yield found


def query(url, action, headers=b"", **parameters):
    """Ask by a form: of queue q, unless the parameters name another."""
    form = urlencode({"Action": action, "QueueUrl": "q", **parameters})
    return ask(url, post(form.encode(), FORM + headers))


def tags(url, queue="q"):
    answer = ask(url, json_of(b"ListQueueTags", json.dumps({"QueueUrl": queue}).encode()))
    return json.loads(answer.body).get("Tags")


@pytest.mark.parametrize("element", ["Tag", "Tags"])
def test_tag_queue_takes_tags_under_either_name(url, element):
    """Java SDKs that speak Query send the plural, and Amazon takes it."""
    pairs = {"Key": "team", "Value": "blue"}, {"Key": "empty", "Value": ""}
    form = {
        f"{element}.{place}.{name}": text
        for place, pair in enumerate(pairs, 1)
        for name, text in pair.items()
    }
    answer = query(url, "TagQueue", **form)
    assert (answer.status, tags(url)) == (200, {"team": "blue", "empty": ""})


@pytest.mark.parametrize("element", ["TagKey", "TagKeys"])
def test_untag_queue_takes_keys_under_either_name(url, element):
    query(url, "TagQueue", **{"Tag.1.Key": "a", "Tag.1.Value": "1", "Tag.2.Key": "b", "Tag.2.Value": "2"})
    answer = query(url, "UntagQueue", **{f"{element}.1": "a"})
    assert (answer.status, tags(url)) == (200, {"b": "2"})


@pytest.mark.parametrize("element", ["Tag", "Tags"])
def test_create_queue_takes_tags_under_one_name(url, element):
    """No SDK sends the plural here, and no record shows that Amazon takes it."""
    query(url, "CreateQueue", QueueName="new", **{f"{element}.1.Key": "a", f"{element}.1.Value": "1"})
    assert tags(url, "new") == ({"a": "1"} if element == "Tag" else None)
