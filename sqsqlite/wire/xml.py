"""Results of the Query protocol, as XML: lists and maps are repeated elements without one around them."""

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


def escape(text: str) -> str:
    """As SQS writes text: quotes and carriage returns as references too, line feeds and tabs as they are."""
    return (
        text.replace("&", "&amp;")
        .replace("<", "&lt;")
        .replace(">", "&gt;")
        .replace('"', "&quot;")
        .replace("\r", "&#xD;")
    )


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
