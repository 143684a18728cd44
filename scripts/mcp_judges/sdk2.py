"""The Python client 2.x, which supports the new and earlier protocol versions."""
import contextlib
import warnings

import httpx2
import mcp_types as types
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ResourceUpdated

from mcp_judges.ground import PATIENCE
from mcp_judges.sdk import Events, Refused, Result

# The checks use the deprecated subscriptions of earlier protocol versions on purpose.
warnings.filterwarnings("ignore")


@contextlib.asynccontextmanager
async def connect(target, mode, person=None, is_cached=False):
    events = Events()

    async def on_elicitation(_, params):
        action, content = person.reply(params.message, params.requested_schema)
        return types.ElicitResult(action=action, content=content)

    async def on_message(message):
        if isinstance(message, types.ResourceUpdatedNotification):
            events.put("updated", message.params.uri)
        elif isinstance(message, types.ResourceListChangedNotification):
            events.put("list")

    options = {"mode": mode, "read_timeout_seconds": PATIENCE, "message_handler": on_message}
    if person is not None:
        options["elicitation_callback"] = on_elicitation
    if not is_cached:
        options["cache"] = None
    async with contextlib.AsyncExitStack() as stack:
        if target.url:
            http = await stack.enter_async_context(httpx2.AsyncClient(headers=target.headers, timeout=PATIENCE))
            server = streamable_http_client(target.url, http_client=http)
        else:
            server = StdioServerParameters(
                command=target.command, args=list(target.arguments), env=target.environment, cwd=target.directory,
            )
        client = await stack.enter_async_context(Client(server, **options))
        yield Connection(client, events)


def plain(of):
    return of.model_dump(by_alias=True, mode="json", exclude_none=True)


class Connection:
    def __init__(self, client, events):
        self.client, self.events = client, events
        self.is_modern = client.protocol_version >= "2026-07-28"

    async def _checked(self, request):
        try:
            return await request
        except MCPError as error:
            raise Refused(error.error.code, error.error.message, error.error.data) from None

    @property
    def hello(self):
        client = self.client
        return {
            "version": client.protocol_version, "server": plain(client.server_info) if client.server_info else {},
            "instructions": client.instructions or "", "capabilities": plain(client.server_capabilities),
        }

    async def tools(self):
        return plain(await self._checked(self.client.list_tools()))["tools"]

    async def call(self, name, arguments, progress=None):
        more = {"progress_callback": progress} if progress else {}
        it = await self._checked(self.client.call_tool(name, arguments, **more))
        return Result(bool(it.is_error), it.structured_content, [plain(block) for block in it.content])

    async def resources(self):
        found, cursor = [], None
        while True:
            page = await self._checked(self.client.list_resources(cursor=cursor))
            found += [plain(it) for it in page.resources]
            cursor = page.next_cursor
            if not cursor:
                return found

    async def templates(self):
        return [plain(it) for it in (await self._checked(self.client.list_resource_templates())).resource_templates]

    async def read(self, uri):
        return plain(await self._checked(self.client.read_resource(uri)))["contents"]

    async def prompts(self):
        return [plain(it) for it in (await self._checked(self.client.list_prompts())).prompts]

    async def prompt(self, name, arguments):
        return plain(await self._checked(self.client.get_prompt(name, arguments)))["messages"]

    async def complete(self, kind, name, argument, value):
        if kind == "prompt":
            reference = types.PromptReference(type="ref/prompt", name=name)
        else:
            reference = types.ResourceTemplateReference(type="ref/resource", uri=name)
        done = await self._checked(self.client.complete(reference, {"name": argument, "value": value}))
        return done.completion.values

    @contextlib.asynccontextmanager
    async def watching(self, uris):
        if not self.is_modern:
            for uri in uris:
                await self._checked(self.client.subscribe_resource(uri))
            yield self.events
            return
        import asyncio

        async with self.client.listen(resource_subscriptions=uris, resources_list_changed=True) as stream:

            async def pump():
                async for event in stream:
                    if isinstance(event, ResourceUpdated):
                        self.events.put("updated", event.uri)
                    else:
                        self.events.put("list")

            task = asyncio.create_task(pump())
            try:
                yield self.events
            finally:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
