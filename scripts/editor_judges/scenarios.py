"""What a person does in an editor, and the expected results. Each scenario has its own files and its own editor.

Lines count from 1 and columns from 0. `editor` is a `Neovim` or an `Emacs`; both have the same operations.
"""
from editor_judges.ground import BOM, until


def marks(found):
    """The diagnostics as code, line, and marked text, in order."""
    return sorted((it["code"], it["line"], it["text"]) for it in found)


class Scene:
    """An editor on a project, and the checks. `shows` waits for marks, everything else is compared at once."""

    def __init__(self, checks, project, editor):
        self.checks, self.project, self.editor = checks, project, editor

    def file(self, name):
        return self.project.plans / name

    def shows(self, name, path, expected):
        """Exactly these diagnostics come, each as code, line and text."""
        expected = sorted(expected)
        try:
            until(name, lambda: marks(self.editor.diagnostics(path)) == expected)
            self.checks.that(name, True)
        except AssertionError:
            found = self.editor.diagnostics(path)
            self.checks.that(name, False, f"marked {marks(found)}, expected {expected}; messages {[it['message'] for it in found]}")

    def text(self, name, path, expected):
        """The buffer has this text, apart from a last line end, which not all editors show as text."""
        expected = expected.replace("\r\n", "\n").removeprefix(BOM).rstrip("\n")

        def found():
            return self.editor.text(path).replace("\r\n", "\n").removeprefix(BOM).rstrip("\n")

        try:
            until(name, lambda: found() == expected, seconds=20)
            self.checks.that(name, True)
        except AssertionError:
            self.checks.same(name, found(), expected)

    def bytes(self, name, path, expected):
        self.checks.same(name, path.read_bytes(), expected)

    def becomes(self, name, path, expected):
        """The file gets these bytes. The server or the editor may still be at work."""
        try:
            until(name, lambda: path.exists() and path.read_bytes() == expected, seconds=20)
        except AssertionError:
            pass
        self.bytes(name, path, expected)

    def status(self, name, step, expected):
        """Other commands report this status of a step, from the files and from the index."""
        plan = step.split(":")[0]
        listed = {it["id"]: it["status"] for it in self.project.json("list", plan)["steps"]}[step]
        self.checks.same(f"`planwatch list`: {name}", listed, expected)
        rows = self.project.json("sql", f"select status from steps where id = '{step}'")["rows"]
        self.checks.same(f"the index: {name}", [it["status"] for it in rows], [expected])


def typo(it):
    """A typo in a status is marked while it is typed, and the quick fix corrects it. Other commands do not see it."""
    path = it.file("shop/step-1.md")
    original = path.read_bytes()
    it.editor.open(path)
    it.editor.type_over(path, 2, 8, len("pending"), "pendng", stays=True)
    it.shows("a typo in a status is marked while it is typed", path, [("unknown-status", 2, "pendng")])
    it.bytes("nothing is written while text is typed", path, original)
    it.status("the typo is not saved", "shop:1", "pending")
    it.editor.escape()
    it.editor.act(path, 2, 9, "pending")
    it.text("the quick fix corrects the typo", path, original.decode())
    it.shows("its mark goes", path, [])
    it.editor.save(path)
    it.bytes("after the fix the file is what it was", path, original)


def unsaved(it):
    """Text that is not saved stays in the editor until it is saved."""
    path = it.file("shop/step-1.md")
    original = path.read_bytes()
    it.editor.open(path)
    other = it.file("shop/step-2.md")
    it.editor.open(other)
    it.editor.type_over(path, 2, 8, len("pending"), "completed")
    # When this mark has arrived, the server knows both texts.
    it.editor.type_over(other, 2, 8, len("pending"), "pendng")
    it.shows("the text of the second file is known", other, [("unknown-status", 2, "pendng")])
    it.status("not saved", "shop:1", "pending")
    it.checks.same("`planwatch next` goes by the files", it.project.json("next", "shop")["step"]["id"], "shop:1")
    it.checks.same("`planwatch check` goes by the files", it.project.json("check")["problems"], [])
    it.bytes("the file is not written", path, original)
    it.editor.save(path)
    it.becomes("saving writes it", path, original.replace(b"pending", b"completed"))
    it.status("saved", "shop:1", "completed")


def depends(it):
    """`depends` completes steps with their titles."""
    path = it.file("shop/step-2.md")
    it.editor.open(path)
    it.editor.type_over(path, 3, 10, 1, "")
    titles = ["Schema", "Checkout", "Billing"]

    def complete():
        it.editor.dismiss()
        return [f"{one['label']} {one['detail']}" for one in it.editor.complete(path, 3, 10)]

    # Just after its start, the server knows the steps of this plan only, and says that its list is incomplete.
    try:
        shown = until("all are offered", lambda: (all(title in str(found := complete()) for title in titles) and found), seconds=10)
    except AssertionError:
        shown = complete()
    for title in titles:
        it.checks.that(f"`depends` offers {title}", any(title in one for one in shown), shown)
    it.checks.that("a step is not offered to itself", not any("Cart" in one for one in shown), shown)
    it.editor.dismiss()
    it.editor.type_over(path, 3, 10, 0, "billing:")
    found = it.editor.complete(path, 3, 18)
    shown = [f"{one['label']} {one['detail']}" for one in found]
    it.checks.that("a plan's id is followed by its steps", any("Invoices" in one for one in shown), shown)
    chosen = next((one["label"] for one, text in zip(found, shown) if "Invoices" in text), None)
    if chosen is not None:
        it.editor.accept(chosen)
        expected = path.read_text().replace("depends: [1]", "depends: [billing:1]")
        it.text("choosing one inserts its id", path, expected)
        # The Steps list of the plan names another step.
        it.shows("and the id is known", path, [("dependencies-disagree", 3, "[billing:1]")])
    it.editor.dismiss()


def words(it):
    """Status words and keys are completed, also while the front matter cannot be read."""
    path = it.file("shop/step-2.md")
    it.editor.open(path)
    it.editor.type_over(path, 2, 8, len("pending"), "comp")
    found = [one["label"] for one in it.editor.complete(path, 2, 12)]
    it.checks.that("a status word is offered", "completed" in found, found)
    it.editor.accept("completed")
    expected = path.read_text().replace("status: pending", "status: completed")
    it.text("choosing it replaces what was typed", path, expected)
    it.editor.type_over(path, 3, 11, 1, "")
    until("broken text is marked", lambda: it.editor.diagnostics(path), lambda: it.editor.text(path))
    it.editor.type_over(path, 2, 8, len("completed"), "")
    found = [one["label"] for one in it.editor.complete(path, 2, 8)]
    it.checks.that("completion works in broken text", {"pending", "completed", "skipped"} <= set(found), found)
    it.editor.dismiss()


def definition(it):
    """Ids lead to their files, from the front matter and from the Steps list."""
    step, plan = it.file("shop/step-3.md"), it.file("shop/plan.md")
    it.editor.open(step)
    for name, place, expected in [
        ("a number in `depends`", (step, 4, 4), "shop/step-2.md"),
        ("an id of another plan", (step, 5, 6), "billing/step-1.md"),
        ("a step of the Steps list", (plan, 6, 4), "shop/step-1.md"),
        ("a dependency of the Steps list", (plan, 7, 25), "shop/step-1.md"),
    ]:
        it.editor.open(place[0])
        found = it.editor.definition(*place)[0].relative_to(it.project.plans).as_posix()
        it.checks.same(f"go to definition: {name}", found, expected)
    found = it.editor.references(step, 4, 4)
    it.checks.that("references name the files", {"plan.md", "step-3.md"} <= set(found), found)


def rename(it):
    """A new number for a step: its file and every place that names it, or nothing."""
    paths = [it.file(f"shop/{name}") for name in ["plan.md", "step-1.md", "step-2.md"]]
    for path in paths:
        it.editor.open(path)
    before = it.project.bytes()
    if not it.editor.renames_files:
        try:
            it.editor.rename(paths[2], 3, 10, "1.5")
            said = "nothing"
        except RuntimeError as error:
            said = str(error)
        it.checks.that("without file operations a rename names the command", "planwatch move" in said, said)
        for path in paths:
            it.text(f"and {path.name} is not touched", path, before[f"shop/{path.name}"].decode())
        it.checks.same("and no file", it.project.bytes(), before)
        return
    it.editor.rename(paths[2], 3, 10, "1.5")
    new = it.file("shop/step-1.5.md")
    until("the file is renamed", new.exists, lambda: (sorted(it.project.bytes()), it.editor.said()))
    expected = {
        "shop/plan.md": before["shop/plan.md"].replace(b"step-1", b"step-1.5"),
        "shop/step-1.5.md": before["shop/step-1.md"],
        "shop/step-2.md": before["shop/step-2.md"].replace(b"[1]", b"[1.5]"),
    }
    for name, content in expected.items():
        it.text(f"rename changes {name} in the editor", it.file(name), content.decode())
    it.editor.save(*(it.file(name) for name in expected if it.editor.is_modified(it.file(name))))
    kept = {name: content for name, content in before.items() if name not in ("shop/step-1.md", *expected)}
    it.checks.same("all files are as expected, byte for byte", it.project.bytes(), {**kept, **expected})
    it.checks.same("`planwatch check` finds nothing", it.project.json("check")["problems"], [])


def complete_step(it):
    """*Complete step* gives the bytes of `planwatch done`, whatever the line ends, and together with unsaved text."""
    for name, step, what in [
        ("shop/step-1.md", "shop:1", "with a comment"),
        ("billing/step-1.md", "billing:1", "with CRLF"),
        ("billing/step-2.md", "billing:2", "with a byte order mark and without a last line end"),
    ]:
        path = it.file(name)
        original = path.read_bytes()
        expected = it.project.after("done", step)[name]
        it.editor.open(path)
        it.editor.act(path, 2, 9, "Complete step")
        it.text(f"*Complete step* changes the text {what}", path, expected.decode())
        it.bytes("and not the file", path, original)
        it.editor.save(path)
        it.becomes(f"saved, it has the bytes of `planwatch done`, {what}", path, expected)
    path = it.file("shop/step-2.md")
    it.editor.open(path)
    it.editor.type_over(path, 5, 6, 0, " of goods")
    # The step that it waits for is completed and saved.
    expected = it.project.after("done", "shop:2")["shop/step-2.md"].replace(b"# Cart", b"# Cart of goods")
    it.editor.act(path, 5, 2, "Complete step")
    it.text("*Complete step* keeps what is typed and not saved", path, expected.decode())
    it.editor.save(path)
    it.becomes("and so does the file", path, expected)


def claimed(it):
    """A claimed step is completed by a command, which ends the claim."""
    path = it.file("shop/step-1.md")
    it.project.run("claim", "shop:1")
    it.editor.open(path)
    it.editor.act(path, 2, 9, "Complete step")

    def step():
        return it.project.json("list", "shop")["steps"][0]

    try:
        until("the claimed step is completed", lambda: step()["status"] == "completed", seconds=20)
    except AssertionError:
        pass
    found = step()
    it.checks.same("a claimed step is completed", (found["status"], found["claim"]), ("completed", None))
    it.checks.same("with one attempt", [(one["outcome"], one["by"]) for one in found["attempts"]], [("completed", "person")])
    it.editor.reload(path)
    it.text("the editor has the new text", path, path.read_text())


def others(it):
    """A change by another program updates the marks of an open file without a keystroke."""
    path, needed = it.file("shop/step-3.md"), it.file("billing/step-1.md")
    it.editor.open(path)
    it.shows("the open file has no problem", path, [])
    away = it.project.base / "away.md"
    needed.rename(away)
    it.shows("a deleted file is noticed without a keystroke", path, [("dependency-missing", 5, "billing:1")])
    away.rename(needed)
    it.shows("a restored file is noticed, too", path, [])
    it.editor.type_over(path, 4, 4, 1, "7")
    it.shows("the unsaved text in the editor is checked", path, [("dependency-missing", 4, "7")])
    (it.project.plans / "shop/step-7.md").write_text("# Later\n")
    it.shows("together with the files that other programs write", path, [])


def line_ends(it):
    """Typed and corrected text keeps the line ends and the byte order mark of its file."""
    path = it.file("billing/step-1.md")
    original = path.read_bytes()
    it.editor.open(path)
    it.editor.type_over(path, 2, 8, len("pending"), "pendng")
    it.shows("a typo in a file with CRLF is marked", path, [("unknown-status", 2, "pendng")])
    it.editor.act(path, 2, 9, "pending")
    it.text("and corrected", path, original.decode())
    it.editor.type_over(path, 4, 10, 0, " of May")
    it.editor.save(path)
    it.becomes("CRLF stays", path, original.replace(b"# Invoices", b"# Invoices of May"))
    path = it.file("billing/step-2.md")
    original = path.read_bytes()
    it.editor.open(path)
    it.editor.type_over(path, 2, 8, len("pending"), "pendng")
    it.shows("a typo in a file with a byte order mark is marked", path, [("unknown-status", 2, "pendng")])
    it.editor.act(path, 2, 9, "pending")
    it.text("and corrected, too", path, original.decode())
    it.editor.type_over(path, 5, 11, 0, " of May")
    it.editor.save(path)
    it.becomes("the byte order mark stays", path, original.replace(b"# Reminders", b"# Reminders of May"))


def positions(it):
    """Marks are at their place after characters that UTF-8 and UTF-16 count differently."""
    path = it.file("shop/step-2.md")
    it.editor.open(path)
    it.editor.type_over(path, 3, 10, 1, '"🚀ü", 77')
    until("there are marks", lambda: it.editor.diagnostics(path))
    found = [one for one in marks(it.editor.diagnostics(path)) if one[0] == "dependency-missing"]
    it.checks.that("the mark is on 77", ("dependency-missing", 3, "77") in found, found)


def silent(it):
    """A Markdown file outside of the plans has no marks."""
    path, readme = it.file("shop/step-1.md"), it.project.root / "README.md"
    it.editor.open(readme, is_plan=False)
    it.editor.open(path)
    it.editor.type_over(path, 2, 8, len("pending"), "pendng")
    it.shows("a file of a plan has marks", path, [("unknown-status", 2, "pendng")])
    it.checks.same("a file elsewhere has none", it.editor.diagnostics(readme), [])


def shown(it):
    """Hover, and where the editor has them, hints after dependencies and lenses above a step."""
    path = it.file("shop/step-2.md")
    it.editor.open(path)
    hover = it.editor.hover(path, 3, 10)
    it.checks.that("the hover of a dependency has its title and status", "Schema" in hover and "pending" in hover, hover)
    hover = it.editor.hover(path, 2, 2)
    it.checks.that("the hover of a key says what it means", len(hover) > len("status"), hover)
    if it.editor.renames_files:
        lenses = it.editor.lenses(path)
        it.checks.that("a lens says what the step waits for", any("waits for 1" in one for one in lenses), lenses)
        lenses = it.editor.lenses(it.file("shop/step-1.md"))
        it.checks.that("lenses of a ready step", {"start", "done", "claim"} <= set(lenses), lenses)
        if it.editor.is_new:
            hints = until("hints are shown", lambda: it.editor.hints(path), it.editor.said)
            it.checks.that("a hint has the status of a dependency", any(one["line"] == 3 and "pending" in one["label"] for one in hints), hints)


SMALL = [typo, depends, definition, rename, complete_step, others]
ALL = [*SMALL, unsaved, words, claimed, line_ends, positions, silent, shown]
