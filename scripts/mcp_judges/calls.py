"""Calls every tool with realistic arguments on a copy of plans-example, and compares results with schemas and files."""
import json

import jsonschema

from mcp_judges.ground import describe
from mcp_judges.sdk import Refused

READING = ["list_plans", "get_plan", "get_step", "peek_next_step", "briefing", "recall", "get_decisions", "list_assets"]
WRITING = [
    "claim_next_step", "create_plan", "add_step", "update_step", "update_plan", "add_note", "restructure_plan",
    "confirm_gate", "delete_plan", "decide", "insight", "manage_script", "refine_draft",
]
EXECUTOR = [
    "get_plan", "get_step", "update_step", "add_step", "add_note", "recall", "get_decisions", "decide", "insight",
]
# 2,000 tokens.
SMALL = 8000


class Caller:
    """Calls tools and checks the requirements for every answer."""

    def __init__(self, connection, checks, schemas):
        self.connection, self.checks, self.schemas, self.called, self.unnamed = connection, checks, schemas, set(), set()

    async def __call__(self, tool, _limit=SMALL, **arguments):
        self.called.add(tool)
        name = f"{tool} {json.dumps(arguments)[:90]}"
        try:
            result = await self.connection.call(tool, arguments)
        except Exception as error:
            # Clients validate results, too.
            self.checks.that(name, False, describe(error))
            raise AssertionError(f"no result of {tool}") from None
        if result.is_error:
            self.checks.that(name, False, result.text)
            raise AssertionError(f"{tool} was refused: {result.text}")
        problem = self.problem(tool, result)
        if not problem and result.size > _limit:
            problem = f"{result.size} bytes"
        self.checks.that(name, not problem, problem or f"{result.size} bytes")
        return result.structured

    def problem(self, tool, result):
        if result.structured is None:
            return "no structured content"
        if json.loads(result.text) != result.structured:
            return "the text is not the structured content"
        schema = self.schemas[tool]
        try:
            jsonschema.Draft202012Validator(schema).validate(result.structured)
        except jsonschema.ValidationError as error:
            return f"{list(error.absolute_path)}: {error.message}"
        # The schema must contain every field, not only the required ones.
        self.unnamed |= {f"{tool}.{it}" for it in set(result.structured) - set(schema["properties"])}
        return None


def list_is_sound(checks, tools, expected):
    """Checks the list of tools: names, annotations, schemas, size."""
    checks.same("the tools", sorted(it["name"] for it in tools), sorted(expected))
    size = len(json.dumps({"tools": tools}, separators=(",", ":"), ensure_ascii=False).encode())
    checks.that("the list is at most 20 kB", size <= 20_000, f"{size} bytes")
    faults = []
    for tool in tools:
        name, hints = tool["name"], tool.get("annotations", {})
        missing = [it for it in ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint") if it not in hints]
        if missing:
            faults.append(f"{name}: no {missing}")
        if hints.get("readOnlyHint") != (name in READING):
            faults.append(f"{name}: readOnlyHint {hints.get('readOnlyHint')}")
        if hints.get("destructiveHint") != (name in ("restructure_plan", "delete_plan", "manage_script")):
            faults.append(f"{name}: destructiveHint {hints.get('destructiveHint')}")
        if hints.get("openWorldHint") is not False:
            faults.append(f"{name}: openWorldHint")
        if not (tool.get("title") or hints.get("title")) or not tool.get("description"):
            faults.append(f"{name}: no title or description")
        if len(tool.get("description", "").encode()) > 2048 or len(name) > 24:
            faults.append(f"{name}: too long")
        for kind in ("inputSchema", "outputSchema"):
            schema = tool.get(kind, {})
            if schema.get("type") != "object" or "properties" not in schema:
                faults.append(f"{name}: {kind} is no object with properties")
                continue
            jsonschema.Draft202012Validator.check_schema(schema)
            if kind == "outputSchema" and not schema.get("required"):
                faults.append(f"{name}: the result requires nothing")
            faults += [f"{name}: {kind}: {it}" for it in unportable(schema)]
    checks.that("annotations and schemas are complete and portable", not faults, "; ".join(faults))


def unportable(schema, place=""):
    """Keywords of JSON Schema that some clients do not support."""
    if isinstance(schema, dict):
        # The name of a property is not a keyword.
        for key, value in schema.items():
            if place.endswith("properties"):
                pass
            elif key in ("$ref", "$defs", "oneOf", "anyOf", "allOf"):
                yield f"{place}/{key}"
            elif key == "type" and isinstance(value, list):
                yield f"{place}/type is a list"
            elif key == "format":
                yield f"{place}/format {value}"
            yield from unportable(value, f"{place}/{key}")
    elif isinstance(schema, list):
        for nth, value in enumerate(schema):
            yield from unportable(value, f"{place}/{nth}")


async def all_tools(connection, checks, project):
    """Calls all tools except confirm_gate and delete_plan, which asking.py tests."""
    tools = await connection.tools()
    call = Caller(connection, checks, {it["name"]: it["outputSchema"] for it in tools})
    with checks.part("tools that read"):
        await reading(call, checks, project)
    with checks.part("a plan from creation to archive"):
        await working(call, checks, project)
    with checks.part("steps in another order"):
        await restructuring(call, checks, project)
    with checks.part("decisions, insights and scripts"):
        await knowledge(call, checks, project)
    with checks.part("a draft in passes"):
        await drafting(call, checks, project)
    missing = set(READING + WRITING) - call.called - {"confirm_gate", "delete_plan"}
    checks.that("every tool was called", not missing, sorted(missing))
    checks.that("schemas contain every field of a result", not call.unnamed, ", ".join(sorted(call.unnamed)))


async def reading(call, checks, project):
    before = project.bytes()
    plans = (await call("list_plans"))["plans"]
    ids = {it["id"] for it in plans}
    expected = {it["id"] for it in project.json("list")["plans"]}
    checks.same("list_plans returns the plans of `planwatch list`", ids, expected)
    await call("list_plans", status="all", query="fence")
    first = await call("list_plans", limit=2)
    checks.same("two plans and a cursor", (len(first["plans"]), bool(first.get("next_cursor"))), (2, True))
    rest = await call("list_plans", limit=200, cursor=first["next_cursor"])
    checks.same("the pages together are the list", [it["id"] for it in first["plans"] + rest["plans"]], [it["id"] for it in plans])
    found = await call("list_plans", title="Fence repair")
    checks.same("a plan by its title", [it["id"] for it in found["plans"]], ["fence-repair"])
    got = await call("get_plan", plan="fence-repair")
    checks.same("its steps in order", [it["id"] for it in got["steps"]], [f"fence-repair:{n}" for n in range(1, 6)])
    by_title = await call("get_plan", plan="Fence repair", detail="full", _limit=40_000)
    checks.same("a plan by its title, whole", (by_title["id"], "Measurements" in by_title["body"]), ("fence-repair", True))
    failed = await call("get_plan", plan="ledger-migration", status="completed")
    checks.that("steps of one status", all(it["status"] == "completed" for it in failed["steps"]), failed["steps"])
    step = await call("get_step", step="fence-repair:2")
    checks.same("the attempts of a step", len(step["attempts"]), 4)
    await call("get_step", step="ledger-migration:2.5")
    shown = await call("peek_next_step", plan="fence-repair")
    checks.same("peek_next_step returns the step of `planwatch next`", shown["step"]["id"], project.json("next", "fence-repair")["step"]["id"])
    await call("peek_next_step")
    await call("briefing")
    await call("briefing", days=1)
    hits = (await call("recall", query="ivy"))["hits"]
    checks.that("recall finds a word", any(it["id"].startswith("fence-repair") for it in hits), hits)
    await call("get_decisions")
    await call("get_decisions", list_topics=True)
    for kind in ("templates", "scripts", "prompts"):
        items = (await call("list_assets", kind=kind))["items"]
        for item in items[:1]:
            await call("list_assets", kind=kind, name=item["name"], _limit=40_000)
    checks.same("reading changed no file", project.bytes(), before)


async def working(call, checks, project):
    made = await call(
        "create_plan", title="Judged work", description="Made by a judge", steps=["One: begin", "Two: go on", "Three: end"],
        category="feature", priority="high", goals=["It is done"], success_criteria=["All steps are closed"], tags=["a", "b: c"],
    )
    plan = made["id"]
    checks.same("its id is the slug", plan, "judged-work")
    checks.that("its steps are created by an agent", "created_by: agent" in project.text(f"{plan}/step-1.md"), project.text(f"{plan}/step-1.md"))
    again = await call("create_plan", title="Judged work", description="Made by a judge, again", if_exists="update")
    checks.same("if_exists=update updates the plan", again["id"], plan)
    claimed = await call("claim_next_step", plan=plan, worker="judge", lease_seconds=600)
    step, claim = claimed["step"]["id"], claimed["claim"]["id"]
    checks.same("the first step is claimed", step, f"{plan}:1")
    checks.that("under the worker's name", "judge" in project.text(f"{plan}/step-1.md"), project.text(f"{plan}/step-1.md"))
    await call("update_step", step=step, metadata={"ticket": "A-1", "n": 3}, claim=claim)
    await call("update_step", step=step, metadata={"more": [1, 2]}, claim=claim)
    shown = await call("get_step", step=step)
    checks.same("metadata merges by key", shown["metadata"], {"ticket": "A-1", "n": 3, "more": [1, 2]})
    await call("update_step", step=step, status="completed", result="Done: \"quoted\"\nand a second line", claim=claim)
    shown = await call("get_step", step=step)
    checks.same("the result is stored", (shown["status"], shown["result"]), ("completed", 'Done: "quoted"\nand a second line'))
    added = await call("add_step", plan=plan, title="One and a half", description="Between\n\n- [ ] a box\n", after_step="1", depends=["1"])
    checks.same("a step between two", added["id"], f"{plan}:1.5")
    await call("add_step", plan=plan, description="# At the end\n\nWith a text", touches=["src/**"], verify=["true"], metadata={"k": "v"})
    await call("add_note", step=f"{plan}:2", note="Look at the first one", note_type="warning")
    await call("add_note", plan=plan, note="A remark on the plan")
    await call("update_step", step=f"{plan}:2", attempt_outcome="partial", attempt_notes="half of it")
    await call("update_step", step=f"{plan}:1.5", status="skipped", result="not needed")
    await call("update_step", step=f"{plan}:2", status="in_progress", worker="judge")
    await call("update_step", step=f"{plan}:2", status="failed", result="it broke", worker="judge")
    await call("update_step", step=f"{plan}:2", status="pending", worker="judge")
    await call("update_plan", plan=plan, priority="low", goals=["It is done", "and tested"], title="Judged work, renamed")
    got = await call("get_plan", plan=plan)
    checks.same("the plan is changed", (got["title"], got["priority"], len(got["goals"])), ("Judged work, renamed", "low", 2))
    await call("update_plan", plan=plan, status="abandoned")
    await call("update_plan", plan=plan, status="active")
    await call("update_plan", plan=plan, archived=True)
    checks.that("archived", (project.plans / "_archive" / plan).is_dir())
    await call("update_plan", plan=plan, archived=False)
    checks.that("unarchived", (project.plans / plan / "step-1.md").is_file())
    problems = [it for it in project.json("check", check=False)["problems"] if plan in it["path"] and it["severity"] == "error"]
    checks.same("`planwatch check` finds no error in it", problems, [])


async def restructuring(call, checks, project):
    plan = (await call("create_plan", title="To be restructured", steps=["A", "B", "C", "D"]))["id"]
    body = project.text(f"{plan}/step-2.md")
    await call("restructure_plan", plan=plan, op="replace", steps=["A", {"title": "B", "number": 2}, "New one"], dry_run=True)
    checks.same("dry_run changes nothing", (project.plans / plan / "step-4.md").is_file(), True)
    done = await call("restructure_plan", plan=plan, op="remove", steps=["4"])
    checks.same("one step less", (done["steps_before"], done["steps_after"]), (4, 3))
    archived = list((project.plans / "_archive").rglob("*step-4*"))
    checks.that("the removed step is archived", bool(archived), archived)
    await call("restructure_plan", plan=plan, op="consolidate", steps=["1", "2"], task="A and B")
    checks.that("the consolidated step is archived", any(it.read_text() == body for it in (project.plans / "_archive").rglob("*.md")))
    got = await call("get_plan", plan=plan)
    await call("restructure_plan", plan=plan, op="replace", steps=["First of all"] + [it["title"] for it in got["steps"]])
    got = await call("get_plan", plan=plan)
    checks.same("the new list", got["steps"][0]["title"], "First of all")


async def knowledge(call, checks, project):
    first = await call("decide", topic="Storage", decision="SQLite", reasoning="one file")
    second = await call("decide", topic="storage", decision="Files", supersedes=first["id"], metadata={"by": "judge"})
    found = (await call("get_decisions", topic="STORAGE"))["decisions"]
    checks.same("decisions of a topic, newest first", [it["id"] for it in found][:1], [second["id"]])
    await call("insight", title="Ivy grows back", text="Cut it twice.", plan="fence-repair", tags=["garden"])
    hits = (await call("recall", query="\"grows back\""))["hits"]
    checks.that("an insight is found", any(it["kind"] == "insight" for it in hits), hits)
    await call("manage_script", action="add", name="probe", command="touch ran-by-mistake", description="A probe")
    items = (await call("list_assets", kind="scripts"))["items"]
    checks.that("a script is listed", any(it["name"] == "probe" for it in items), items)
    await call("manage_script", action="delete", name="probe")
    checks.that("the script was not run", not list(project.root.rglob("ran-by-mistake")))


async def drafting(call, checks, project):
    """The agent answers each prompt, here always with the same text, until the draft is complete."""
    begun = await call("refine_draft", plan="Drafted by a judge", conversation="We want a garden shed.", _limit=60_000)
    checks.that("a handle and a prompt", bool(begun.get("draft")) and bool(begun.get("prompt")), begun)
    text = "# Drafted by a judge\n\nA shed.\n\n## Steps\n\n- step-1: Measure the place\n- step-2: Buy the wood\n- step-3: Build it\n"
    state = begun
    for _ in range(12):
        if not state.get("prompt"):
            break
        state = await call("refine_draft", draft=state["draft"], output=text, _limit=60_000)
    checks.that("the draft ends", not state.get("prompt"), state)


async def refusals(connection, checks, project):
    """A wrong call is refused with a message and a hint that help to correct it."""
    before = project.bytes()
    cases = [
        ("get_plan", {"plan": "fence-repiar"}, "fence-repair"),
        ("get_plan", {"plan": "nothing-like-it-at-all"}, "list_plans"),
        ("get_plan", {}, "plan"),
        ("get_plan", {"plan": "fence-repair", "detail": "everything"}, "outline"),
        ("get_plan", {"plan": "fence-repair", "detial": "full"}, "detail"),
        ("get_plan", {"plan": "fence-repair", "cursor": "no such"}, "cursor"),
        ("get_plan", {"plan": "../../etc/passwd"}, None),
        ("get_plan", {"plan": {"a": 1}}, "plan"),
        ("get_step", {"step": "fence-repair:99"}, None),
        ("get_step", {"step": "fence-repair"}, "get_plan"),
        ("list_plans", {"limit": -1}, "limit"),
        ("list_plans", {"limit": 1.5}, "limit"),
        ("list_plans", {"status": "someday"}, "completed"),
        ("update_step", {"step": "fence-repair:4", "status": "finnished"}, None),
        ("update_step", {"step": "fence-repair:4"}, None),
        ("update_step", {"step": "fence-repair:5", "status": "completed"}, None),
        ("update_step", {"step": "fence-repair:4", "status": "completed", "claim": "none-such"}, None),
        ("add_step", {"plan": "fence-repair"}, "title"),
        ("add_step", {"plan": "fence-repair", "title": "x", "after_step": "77"}, None),
        ("add_note", {"note": "x"}, "step"),
        ("update_plan", {"plan": "fence-repair"}, None),
        ("create_plan", {"title": "Fence repair"}, "if_exists"),
        ("restructure_plan", {"plan": "fence-repair", "op": "remove", "steps": []}, None),
        ("restructure_plan", {"plan": "fence-repair", "op": "consolidate", "steps": ["3", "4"]}, "task"),
        ("list_assets", {"kind": "assets"}, "templates"),
        ("recall", {"query": "x", "kind": "file"}, None),
        ("decide", {"topic": "x"}, "decision"),
        ("manage_script", {"action": "add", "name": "x"}, "command"),
        ("refine_draft", {}, None),
        ("refine_draft", {"draft": "no-such", "output": "x"}, None),
    ]
    for tool, arguments, word in cases:
        name = f"refused: {tool} {json.dumps(arguments)}"
        try:
            result = await connection.call(tool, arguments)
        except Exception as error:
            checks.that(name, False, describe(error))
            continue
        if not result.is_error:
            checks.that(name, False, f"it was not refused: {result.text[:300]}")
            continue
        error = result.error()
        shown = f"{error.get('message')} {error.get('hint')}"
        fault = None
        if not error.get("code") or not error.get("message"):
            fault = "no code or no message"
        elif not error.get("hint"):
            fault = f"no hint: {error}"
        elif word and word not in shown:
            fault = f"`{word}` is missing: {error}"
        elif result.size > 3000:
            fault = f"{result.size} bytes"
        checks.that(name, not fault, fault or shown)
    for tool in ("get_plam", "", "constructor", "a" * 5000):
        try:
            result = await connection.call(tool, {})
            checks.that(f"unknown tool `{tool[:20]}`", False, result.text[:300])
        except Refused as error:
            checks.that(f"unknown tool `{tool[:20]}`", error.code == -32602 and len(error.message) < 3000, f"{error}"[:300])
    checks.same("no refusal changed a file", project.bytes(), before)
