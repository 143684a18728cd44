"""Resources and their notifications, prompts, and completion."""
import asyncio
import os

from mcp_judges.sdk import Refused, connect

PLAN = "planwatch:///plans/fence-repair"


async def resources(connection, checks, project):
    found = await connection.resources()
    uris = {it["uri"] for it in found}
    checks.that("each plan is a resource", all(f"planwatch:///plans/{it['id']}" in uris for it in project.json("list")["plans"]), sorted(uris))
    checks.that("the briefing is a resource", "planwatch:///briefing" in uris, sorted(uris))
    wrong = [it for it in found if it.get("mimeType") != "text/markdown" or not it.get("name")]
    checks.that("resources have a name and a type", not wrong, wrong)
    templates = {it["uriTemplate"] for it in await connection.templates()}
    expected = {"planwatch:///plans/{plan}", "planwatch:///plans/{plan}/steps/{n}", "planwatch:///decisions/{topic}"}
    checks.that("templates of plans, steps, decisions", len(templates) >= 3, sorted(templates))
    checks.that("templates have the usual names", expected <= templates or len(templates) >= 3, sorted(templates))
    project.run("decide", "Fence colour", "Not green")
    for uri, word in (
        (PLAN, "Measurements: 11.2 m"), (f"{PLAN}/steps/2", "Jim rang back"), ("planwatch:///plans/ledger-migration/steps/2.5", "2.5"),
        ("planwatch:///decisions/fence%20colour", "Not green"), ("planwatch:///briefing", ""),
    ):
        contents = await connection.read(uri)
        text = contents[0].get("text", "")
        is_right = len(contents) == 1 and word in text and contents[0]["mimeType"] == "text/markdown" and contents[0]["uri"] == uri
        checks.that(f"read {uri}", is_right, "" if is_right else f"{contents}"[:700])
    whole = (await connection.read(f"{PLAN}/steps/2"))[0]["text"]
    checks.same("a step's resource is its file", whole, project.text("fence-repair/step-2.md"))
    for uri in (
        "planwatch:///plans/none", f"{PLAN}/steps/99", "planwatch:///plans/../../etc/passwd", "planwatch:///plans/%2e%2e/steps/1",
        "file:///etc/passwd", "planwatch:///", f"{PLAN}/steps/1/../../../x", "planwatch:///decisions/none",
    ):
        try:
            contents = await connection.read(uri)
            checks.that(f"missing {uri}", False, contents)
        except Refused as error:
            checks.that(f"missing {uri}", error.code in (-32602, -32002), error)


async def notifications(connection, checks, project):
    """After each change, a subscribed client is notified and reads the current content."""
    async with connection.watching([PLAN, f"{PLAN}/steps/4"]) as events:
        step = project.plans / "fence-repair" / "step-4.md"
        text = step.read_text().replace("- [ ] Cut the ivy", "- [x] Cut the ivy")
        save_as_editors_do(step, text)
        seen = await events.until(lambda it: it[0] == "updated" and it[1] in (PLAN, f"{PLAN}/steps/4"))
        checks.that("an edit by hand is reported", True, seen)
        now = (await connection.read(f"{PLAN}/steps/4"))[0]["text"]
        checks.same("the client reads the saved text", now, text)
        plan = project.plans / "fence-repair" / "plan.md"
        plan.write_text(plan.read_text().replace("budget: 1800", "budget: 1900"))
        seen = await events.until(lambda it: it == ("updated", PLAN))
        checks.that("an edit of the plan is reported", True, seen)
        new = project.plans / "brand-new"
        new.mkdir()
        (new / "plan.md").write_text("# Brand new\n")
        seen = await events.until(lambda it: it[0] == "list")
        checks.that("a new plan is reported", True, seen)
        checks.that("the new plan is listed", "planwatch:///plans/brand-new" in {it["uri"] for it in await connection.resources()})
        project.run("done", "fence-repair:4", "-m", "by a command")
        seen = await events.until(lambda it: it == ("updated", f"{PLAN}/steps/4"))
        checks.that("a change by a command is reported", True, seen)
        result = await connection.call("add_note", {"step": "fence-repair:4", "note": "by a tool"})
        seen = await events.until(lambda it: it == ("updated", f"{PLAN}/steps/4"))
        checks.that("a change by this client's own call is reported", not result.is_error, seen)


async def no_stale_answers(name, target, checks, project):
    """A client that caches answers for the permitted time still reads a saved change."""
    async with connect(name, target, is_cached=True) as connection:
        step = project.plans / "fence-repair" / "step-3.md"
        await connection.read(f"{PLAN}/steps/3")
        await connection.resources()
        step.write_text(step.read_text() + "\nRing on Monday.\n")
        # Answers may be cached for at most a second.
        await asyncio.sleep(1.1)
        text = (await connection.read(f"{PLAN}/steps/3"))[0]["text"]
        checks.that("a client with a cache reads a change after a second", "Ring on Monday" in text, text)


async def prompts(connection, checks):
    found = {it["name"]: it for it in await connection.prompts()}
    checks.same("the prompts", sorted(found), ["ps-execute", "ps-plan", "ps-plans"])
    checks.that("prompts have descriptions", all(it.get("description") for it in found.values()), found)
    for name, arguments in (("ps-plan", {"plan": "fence-repair"}), ("ps-plans", {}), ("ps-execute", {"plan": "fence-repair"})):
        known = {it["name"] for it in found.get(name, {}).get("arguments", [])}
        given = {key: it for key, it in arguments.items() if key in known}
        messages = await connection.prompt(name, given)
        text = messages[0]["content"].get("text", "")
        is_right = len(text) > 100 and "{{" not in text and (not given or "fence-repair" in text)
        checks.that(f"prompt {name} {given}", is_right, f"{len(text)} characters" if is_right else text[:500])
    for name, arguments in (("ps-nothing", {}), ("ps-execute", {"plna": "x"})):
        try:
            messages = await connection.prompt(name, arguments)
            # An unknown argument may be ignored; an unknown prompt must be refused.
            checks.that(f"prompt {name} {arguments}", name == "ps-execute", messages)
        except Refused as error:
            checks.that(f"prompt {name} {arguments}", error.code == -32602, error)


async def completion(connection, checks):
    found = {it["name"]: it for it in await connection.prompts()}
    for name, it in sorted(found.items()):
        if "plan" in {argument["name"] for argument in it.get("arguments", [])}:
            values = await connection.complete("prompt", name, "plan", "fe")
            checks.that(f"plans with this prefix, for {name}", {"feature-auth", "fence-repair"} <= set(values), values)
            values = await connection.complete("prompt", name, "plan", "")
            checks.that(f"all plans, for {name}", 5 <= len(values) <= 100, values)
    templates = [it["uriTemplate"] for it in await connection.templates()]
    template = next((it for it in templates if "{plan}" in it), None)
    if template:
        values = await connection.complete("resource", template, "plan", "fence")
        checks.same("plans for a template", values, ["fence-repair"])
    values = await connection.complete("prompt", "ps-execute", "none-such", "x")
    checks.same("an unknown argument has no values", values, [])


def save_as_editors_do(path, text):
    """Writes a temporary file and renames it over the file."""
    beside = path.with_name(f".{path.name}.swp~")
    beside.write_text(text)
    os.replace(beside, path)
