"""The types that the checks use with every version of the Python client."""
import asyncio
import dataclasses
import json

from mcp_judges.ground import PATIENCE


class Refused(Exception):
    """An error of the protocol, as opposed to an error result of a tool."""

    def __init__(self, code, message, data=None):
        super().__init__(f"{code} {message} {data if data is not None else ''}")
        self.code, self.message, self.data = code, message, data


@dataclasses.dataclass
class Result:
    """The result of a tool."""

    is_error: bool
    structured: dict | None
    content: list

    @property
    def text(self):
        return "\n".join(it.get("text", "") for it in self.content)

    @property
    def size(self):
        """The size of the texts, which is what a model sees."""
        return len(self.text.encode())

    def error(self):
        """The error object of a refusal."""
        return json.loads(self.text)["error"]


@dataclasses.dataclass
class Target:
    """How to connect to a server: start it over stdio, or use its address."""

    command: str = ""
    arguments: tuple = ("mcp",)
    directory: str = ""
    environment: dict = dataclasses.field(default_factory=dict)
    url: str = ""
    headers: dict = dataclasses.field(default_factory=dict)

    def with_arguments(self, *more):
        return dataclasses.replace(self, arguments=("mcp", *more))


class Person:
    """Answers elicitations. `answer` is accept, decline, cancel, or untick for a form with an unticked checkbox."""

    def __init__(self, answer):
        self.answer, self.asked = answer, []

    def reply(self, message, schema):
        """Returns the action and the content of the form."""
        self.asked.append({"message": message, "schema": schema})
        if self.answer == "accept":
            return "accept", {"yes": True, "note": "confirmed in a test"}
        if self.answer == "untick":
            return "accept", {"yes": False}
        return self.answer, None


class Events:
    """The notifications of a server."""

    def __init__(self):
        self.queue = asyncio.Queue()

    def put(self, kind, uri=None):
        self.queue.put_nowait((kind, str(uri) if uri else None))

    async def until(self, wanted, seconds=PATIENCE):
        """Waits for a wanted event. Returns all events received until then, or raises after the time limit."""
        seen = []
        try:
            async with asyncio.timeout(seconds):
                while True:
                    event = await self.queue.get()
                    seen.append(event)
                    if wanted(event):
                        return seen
        except TimeoutError:
            raise AssertionError(f"no such event within {seconds} s; seen {seen}") from None


def connect(name, target, **options):
    """Opens a connection with one of the clients: v2-auto, v2-legacy or v1."""
    if name == "v1":
        from mcp_judges import sdk1

        return sdk1.connect(target, **options)
    from mcp_judges import sdk2

    return sdk2.connect(target, mode=name.removeprefix("v2-"), **options)
