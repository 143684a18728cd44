"""Deletions and confirmations: accepted, sent without the checkbox, declined, cancelled, or without a person to ask."""
import shutil

from mcp_judges.sdk import Person, connect

ANSWERS = ["accept", "untick", "decline", "cancel", None]


def prepare(project):
    """Creates, for each answer, a plan to delete and a step that needs a confirmation."""
    for answer in ANSWERS:
        shutil.copytree(project.plans / "fence-repair", project.plans / f"delete-{answer}")
        # The copied ids in the front matter would refer to the original plan.
        for path in (project.plans / f"delete-{answer}").glob("step-*.md"):
            path.write_text(path.read_text().replace("id: fence-repair:", f"id: delete-{answer}:"))
        plan = project.plans / f"gate-{answer}"
        plan.mkdir()
        (plan / "plan.md").write_text(f"# Gate {answer}\n")
        (plan / "step-1.md").write_text("---\nconfirm: required\n---\n\n# Behind a gate\n")


async def all_answers(name, target, checks, project, can_be_asked=True):
    """`can_be_asked` is false if the transport does not pass on the capabilities of an older client."""
    prepare(project)
    for answer in ANSWERS:
        with checks.part(f"the person: {answer or 'cannot be asked'}"):
            await one_answer(name, target, checks, project, answer, can_be_asked)


async def one_answer(name, target, checks, project, answer, can_be_asked):
    person = Person(answer) if answer else None
    is_asked = person is not None and can_be_asked
    async with connect(name, target, person=person) as connection:
        if person is None:
            await arguments_do_not_confirm(connection, checks, project)
        plan, gate = f"delete-{answer}", f"gate-{answer}"
        before = project.bytes()
        deleted = await connection.call("delete_plan", {"plan": plan})
        confirmed = await connection.call("confirm_gate", {"step": f"{gate}:1"})
        label = answer or "absent"
        if not is_asked:
            for result, word in ((deleted, "planwatch remove"), (confirmed, "planwatch confirm")):
                hint = result.error().get("hint", "") if result.is_error else ""
                checks.that(f"{label}: the hint contains the command for the person", word in hint, result.text)
            checks.same(f"{label}: nothing was changed", project.bytes(), before)
            return
        checks.same(f"{label}: the person was asked twice", len(person.asked), 2)
        checks.that(f"{label}: each request names its plan or step", plan in person.asked[0]["message"] and f"{gate}:1" in person.asked[1]["message"], person.asked)
        if answer == "accept":
            checks.that("accept: both succeeded", not deleted.is_error and not confirmed.is_error, f"{deleted.text} {confirmed.text}")
            checks.that("accept: the plan is in the archive", not (project.plans / plan).exists() and bool(list((project.plans / "_archive" / plan).rglob("plan.md"))))
            text = project.text(f"{gate}/step-1.md")
            checks.that("accept: the confirmation has the person's name and note", "by: person" in text and "confirmed in a test" in text, text)
            again = await connection.call("confirm_gate", {"step": f"{gate}:1"})
            checks.that("accept: a confirmed step causes no further request", len(person.asked) == 2, again.text)
        else:
            states = [None if it.is_error else it.structured["state"] for it in (deleted, confirmed)]
            checks.same(f"{label}: the result is `declined`", states, ["declined", "declined"])
            checks.same(f"{label}: nothing was changed", project.bytes(), before)


async def arguments_do_not_confirm(connection, checks, project):
    before = project.bytes()
    for tool, arguments in (
        ("delete_plan", {"plan": "delete-None", "confirm": True}),
        ("delete_plan", {"plan": "delete-None", "yes": True}),
        ("confirm_gate", {"step": "gate-None:1", "confirm": True}),
        ("update_step", {"step": "gate-None:1", "metadata": {"confirmed": True}, "status": "completed"}),
        ("update_step", {"step": "gate-None:1", "status": "in_progress"}),
        ("claim_next_step", {"plan": "gate-None"}),
    ):
        result = await connection.call(tool, arguments)
        is_closed = result.is_error or result.structured.get("state") not in ("next", "done")
        checks.that(f"arguments do not confirm: {tool} {arguments}", is_closed, result.text)
    checks.same("none of these calls changed a file", project.bytes(), before)
