"""Calls every route with the client that openapi-python-client made, with the examples of the document."""

import builtins
import enum
import importlib
import json
import keyword
import os
import re
import sys
import typing

import httpx

sys.path.insert(0, os.getcwd())
from made_by_python.client import AuthenticatedClient  # noqa: E402

# What a route may answer to an example: done, or refused for a reason that the document names.
REACHED = {200, 201, 304, 403, 409, 422}
# What the routes of these names are called with beside their examples: names as people give them.
OTHERS = [
    ("get_plan", {"id": "Prüfung 1.a"}),
    ("show", {"id": "Prüfung 1.a:1.5"}),
    ("get_step", {"id": "Prüfung 1.a:1.5"}),
    ("search", {"query": "read", "since": "2024-02-29"}),
    ("search", {"query": "read", "since": "2024-01-31"}),
]


def snake(name):
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+", "_", name).lower()


def module_name(name):
    """The generator puts `_` behind words that Python has for itself."""
    name = snake(name)
    return f"{name}_" if keyword.iskeyword(name) or hasattr(builtins, name) else name


def parts(hint):
    """The types that a hint is made of."""
    inner = typing.get_args(hint)
    return [hint] if not inner else [it for part in inner for it in parts(part)]


def converted(hint, value):
    """A value of the document in the type that the function takes."""
    if isinstance(value, list):
        return [converted(hint, it) for it in value]
    for kind in parts(hint):
        if isinstance(kind, type) and issubclass(kind, enum.Enum):
            return kind(value)
        if isinstance(value, dict) and hasattr(kind, "from_dict"):
            return kind.from_dict(value)
    return value


def call(client, operation, given):
    tag, name = (module_name(it) for it in (operation["tags"][0], operation["operationId"]))
    module = importlib.import_module(f"made_by_python.api.{tag}.{name}")
    hints = typing.get_type_hints(module.sync_detailed)
    arguments = {snake(name): value for name, value in given.items()}
    body = operation.get("requestBody")
    if body:
        arguments["body"] = body["content"]["application/json"]["example"]
    names = {name: next(it for it in (name, f"{name}_") if it in hints) for name in arguments}
    arguments = {names[name]: converted(hints[names[name]], value) for name, value in arguments.items()}
    return module.sync_detailed(client=client, **arguments)


def main():
    document = json.load(open(os.environ["OPENAPI"]))
    client = AuthenticatedClient(
        os.environ["ADDRESS"], os.environ["TOKEN"], raise_on_unexpected_status=True, timeout=httpx.Timeout(60.0)
    )
    operations = {it["operationId"]: it for item in document["paths"].values() for it in item.values()}
    examples = [
        (name, {it["name"]: it["example"] for it in operation["parameters"] if "example" in it})
        for name, operation in operations.items()
    ]
    faults, reached = [], 0
    for name, given in examples + OTHERS:
        if name == "follow_events":
            client_of_events = AuthenticatedClient(
                os.environ["ADDRESS"], os.environ["TOKEN"], timeout=httpx.Timeout(2.0)
            )
            try:
                call(client_of_events, operations[name], given)
                faults.append(f"{name}: the stream has ended")
            except httpx.ReadTimeout:
                reached += 1
            continue
        try:
            answer = call(client, operations[name], given)
        except Exception as error:
            faults.append(f"{name}: {error!r}")
            continue
        said = answer.content.decode(errors="replace")[:200]
        missing = answer.status_code == 404 and "no-such-route" not in said
        if answer.status_code not in REACHED and not missing:
            faults.append(f"{name}: {answer.status_code} {said}")
        elif answer.parsed is None:
            faults.append(f"{name}: the answer was not read: {answer.status_code} {said}")
        else:
            reached += 1
    for fault in faults:
        print(fault)
    print(f"openapi-python-client: {reached} calls of {len(operations)} routes, {len(faults)} faults")
    return 1 if faults else 0


sys.exit(main())
