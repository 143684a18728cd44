"""Runs all parts with one Python client over one transport. scripts/mcp-clients starts it with that client's interpreter."""
import asyncio
import contextlib
import sys

from mcp_judges import asking, calls, live, long
from mcp_judges.ground import Checks, Daemon, Project, stopped_servers
from mcp_judges.sdk import Target, connect


@contextlib.contextmanager
def ground(binary, transport):
    """A project, and the target for connections to its server."""
    with Project(binary) as project, contextlib.ExitStack() as stack:
        if transport == "http":
            daemon = stack.enter_context(Daemon(project))
            yield project, Target(url=f"{daemon.url}/mcp", headers=daemon.headers())
        else:
            yield project, Target(command=binary, directory=str(project.root), environment=project.environment)


async def hello(name, transport, connection, checks):
    it = connection.hello
    expected = "2026-07-28" if name == "v2-auto" else "2025-11-25"
    checks.same("the version of the protocol", it["version"], expected)
    # In the stateless protocol the first answer contains the server's name.
    checks.that("the server's name and version", it["server"].get("name") == "planwatch" and it["server"].get("version", "")[:1].isdigit(), it["server"])
    size = len(it["instructions"].encode())
    checks.that("instructions of at most 2 kB", 200 < size <= 2048, f"{size} bytes")
    offered = it["capabilities"]
    missing = {"tools", "resources", "prompts", "completions"} - set(offered)
    checks.that("tools, resources, prompts and completion are offered", not missing, offered)


async def progress(connection, checks):
    received = []

    async def on_progress(done, total, message):
        received.append(done)

    for tool, arguments in (("list_plans", {}), ("recall", {"query": "ivy"})):
        result = await connection.call(tool, arguments, progress=on_progress)
        checks.that(f"{tool} with a progress token", not result.is_error, result.text[:200] if result.is_error else "")
    checks.that("progress only grows", received == sorted(set(received)), received)


async def at_once(connection, checks):
    """Many calls at the same time, fewer than the daemon's limit of connections. Each gets its own answer."""
    ids = ["fence-repair", "feature-auth", "ledger-migration", "docs-onboarding", "switch-energy-provider"]
    asked = [ids[n % len(ids)] for n in range(50)]
    answers = await asyncio.gather(*(connection.call("get_plan", {"plan": it}) for it in asked))
    checks.same("50 calls in flight", [it.structured["id"] for it in answers], asked)


async def cancelled(connection, checks):
    """A call that the client cancels does not end the connection. The answer arrives after the cancellation.

    The servers are stopped meanwhile, because the older client closes its connection if the answer arrives in the same
    iteration of its event loop as the cancellation.
    """
    for _ in range(5):
        with stopped_servers():
            task = asyncio.create_task(connection.call("briefing", {}))
            await asyncio.sleep(0.05)
            task.cancel()
            await asyncio.wait([task], timeout=1)
        with contextlib.suppress(asyncio.CancelledError):
            await task
    result = await connection.call("list_plans", {})
    checks.that("after cancelled calls", not result.is_error, result.text[:200] if result.is_error else "")


async def toolsets(name, target, checks, project):
    for arguments, expected in (
        (("--tools", "executor"), calls.EXECUTOR), (("--read-only",), calls.READING),
        (("--tools", "executor", "--read-only"), [it for it in calls.EXECUTOR if it in calls.READING]),
    ):
        async with connect(name, target.with_arguments(*arguments)) as connection:
            found = [it["name"] for it in await connection.tools()]
            checks.same(f"the tools of {' '.join(arguments)}", sorted(found), sorted(expected))
    async with connect(name, target.with_arguments("--read-only")) as connection:
        before = project.bytes()
        for tool in calls.WRITING:
            with contextlib.suppress(Exception):
                result = await connection.call(tool, {"plan": "fence-repair", "title": "x"})
                checks.that(f"--read-only has no {tool}", result.is_error, result.text)
        checks.same("--read-only changed no file", project.bytes(), before)


async def main(name, transport, binary, steps):
    checks = Checks(f"{name} {transport}")
    over_http = transport == "http"
    # Over HTTP there are no sessions, so the capabilities of an older client are not known during a call.
    is_legacy_http = over_http and name != "v2-auto"
    with ground(binary, transport) as (project, target):
        async with connect(name, target) as connection:
            with checks.part("hello"):
                await hello(name, transport, connection, checks)
            with checks.part("the list"):
                tools = await connection.tools()
                calls.list_is_sound(checks, tools, calls.READING + calls.WRITING)
                checks.same("a second list is identical", await connection.tools(), tools)
            with checks.part("refusals"):
                await calls.refusals(connection, checks, project)
            with checks.part("resources"):
                await live.resources(connection, checks, project)
            with checks.part("prompts"):
                await live.prompts(connection, checks)
            with checks.part("completion"):
                await live.completion(connection, checks)
            with checks.part("progress"):
                await progress(connection, checks)
            with checks.part("concurrent calls"):
                await at_once(connection, checks)
            with checks.part("cancelled calls"):
                await cancelled(connection, checks)
            await calls.all_tools(connection, checks, project)
            if not is_legacy_http:
                with checks.part("notifications"):
                    await live.notifications(connection, checks, project)
        with checks.part("no stale answers"):
            await live.no_stale_answers(name, target, checks, project)
        await asking.all_answers(name, target, checks, project, can_be_asked=not is_legacy_http)
        if not over_http:
            with checks.part("toolsets"):
                await toolsets(name, target, checks, project)
        if steps:
            project.add_long_plan("long-work", steps)
            async with connect(name, target) as connection:
                with checks.part(f"a plan of {steps} steps"):
                    await long.long_plan(connection, checks, steps)
    return checks.end()


if __name__ == "__main__":
    NAME, TRANSPORT, BINARY, STEPS = sys.argv[1:]
    sys.exit(asyncio.run(main(NAME, TRANSPORT, BINARY, int(STEPS))))
