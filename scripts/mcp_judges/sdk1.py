"""The Python client 1.x, which supports only earlier protocol versions and validates structured results."""
import contextlib
import datetime

import httpx
from mcp import ClientSession, McpError, StdioServerParameters, types
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from mcp_judges.ground import PATIENCE
from mcp_judges.sdk import Events, Refused, Result


@contextlib.asynccontextmanager
async def connect(target, person=None, is_cached=False):
    events = Events()

    async def on_elicitation(_, params):
        action, content = person.reply(params.message, params.requestedSchema)
        return types.ElicitResult(action=action, content=content)

    async def on_message(message):
        root = getattr(message, "root", None)
        if isinstance(root, types.ResourceUpdatedNotification):
            events.put("updated", root.params.uri)
        elif isinstance(root, types.ResourceListChangedNotification):
            events.put("list")

    async with contextlib.AsyncExitStack() as stack:
        if target.url:
            http = await stack.enter_async_context(httpx.AsyncClient(headers=target.headers, timeout=PATIENCE))
            streams = await stack.enter_async_context(streamable_http_client(target.url, http_client=http))
        else:
            server = StdioServerParameters(
                command=target.command, args=list(target.arguments), env=target.environment, cwd=target.directory,
            )
            streams = await stack.enter_async_context(stdio_client(server))
        session = await stack.enter_async_context(
            ClientSession(
                streams[0], streams[1], read_timeout_seconds=datetime.timedelta(seconds=PATIENCE), message_handler=on_message,
                elicitation_callback=on_elicitation if person is not None else None,
            )
        )
        hello = await session.initialize()
        yield Connection(session, hello, events)


def plain(of):
    return of.model_dump(by_alias=True, mode="json", exclude_none=True)


class Connection:
    is_modern = False

    def __init__(self, session, hello, events):
        self.session, self.events = session, events
        self.hello = {
            "version": hello.protocolVersion, "server": plain(hello.serverInfo),
            "instructions": hello.instructions or "", "capabilities": plain(hello.capabilities),
        }

    async def _checked(self, request):
        try:
            return await request
        except McpError as error:
            raise Refused(error.error.code, error.error.message, error.error.data) from None

    async def tools(self):
        return plain(await self._checked(self.session.list_tools()))["tools"]

    async def call(self, name, arguments, progress=None):
        it = await self._checked(self.session.call_tool(name, arguments, progress_callback=progress))
        return Result(bool(it.isError), it.structuredContent, [plain(block) for block in it.content])

    async def resources(self):
        found, cursor = [], None
        while True:
            page = await self._checked(self.session.list_resources(params=types.PaginatedRequestParams(cursor=cursor)))
            found += [plain(it) for it in page.resources]
            cursor = page.nextCursor
            if not cursor:
                return found

    async def templates(self):
        return [plain(it) for it in (await self._checked(self.session.list_resource_templates())).resourceTemplates]

    async def read(self, uri):
        return plain(await self._checked(self.session.read_resource(uri)))["contents"]

    async def prompts(self):
        return [plain(it) for it in (await self._checked(self.session.list_prompts())).prompts]

    async def prompt(self, name, arguments):
        return plain(await self._checked(self.session.get_prompt(name, arguments)))["messages"]

    async def complete(self, kind, name, argument, value):
        if kind == "prompt":
            reference = types.PromptReference(type="ref/prompt", name=name)
        else:
            reference = types.ResourceTemplateReference(type="ref/resource", uri=name)
        done = await self._checked(self.session.complete(reference, {"name": argument, "value": value}))
        return done.completion.values

    @contextlib.asynccontextmanager
    async def watching(self, uris):
        for uri in uris:
            await self._checked(self.session.subscribe_resource(uri))
        yield self.events
