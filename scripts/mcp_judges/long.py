"""A plan of 10,000 steps: default answers stay below 2,000 tokens, and the pages contain every step once."""
import time

from mcp_judges.calls import SMALL, Caller
from mcp_judges.ground import PATIENCE


async def long_plan(connection, checks, steps):
    tools = await connection.tools()
    call = Caller(connection, checks, {it["name"]: it["outputSchema"] for it in tools})
    plan = "long-work"
    for tool, arguments in (
        ("list_plans", {}), ("get_plan", {"plan": plan}), ("get_plan", {"plan": "Long work with"}), ("get_plan", {"plan": plan, "status": "ready"}),
        ("get_step", {"step": f"{plan}:{steps // 2}"}), ("peek_next_step", {"plan": plan}), ("peek_next_step", {}), ("briefing", {}),
        ("restructure_plan", {"plan": plan, "op": "replace", "steps": [f"{n}" for n in range(1, 40)], "dry_run": True}),
        ("recall", {"query": "carefully"}), ("claim_next_step", {"plan": plan, "worker": "judge"}),
        ("update_step", {"step": f"{plan}:{steps}", "status": "skipped", "result": "too many"}),
        ("add_step", {"plan": plan, "title": "One more", "after_step": str(steps // 2)}),
        ("add_note", {"plan": plan, "note": "long"}), ("update_plan", {"plan": plan, "priority": "low"}),
        ("restructure_plan", {"plan": plan, "op": "remove", "steps": [str(steps - 1)]}),
    ):
        begun = time.monotonic()
        with_limit = await call(tool, **arguments)
        took = time.monotonic() - begun
        # This does not measure speed; it only finds calls that hang.
        checks.that(f"{tool} does not hang", took < PATIENCE and with_limit is not None, f"{took:.2f} s")
    await pages(connection, checks, plan, steps)


async def pages(connection, checks, plan, steps):
    seen, cursor, calls, largest = [], None, 0, 0
    while calls < steps:
        arguments = {"plan": plan, "limit": 500} | ({"cursor": cursor} if cursor else {})
        result = await connection.call("get_plan", arguments)
        if result.is_error:
            checks.that("the next page", False, result.text)
            return
        seen += [it["id"] for it in result.structured["steps"]]
        calls, largest = calls + 1, max(largest, result.size)
        cursor = result.structured.get("next_cursor")
        if not cursor:
            break
    # One step was added in the middle, and one was removed.
    checks.same("the pages contain every step once", (len(seen), len(set(seen))), (steps, steps))
    checks.that("pages with a limit of 500", largest < 50_000, f"{calls} pages, the largest {largest} bytes")
    small, cursor = 0, None
    for _ in range(5):
        arguments = {"plan": plan} | ({"cursor": cursor} if cursor else {})
        result = await connection.call("get_plan", arguments)
        small, cursor = max(small, result.size), result.structured.get("next_cursor")
    checks.that("default pages are small", small <= SMALL, f"{small} bytes")
