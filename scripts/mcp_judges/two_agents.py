"""Two agents and a person work on one plan: each step is completed once, no edit is lost, and every change is reported.

One agent works over stdio, the other over a daemon's HTTP (MCP, or plain HTTP with `--rest`), both with the public
Python client. The person edits files. Two more clients receive the changes: one of the daemon's event stream, one over MCP.
"""
import asyncio
import contextlib
import json
import re
import sys
import threading
import time
import urllib.request

from mcp_judges.ground import PATIENCE, Checks, Daemon, Project
from mcp_judges.person import Person
from mcp_judges.sdk import Target, connect

PLAN = "together"
# Blocked steps, which are never completed. Agents add notes to them while the person edits them.
HOT, IN_PLACE = 100_001, 100_002


def make(project, steps):
    plan = project.plans / PLAN
    plan.mkdir()
    (plan / "plan.md").write_text("---\nstatus: active\n---\n\n# Work done together\n\nThe text of the plan.\n")
    for n in range(1, steps + 1):
        (plan / f"step-{n}.md").write_text(f"---\ndepends: []\n---\n\n# Part {n}\n\nDo part {n}.\n")
    for n in (HOT, IN_PLACE):
        (plan / f"step-{n}.md").write_text("---\nstatus: blocked\ndepends: []\n---\n\n# Waits\n\nA text.\n")
    return plan


class Log:
    """The acknowledged operations of the agents."""

    def __init__(self):
        self.claimed, self.done, self.notes, self.metadata, self.added, self.faults = [], {}, [], [], [], []


class Tools:
    """An agent's operations over MCP."""

    def __init__(self, connection):
        self.connection = connection

    async def call(self, tool, **arguments):
        result = await self.connection.call(tool, arguments)
        if result.is_error:
            raise AssertionError(f"{tool} {arguments}: {result.text[:400]}")
        return result.structured

    async def claim(self, name):
        return await self.call("claim_next_step", plan=PLAN, worker=name, lease_seconds=3600)

    async def done(self, step, claim, text, name):
        await self.call("update_step", step=step, status="completed", result=text, claim=claim, worker=name)

    async def note(self, step, text):
        await self.call("add_note", step=step, note=text)

    async def metadata(self, step, key):
        await self.call("update_step", step=step, metadata={key: True})

    async def add(self, title, after):
        return (await self.call("add_step", plan=PLAN, title=title, after_step=after, depends=[]))["id"]


class Rest:
    """An agent's operations over plain HTTP."""

    def __init__(self, daemon):
        self.daemon = daemon

    async def ask(self, *arguments):
        return await asyncio.to_thread(self.daemon.ask, *arguments)

    async def claim(self, _):
        try:
            it = await self.ask(f"/api/plans/{PLAN}/next-step")
        except urllib.error.HTTPError as error:
            return {"state": json.loads(error.read()).get("state", "blocked")}
        if it["status"] != "next":
            return {"state": it["status"]}
        return {"state": "next", "step": {"id": it["step_id"]}, "claim": {"id": None}}

    async def done(self, step, _, text, __):
        await self.ask(f"/api/steps/{step}", "PATCH", {"status": "completed", "result": text})

    async def note(self, step, text):
        await self.ask(f"/api/steps/{step}/notes", "POST", {"text": text})

    async def metadata(self, step, key):
        await self.ask(f"/api/steps/{step}", "PATCH", {"metadata": {key: True}})

    async def add(self, title, _):
        return (await self.ask(f"/api/plans/{PLAN}/steps", "POST", {"description": title, "depends": []}))["id"]


async def agent(name, operations, log):
    """Claims and completes steps until none is ready."""
    nth = 0
    while True:
        claimed = await operations.claim(name)
        if "claim" not in claimed:
            return claimed["state"]
        step, nth = claimed["step"]["id"], nth + 1
        log.claimed.append((step, name))
        with noted(log):
            await operations.note(f"{PLAN}:{HOT}", f"hot {name}-{nth}.")
            log.notes.append((HOT, f"hot {name}-{nth}."))
        if nth % 3 == 0:
            with noted(log):
                await operations.note(f"{PLAN}:{IN_PLACE}", f"in place {name}-{nth}.")
                log.notes.append((IN_PLACE, f"in place {name}-{nth}."))
        if nth % 4 == 0:
            with noted(log):
                await operations.metadata(f"{PLAN}:{HOT}", f"{name}_{nth}")
                log.metadata.append(f"{name}_{nth}")
        if nth % 15 == 0:
            with noted(log):
                log.added.append(await operations.add(f"Found by {name} {nth}", step.split(":")[1]))
        with noted(log):
            await operations.done(step, claimed["claim"]["id"], f"{name} did {step}.", name)
            log.done.setdefault(step, []).append(name)


@contextlib.contextmanager
def noted(log):
    try:
        yield
    except Exception as error:
        log.faults.append(repr(error)[:500])


class Stream(threading.Thread):
    """A client of the daemon's event stream."""

    def __init__(self, daemon):
        super().__init__(daemon=True)
        self.events, self.ids, self.fault = [], [], None
        request = urllib.request.Request(f"{daemon.url}/api/events", headers=daemon.headers())
        self.answer = urllib.request.urlopen(request, timeout=PATIENCE)

    def run(self):
        data = []
        try:
            for line in self.answer:
                line = line.decode().rstrip("\n")
                if line.startswith("id:"):
                    self.ids.append(int(line[3:]))
                elif line.startswith("data:"):
                    data.append(line[5:])
                elif not line and data:
                    self.events.append(json.loads("\n".join(data)))
                    data = []
        except Exception as error:
            self.fault = repr(error)

    def statuses(self):
        """The reported statuses of each step, in order."""
        statuses = {}
        for it in list(self.events):
            if it.get("event") == "status" and it.get("plan") == PLAN:
                statuses.setdefault(it["id"], []).append(it["new"])
            elif it.get("event") == "added" and it.get("plan") == PLAN:
                # A step that is added and completed in quick succession is reported once, as completed.
                statuses.setdefault(it["id"], []).extend([it["new"]] if it["new"] == "completed" else [])
        return statuses


async def listen(target, name, seen, ready, over):
    """A client that subscribes to the plan over MCP."""
    uri = f"planwatch:///plans/{PLAN}"
    async with connect(name, target) as connection, connection.watching([uri]) as events:
        ready.set()
        while not over.is_set():
            with contextlib.suppress(AssertionError):
                await events.until(lambda it: it == ("updated", uri), seconds=1)
                seen.append(time.monotonic())


async def main(binary, steps, is_rest):
    checks = Checks("two agents")
    with Project(binary, "planwatch-two") as project:
        make(project, steps)
        with Daemon(project) as daemon:
            stdio = Target(command=binary, directory=str(project.root), environment=project.environment)
            http = Target(url=f"{daemon.url}/mcp", headers=daemon.headers())
            stream, log, begun = Stream(daemon), Log(), time.monotonic()
            stream.start()
            seen, ready, over = [], asyncio.Event(), asyncio.Event()
            listening = None
            if not is_rest:
                listening = asyncio.create_task(listen(http, "v2-auto", seen, ready, over))
                began = asyncio.create_task(ready.wait())
                await asyncio.wait([listening, began], timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
            person = Person(project.plans / PLAN, 5, IN_PLACE, HOT)
            person.start()
            async with contextlib.AsyncExitStack() as stack:
                first = Tools(await stack.enter_async_context(connect("v2-auto", stdio)))
                second = Rest(daemon) if is_rest else Tools(await stack.enter_async_context(connect("v2-auto", http)))
                await work(first, second, log, person)
            took = time.monotonic() - begun
            final = project.json("show", PLAN, "--no-index")
            states = {it["id"]: it["status"] for it in final["steps"]}
            await settle(stream, states)
            over.set()
            if listening:
                with checks.part("subscription over MCP"):
                    await listening
                checks.that("the subscribed MCP client was notified", seen, f"{len(seen)} times")
            check_files(checks, project, log, person, final, took)
            check_stream(checks, stream, states, person)
    return checks.end()


async def work(first, second, log, person):
    """Runs both agents until no step is ready, stops the person, and runs the agents again for the steps added last."""
    await asyncio.gather(agent("ann", first, log), agent("bob", second, log))
    person.over.set()
    await asyncio.to_thread(person.join)
    await asyncio.gather(agent("ann", first, log), agent("bob", second, log))


async def settle(stream, states):
    """Waits until the stream has reported the last status of every step."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        reported = stream.statuses()
        if all(reported.get(step, [None])[-1:] == [state] for step, state in states.items() if state == "completed"):
            return
        await asyncio.sleep(0.05)


def check_files(checks, project, log, person, final, took):
    plan = project.plans / PLAN
    checks.same("no agent was refused or failed", log.faults[:3], [])
    checks.same("the person had no failures", person.faults[:3], [])
    by_hand = {f"{PLAN}:{it.removeprefix('step-').removesuffix('.md')}" for it in person.completed}
    claimed = [step for step, _ in log.claimed]
    twice = sorted({it for it in claimed if claimed.count(it) > 1})
    checks.same("no step was claimed twice", twice, [])
    checks.same("no step completed by the person was claimed", sorted(set(claimed) & by_hand), [])
    ids = {it["id"] for it in final["steps"]}
    expected = ids - {f"{PLAN}:{HOT}", f"{PLAN}:{IN_PLACE}"}
    names = {name: sum(by == name for _, by in log.claimed) for name in ("ann", "bob")}
    open_steps = sorted(it["id"] for it in final["steps"] if it["id"] in expected and it["status"] != "completed")
    checks.same("every step is completed", open_steps, [])
    checks.that("each by an agent or by the person", set(log.done) | by_hand == expected, f"{len(expected)} steps in {took:.1f} s, {names}, by hand {len(by_hand)}")
    checks.that("both agents worked", all(names.values()), names)
    wrong = []
    for step, by in log.done.items():
        text = (plan / f"step-{step.split(':')[1]}.md").read_text()
        if text.count("outcome: completed") != 1 or f"{by[0]} did {step}." not in text or len(by) != 1:
            wrong.append(step)
    checks.same("each step has one result, from its agent", wrong, [])
    hot, in_place = project.text(f"{PLAN}/step-{HOT}.md"), project.text(f"{PLAN}/step-{IN_PLACE}.md")
    missing = [text for number, text in log.notes if number == HOT and text not in hot]
    checks.that("each note added during the person's saves is there", len(missing) <= person.unlucky, missing[:5])
    metadata = project.json("show", f"{PLAN}:{HOT}", "--no-index")["metadata"]
    missing = [it for it in log.metadata if it not in metadata]
    checks.that("each key of metadata is there", len(missing) <= person.unlucky, missing[:5])
    missing = [nth for nth, path in person.lines.items() if f"Line {nth} of the person.\n" not in path.read_text()]
    # A save that collides again when planwatch repeats its write is stored in `displaced` and reported.
    stored = "".join(it.read_text() for it in (project.plans / ".planwatch" / "displaced").glob("kept-*"))
    lost = [nth for nth in missing if f"Line {nth} of the person.\n" not in stored]
    places = {person.lines[nth].name for nth in lost}
    checks.that("each line of the person is there, or stored", not lost, f"{len(person.lines)} lines, {len(missing)} stored, {person.saves}; lost {lost[:5]} {places}")
    taken = [text for number, text in log.notes if number == IN_PLACE and text not in in_place]
    in_place_notes = sum(number == IN_PLACE for number, _ in log.notes)
    checks.that("notes removed by saves in place", True, f"{len(taken)} of {in_place_notes}, as no program can prevent")
    checks.same("the steps that agents added are there", sorted(set(log.added) - ids), [])
    added = {f"{PLAN}:{it.removeprefix('step-').removesuffix('.md')}" for it in person.added}
    checks.same("the steps that the person added are there", sorted(added - ids), [])
    problems = [it for it in project.json("check", check=False)["problems"] if it["severity"] == "error"]
    checks.same("`planwatch check` finds no error", problems, [])
    with_index = project.json("show", PLAN)
    checks.that("the index matches the files", with_index == final)
    left = [it.name for it in plan.iterdir() if not re.fullmatch(r"plan\.md|step-[0-9.]+\.md", it.name)]
    checks.same("no temporary files are left", left, [])


def check_stream(checks, stream, states, person):
    checks.same("the stream had no failure", stream.fault, None)
    gaps = [(one, other) for one, other in zip(stream.ids, stream.ids[1:]) if other <= one]
    checks.same("its event ids grow", gaps[:3], [])
    reported = stream.statuses()
    unseen = sorted(step for step, state in states.items() if state == "completed" and reported.get(step, [None])[-1:] != ["completed"])
    checks.that("it reported each completion", not unseen, f"{len(stream.events)} events; unseen {unseen[:5]}")
    # A save of the person may have briefly replaced a completed step with an old text, and the stream may have reported that.
    torn = {f"{PLAN}:{it.removeprefix('step-').removesuffix('.md')}" for it in person.taken_back}
    twice = {step: statuses for step, statuses in reported.items() if statuses.count("completed") > 1 and step not in torn}
    checks.that("it reported each completion once", not twice, dict(list(twice.items())[:5]))
    resets = [it for it in stream.events if it.get("kind") == "reset"]
    checks.same("it sent no reset", resets[:1], [])


if __name__ == "__main__":
    BINARY, STEPS, REST = sys.argv[1:]
    sys.exit(asyncio.run(main(BINARY, int(STEPS), REST == "rest")))
