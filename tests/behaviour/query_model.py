# SPDX-License-Identifier: Apache-2.0
"""boto3 as it was before it spoke JSON: a client whose model of SQS says that the protocol is Query.

The names of flattened lists and maps, the wrappers of results and the codes of errors are those of the service model
that botocore 1.31.80, the last to speak Query, came with.
"""

import copy
from functools import cache

import boto3
from botocore.session import Session

from tests.behaviour.refusals import CATALOGUE, UNMODELLED

_LISTS = {
    "AWSAccountIdList": "AWSAccountId",
    "ActionNameList": "ActionName",
    "AttributeNameList": "AttributeName",
    "BatchResultErrorEntryList": "BatchResultErrorEntry",
    "BinaryList": "BinaryListValue",
    "ChangeMessageVisibilityBatchRequestEntryList": "ChangeMessageVisibilityBatchRequestEntry",
    "ChangeMessageVisibilityBatchResultEntryList": "ChangeMessageVisibilityBatchResultEntry",
    "DeleteMessageBatchRequestEntryList": "DeleteMessageBatchRequestEntry",
    "DeleteMessageBatchResultEntryList": "DeleteMessageBatchResultEntry",
    "ListMessageMoveTasksResultEntryList": "ListMessageMoveTasksResultEntry",
    "MessageAttributeNameList": "MessageAttributeName",
    "MessageList": "Message",
    "MessageSystemAttributeList": "MessageSystemAttributeName",
    "QueueUrlList": "QueueUrl",
    "SendMessageBatchRequestEntryList": "SendMessageBatchRequestEntry",
    "SendMessageBatchResultEntryList": "SendMessageBatchResultEntry",
    "StringList": "StringListValue",
    "TagKeyList": "TagKey",
}
# By the map's shape: the name of its members, of its keys and of its values.
_MAPS = {
    "MessageBodyAttributeMap": ("MessageAttribute", "Name", "Value"),
    "MessageBodySystemAttributeMap": ("MessageSystemAttribute", "Name", "Value"),
    "MessageSystemAttributeMap": ("Attribute", "Name", "Value"),
    "QueueAttributeMap": ("Attribute", "Name", "Value"),
    "TagMap": ("Tag", "Key", "Value"),
}


def _to_query(model):
    """The JSON model with the traits that Query needs."""
    model = copy.deepcopy(model)
    metadata = model["metadata"]
    for name in ("awsQueryCompatible", "jsonVersion", "targetPrefix"):
        del metadata[name]
    metadata |= {
        "protocol": "query",
        "protocols": ["query"],
        "xmlNamespace": "http://queue.amazonaws.com/doc/2012-11-05/",
    }
    for name, operation in model["operations"].items():
        if "output" in operation:
            operation["output"]["resultWrapper"] = f"{name}Result"
    shapes = model["shapes"]
    for name, element in _LISTS.items():
        shapes[name]["member"]["locationName"] = element
    for name, (_, key, value) in _MAPS.items():
        shapes[name]["key"]["locationName"] = key
        shapes[name]["value"]["locationName"] = value
    for shape in shapes.values():
        for member in shape.get("members", {}).values():
            if member["shape"] in _MAPS:
                member["locationName"] = _MAPS[member["shape"]][0]
    for name in CATALOGUE.keys() - UNMODELLED:
        code, status = CATALOGUE[name]
        shapes[name]["error"] = {"code": code, "httpStatusCode": status, "senderFault": True}
    return model


@cache
def query_session():
    """A boto3 session whose SQS clients speak Query."""
    session = Session()
    loader = session.get_component("data_loader")
    load = loader.load_service_model
    query = _to_query(load("sqs", "service-2"))

    def load_query(service_name, type_name, api_version=None):
        is_sqs = (service_name, type_name) == ("sqs", "service-2")
        return query if is_sqs else load(service_name, type_name, api_version)

    loader.load_service_model = load_query
    return boto3.Session(botocore_session=session)
