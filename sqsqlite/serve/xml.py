"""Results of the Query protocol, as XML: lists and maps are repeated elements without one around them."""

import re
from typing import Any

# By the member's name: what stands for it, and for the key and value of each of its pairs.
MAPS = {
    "Attributes": ("Attribute", "Name", "Value"),
    "MessageAttributes": ("MessageAttribute", "Name", "Value"),
    "Tags": ("Tag", "Key", "Value"),
}
_LISTS = {
    "QueueUrls": "QueueUrl",
    "queueUrls": "QueueUrl",
    "Messages": "Message",
    "Results": "ListMessageMoveTasksResultEntry",
    "Failed": "BatchResultErrorEntry",
}


# What XML 1.0 can't hold, not even as a reference. Messages have none of it; errors repeat what a client sent.
_CONTROLS = bytes(range(0x20)).translate(None, b"\t\n\r")
_replace_illegal = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]").sub


def escape(text: str) -> str:
    """As SQS writes text: quotes and carriage returns as references too, line feeds and tabs as they are.

    A character that XML 1.0 can't hold becomes U+FFFD, the replacement character.
    """
    return (
        _legal(text)
        .replace("&", "&amp;")
        .replace("<", "&lt;")
        .replace(">", "&gt;")
        .replace('"', "&quot;")
        .replace("\r", "&#xD;")
    )


def _legal(text: str) -> str:
    encoded = text.encode()
    # The pattern alone takes longer for a message of 1 MiB than all the rest of this.
    if len(encoded.translate(None, _CONTROLS)) < len(encoded) or "\ufffe" in text or "\uffff" in text:
        return _replace_illegal("\ufffd", text)
    return text


def elements(members: dict[str, Any], action: str) -> str:
    """The members of a result, one element or several each."""
    return "".join(_member(name, value, action) for name, value in members.items())


def _member(name: str, value: Any, action: str) -> str:
    if isinstance(value, list):
        element = f"{action}ResultEntry" if name == "Successful" else _LISTS.get(name, name)
        return "".join(_element(element, item, action) for item in value)
    if isinstance(value, dict) and name in MAPS:
        element, key_name, value_name = MAPS[name]
        return "".join(
            f"<{element}>{_element(key_name, key, action)}{_element(value_name, item, action)}</{element}>"
            for key, item in value.items()
        )
    return _element(name, value, action)


def _element(name: str, value: Any, action: str) -> str:
    if isinstance(value, dict):
        return f"<{name}>{elements(value, action)}</{name}>"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f"<{name}>{escape(text)}</{name}>"
