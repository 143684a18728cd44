"""G4: a week of a team, read back from its history; and what 500 branches cost.

Five people work on four branches of one repository and merge them. Each records what a command did, derived from the command and from
the step before it, never from the history. At the end, `planwatch log --json` must report exactly these changes for each commit: nothing
missing, nothing twice, nothing else. A status that is reported for a merge must be the value that the merge chose from its two sides,
after both had changed it. The timeline of each step must end in its status.
"""
import collections
import json
import random
import re
import statistics
import subprocess
import tempfile
import time

from git_trials_parts.week import BRANCHES, PEOPLE, STATUS, Week

DEPENDS = re.compile(r"^depends:(( \[.*)|(\n  - .*)+)$", re.M)


class Story(Week):
    def __init__(self, binary, root, seed):
        self.expected = collections.Counter()
        self.merge_changes = 0
        super().__init__(binary, root, seed, True)

    def environment(self, by):
        environment = super().environment(by)
        at = environment["PLANWATCH_NOW"]
        return {**environment, "GIT_AUTHOR_DATE": at, "GIT_COMMITTER_DATE": at}

    def text(self, path, number):
        return (path / "plans" / "auth" / f"step-{number}.md").read_text()

    def expect(self, subject, step, what, **values):
        known = {key: value for key, value in values.items() if value is not None}
        self.expected[event(subject, step, what, known)] += 1

    def work(self, branch, by):
        path, steps = self.path(branch), self.steps(self.path(branch))
        number, token = self.random.choice(steps), self.token()
        step, subject = f"auth:{number}", f"commit-{token}"
        status = STATUS.search(self.text(path, number)).group(1)
        is_closed = status == "completed"
        kinds = ["reopen"] if is_closed else ["done"] * 4 + ["fail", "start", "claim", "release", "move", "remove"]
        kind = self.random.choice(kinds + ["note", "title", "text", "tag", "depends", "add"])
        others = [it for it in steps if it != number]
        if kind == "remove" and len(steps) < 6:
            return
        tag = f"tag-{token}"
        words = {
            "done": ["done", step, "-m", token],
            "fail": ["fail", step, "-m", token],
            "reopen": ["reopen", step, "-m", token],
            "start": ["start", step],
            "claim": ["claim", step],
            "release": ["release", step],
            "note": ["note", step, token],
            "title": ["set", step, "title", token],
            "tag": ["set", step, "tags+=" + tag],
            "depends": ["set", step, "depends+=" + self.random.choice(others)],
            "add": ["add", "auth", token, "--after", number],
            "move": ["move", step, "--after", self.random.choice(others)],
            "remove": ["remove", step, "--force"],
        }.get(kind)
        before, was = self.text(path, number), self.depends(path, by, step) if kind == "depends" else []
        all_depends = self.all_depends(path)
        if words is None:
            with (path / "plans" / "auth" / f"step-{number}.md").open("a") as file:
                file.write(f"\nMore about {token}.\n")
            answer = {}
        else:
            ran = self.planwatch(path, by, *words, "--json")
            # A refusal changes nothing.
            if ran.returncode or not self.git(path, "status", "--porcelain").stdout:
                return
            answer = json.loads(ran.stdout)
        self.git(path, "add", "-A")
        self.run(path, by, "git", "commit", "-q", "--no-verify", "-m", subject)
        if kind == "depends":
            now = self.depends(path, by, step)
            self.expect(subject, step, "depends", **{"from": ", ".join(was) or None, "to": ", ".join(now)})
        self.note_down(subject, kind, (step, status, token, by), before, answer)
        if kind in ("move", "remove"):
            self.renumbered(subject, all_depends, self.all_depends(path))

    def depends(self, path, by, step):
        shown = json.loads(self.planwatch(path, by, "show", step, "--json").stdout)["depends"]
        return [it.removeprefix("auth:") for it in shown]

    def note_down(self, subject, kind, said, before, answer):
        step, status, token, by = said
        title = json_title(before)
        becomes = {"done": "completed", "fail": "failed", "reopen": "pending", "start": "in_progress"}.get(kind)
        outcome = {"done": "completed", "fail": "failed", "reopen": "reopened"}.get(kind)
        if outcome:
            self.expect(subject, step, "attempt", outcome=outcome, notes=token, by=by)
        if becomes and becomes != status:
            self.expect(subject, step, "status", **{"from": status, "to": becomes}, by=by if outcome else None)
        if kind == "claim":
            claim = answer["claim"]["id"]
            self.expect(subject, step, "claim", to=claim, by=by)
            self.expect(subject, step, "status", **{"from": status, "to": "in_progress"}, by=by)
        if kind == "release":
            # A step without a claim only becomes pending.
            held = [line.split('"')[1] for line in before.splitlines() if line.startswith("claim:")]
            if held:
                self.expect(subject, step, "released", **{"from": held[0]})
            self.expect(subject, step, "status", **{"from": status, "to": "pending"})
        if kind == "note":
            self.expect(subject, step, "note", notes=token, by=by)
        if kind == "title":
            self.expect(subject, step, "title", **{"from": title, "to": token})
        if kind == "tag":
            self.expect(subject, step, "text", keys="tags")
        if kind == "text":
            self.expect(subject, step, "text", lines="+2 -0")
        if kind == "add":
            new = next(it["id"] for it in answer["changes"] if it["did"] == "added")
            self.expect(subject, new, "created", to="pending", notes=token)
        if kind == "move":
            for it in answer["changes"]:
                if it["was"]:
                    self.expect(subject, it["id"], "moved", **{"from": it["was"], "to": it["id"]})
        if kind == "remove":
            self.expect(subject, step, "removed", **{"from": status}, notes=title)

    def all_depends(self, path):
        """The dependencies of each step by its number, as they are written: in brackets or as a list."""
        found = {number: DEPENDS.search(self.text(path, number)) for number in self.steps(path)}
        return {number: re.findall(r"[\w.]+", it.group(1)) if it else [] for number, it in found.items()}

    def renumbered(self, subject, before, after):
        """The steps that depended on a step that was moved or removed."""
        for number in before.keys() & after.keys():
            old, new = ", ".join(before[number]) or None, ", ".join(after[number]) or None
            if old != new:
                self.expect(subject, f"auth:{number}", "depends", **{"from": old, "to": new})

    def exchange(self, branch, other):
        path = self.path(branch)
        self.git(self.path(other), "push", "-q", "-f", "origin", other)
        self.git(path, "fetch", "-q", "origin")
        self.git(path, "merge", "-q", "--no-edit", "-m", f"merge {self.counts['merges']}", f"origin/{other}")
        self.counts["merges"] += 1
        while self.settle(path, "merge"):
            pass

    def judge_log(self):
        """Events that are missing, and events that did not happen."""
        path = self.path("main")
        for branch in BRANCHES[1:]:
            self.exchange("main", branch)
        events = json.loads(self.planwatch(path, "ann", "log", "--json").stdout)["events"]
        again = json.loads(self.planwatch(path, "ann", "log", "--json", "--no-index").stdout)["events"]
        found, faults = collections.Counter(), []
        if events != again:
            faults.append("the answers with and without the index differ")
        for it in events:
            subject = it["subject"] or ""
            if subject.startswith("merge "):
                faults += self.judge_merge(path, it)
            elif subject != "base":
                keys = [("from", it["from"]), ("to", it["to"]), ("outcome", it["outcome"]), ("notes", it["notes"])]
                lines = f"+{it['lines_added']} -{it['lines_removed']}" if it["lines_added"] is not None else None
                keys += [("by", it["by"]), ("keys", ",".join(it["keys"])), ("lines", lines)]
                found[event(subject, it["step"], it["what"], {key: value for key, value in keys if value})] += 1
        faults += [f"missing: {it}" for it in (self.expected - found)]
        faults += [f"did not happen: {it}" for it in (found - self.expected)]
        steps = json.loads(self.planwatch(path, "ann", "log", "auth", "--timeline", "--json").stdout)["steps"]
        faults += [f"the timeline of {it['step']} ends otherwise" for it in steps if it["spans"][-1]["status"] != it["status"]]
        return sum(found.values()), faults

    def judge_merge(self, path, change):
        """The faults of a change that is reported for a merge: a status must be chosen between two values, after both sides changed it."""
        self.merge_changes += 1
        if change["what"] != "status":
            return []
        name = f"plans/auth/step-{change['step'].split(':')[1]}.md"
        show = lambda rev: STATUS.search(self.git(path, "show", f"{rev}:{name}").stdout)
        word = lambda rev: (show(rev) or [None, None])[1]
        oid = change["commit"]
        base = self.git(path, "merge-base", f"{oid}^1", f"{oid}^2").stdout.strip()
        now, sides = word(oid), [word(f"{oid}^1"), word(f"{oid}^2")]
        is_choice = change["to"] == now and now in sides and change["from"] in sides
        return [] if is_choice and word(base) not in [it for it in sides if it != now] else [f"of a merge: {change}"]


def event(subject, step, what, values):
    return f"{subject} {step} {what} " + " ".join(f"{key}={value}" for key, value in sorted(values.items()))


def json_title(text):
    titles = [it[len("title: "):].strip("\"'") for it in text.splitlines() if it.startswith("title: ")]
    headings = [it[2:] for it in text.splitlines() if it.startswith("# ")]
    return (titles + headings)[0]


def branches(binary, root, n_branches):
    """How long `status --branches` takes, and how much longer `add` is than with `--no-branches`, in milliseconds."""
    random.seed(3)
    git = lambda data, *words: subprocess.run(["git", *words], cwd=root, input=data, check=True, capture_output=True)
    text = lambda status, of: f"---\nstatus: {status}\n---\n# Step {of}\n\n" + "What is to be done here, in some words.\n" * 12
    files = {f"plans/plan-{p}/step-{s}.md": text("pending", s) for p in range(100) for s in range(1, 11)}
    stream = []

    def commit(ref, mark, start, changed, at):
        who = f"Ann <ann@example.org> {1_700_000_000 + 60 * at} +0000"
        stream.append(f"commit {ref}\nmark :{mark}\nauthor {who}\ncommitter {who}\ndata 4\nstep\n")
        stream.append(f"from :{start}\n" if start else "")
        stream.extend(f"M 100644 inline {name}\ndata {len(it.encode())}\n{it}\n" for name, it in changed.items())

    commit("refs/heads/main", 1, None, {**files, ".gitignore": "plans/.planwatch\n"}, 0)
    names = list(files)
    for at in range(2, 202):
        commit("refs/heads/main", at, at - 1, {names[at]: text("in_progress", at)}, at)
    for nth in range(n_branches):
        kind = "heads" if nth % 2 else "remotes/origin"
        commit(f"refs/{kind}/feature/{nth}", 1000 + nth, 1 + nth % 200, {names[300 + nth]: text("completed", nth)}, 300 + nth)
    git(b"", "init", "-q", "-b", "main")
    git("".join(stream).encode(), "fast-import", "--quiet")
    git(b"", "reset", "-q", "--hard")

    def milliseconds(*words):
        started = time.perf_counter()
        ran = subprocess.run([binary, *words], cwd=root, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
        return 1000 * (time.perf_counter() - started), ran.stdout

    said = json.loads(milliseconds("status", "--branches", "--json")[1])["branches"]
    assert len(said) == n_branches, f"{len(said)} of {n_branches} branches"
    status = statistics.median(milliseconds("status", "--branches")[0] for _ in range(9))
    with_branches = lambda: milliseconds("add", "plan-7", "New", "--dry-run")[0]
    without = lambda: milliseconds("add", "plan-7", "New", "--dry-run", "--no-branches")[0]
    more = statistics.median(with_branches() - without() for _ in range(15))
    return status, more


def run(binary, exchanges, n_branches):
    with tempfile.TemporaryDirectory() as root:
        story = Story(binary, root, 11)
        story.go(exchanges)
        n_events, faults = story.judge_log()
        person = story.counts["person"]
    with tempfile.TemporaryDirectory() as root:
        status, more = branches(binary, root, n_branches)
    # Where both branches wrote a text at one place, a person decides. These conflicts are printed, but are no fault of `log`.
    text = f"{n_events} events of {story.counts['merges']} merges, {story.merge_changes} of merges themselves: {len(faults)} faults, {person} conflicts of texts"
    text += f"; {n_branches} branches: status {status:.0f} ms, add +{more:.0f} ms"
    passed = not faults and n_events > 3 * exchanges and status <= 1000 and more <= 60
    return passed, "\n     ".join([text, *faults[:10]])
