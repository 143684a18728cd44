"""G2: a week of five people and three agents on four branches of one repository.

Each branch has a clone. In each turn, one of the eight works on a branch and commits. Every few turns, a branch takes over the work of
another one by a merge, a rebase, a cherry-pick or a stash, and runs `git resolve --renumber` where git stops and at the end. After
each of these, the trial counts:

lost       attempts and notes that a side had and no file has, also not below _archive
undone     completed steps that are open again, although no side reopened them
foreign    statuses that no side had
gone       steps that no side removed, that are in no live file and of which `check --git` says nothing
doubled    steps that are live under two numbers, and were not on any side
damaged    files that planwatch reports as an error
person     files that `git resolve --renumber` leaves in conflict
scalar     of these, those where all conflicts are about one title or one priority that both sides set: only a person can decide

The week is repeated with git alone. The trial identifies steps by their titles: all titles differ, numbers change, and `id` is under
test.
"""
import collections
import datetime
import functools
import json
import os
import pathlib
import random
import re
import subprocess
import tempfile

PEOPLE = ["ann", "bob", "cy", "dan", "eve", "agent-1", "agent-2", "agent-3"]
BRANCHES = ["main", "api", "ui", "ops"]
STATUS = re.compile(r"^status: (\S+)", re.M)
MARK = re.compile(r"token-\d+")
# An attempt or a note.
ATTEMPT = re.compile(r"^  - at: (\S+)\n((?:    .*\n)*)", re.M)
CONFLICT = re.compile(r"^<{7} [^\n]*\n(.*?)(?:^\|{7}[^\n]*\n.*?)?^={7}\n(.*?)^>{7} [^\n]*$", re.M | re.S)
SCALAR = re.compile(r"(title: |priority: |# ).*\n")
# A dependency on a removed step, or a cycle, can come from two correct branches; `check` reports it to people.
FINE = {"dependency-missing", "dependency-cycle"}
# A rebase stops at most once for each commit and each file that a person resolves.
MOST_STOPS = 5000
KINDS = ["lost", "undone", "foreign", "gone", "doubled", "damaged", "person"]


def is_scalar(text):
    """Whether every conflict of a file is one line on both sides that sets the same scalar."""
    blocks = CONFLICT.findall(text)
    lines = [[SCALAR.fullmatch(side) for side in block] for block in blocks]
    return bool(blocks) and all(a and b and a.group(1) == b.group(1) for a, b in lines)


class Step:
    """The parts of a version of a live step that the trial checks."""

    def __init__(self, text):
        self.headings = re.findall(r"^# (.*)$", text, re.M)
        self.title = self.headings[0] if self.headings else None
        status = STATUS.search(text)
        self.status = status.group(1) if status else "pending"
        self.attempts = {it for it in ATTEMPT.findall(text) if "outcome:" in it[1]}


class State:
    """The contents of a tree of files: tokens of attempts and notes anywhere, and live steps by their title and by all their headings,
    since a squashed step has the headings of its parts."""

    def __init__(self, text_of):
        self.tokens = {token for text in text_of.values() for token in MARK.findall(text)}
        live = [Step(text) for name, text in text_of.items() if "/step-" in name and "_archive" not in name]
        self.steps = {step.title: step for step in live if step.title}
        removed = [Step(text) for name, text in text_of.items() if "/step-" in name and "_archive" in name]
        self.removed = {heading for step in removed for heading in step.headings}
        self.titles = collections.Counter(step.title for step in live)
        self.completed = {step.title for step in live if step.status == "completed"}
        self.holders = {}
        for step in live:
            for heading in step.headings:
                self.holders.setdefault(heading, []).append(step)
        # A merge can take a status from a removed copy of a step.
        self.statuses = {}
        for step in live + removed:
            for heading in step.headings:
                self.statuses.setdefault(heading, set()).add(step.status)

    def statuses_of(self, step):
        return {status for heading in step.headings for status in self.statuses.get(heading, ())}


class Replay:
    """The commits that a rebase replayed; for other operations there are none. The result cannot contain what git left out: merges, with
    decisions that only they contain, and changes that the other side has, too."""

    def __init__(self, week, path, onto=None, tip=None):
        self.week, self.path, self.onto, self.tip = week, path, onto, tip

    def commits(self, *which):
        found = self.week.git(self.path, "rev-list", "--right-only", *which, f"{self.onto}...{self.tip}") if self.tip else None
        return found.stdout.split() if found else []

    @functools.cached_property
    def states(self):
        """Before and after each commit."""
        both = [(f"{it}^", it) for it in self.commits("--no-merges", "--cherry-pick")]
        return [tuple(State(self.week.of_commit(self.path, it)) for it in pair) for pair in both]

    @functools.cached_property
    def leaves_out(self):
        return len(self.commits()) > len(self.states)

    def statuses_of(self, step):
        return set().union(*(after.statuses_of(step) for _, after in self.states))

    def changes(self, title):
        """The step before and after each commit that completed or reopened it."""
        live = [pair for pair in self.states if all(title in it.steps for it in pair)]
        steps = [[it.steps[title] for it in pair] for pair in live]
        return [(before, after) for before, after in steps if (before.status == "completed") != (after.status == "completed")]


class Week:
    def __init__(self, binary, root, seed, has_driver):
        self.binary, self.root, self.has_driver = binary, pathlib.Path(root), has_driver
        self.random = random.Random(seed)
        self.clock, self.tokens = 0, 0
        self.counts = dict.fromkeys(["merges", "worked", *KINDS, "scalar"], 0)
        self.examples = []
        # The texts of files that were read from commits, by their object ids.
        self.blobs = {}
        programs = self.root / "bin"
        programs.mkdir()
        (programs / "planwatch").symlink_to(binary)
        self.remote = self.root / "remote.git"
        self.git(self.root, "init", "-q", "--bare", "-b", "main", str(self.remote))
        first = self.clone("main", None)
        self.planwatch(first, "ann", "new", "auth", *[f"Step {n}" for n in range(1, 9)])
        (first / ".gitignore").write_text("plans/.planwatch\n")
        if has_driver:
            self.planwatch(first, "ann", "git", "setup")
        self.commit(first, "base")
        self.git(first, "push", "-q", "origin", "main")
        for branch in BRANCHES[1:]:
            self.clone(branch, "main")

    def environment(self, by):
        self.clock += 10
        at = (datetime.datetime(2026, 11, 2) + datetime.timedelta(seconds=self.clock)).strftime("%Y-%m-%dT%H:%M:%SZ")
        names = {f"GIT_{who}_{what}": f"{by}@example.org" if what == "EMAIL" else by
                 for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        path = f"{self.root / 'bin'}:{os.environ['PATH']}"
        return {"HOME": str(self.root), "PATH": path, "PLANWATCH_BY": by, "PLANWATCH_NOW": at,
                "GIT_CONFIG_NOSYSTEM": "1", "GIT_EDITOR": "true", **names}

    def run(self, directory, by, *words):
        return subprocess.run(words, cwd=directory, env=self.environment(by), capture_output=True, text=True)

    def git(self, directory, *words):
        return self.run(directory, "ann", "git", *words)

    def planwatch(self, directory, by, *words):
        return self.run(directory, by, self.binary, *words)

    def path(self, branch):
        return self.root / f"clone-{branch}"

    def clone(self, branch, start):
        path = self.path(branch)
        self.git(self.root, "clone", "-q", str(self.remote), str(path))
        self.git(path, "checkout", "-q", "-b", branch, *([f"origin/{start}"] if start else []))
        if start and self.has_driver:
            self.planwatch(path, "ann", "git", "setup")
        return path

    def commit(self, path, text):
        self.git(path, "add", "-A")
        self.git(path, "commit", "-q", "--no-verify", "-m", text)

    def steps(self, path):
        files = (path / "plans" / "auth").glob("step-*.md")
        return sorted(it.name[len("step-"):-len(".md")] for it in files)

    def token(self):
        self.tokens += 1
        return f"token-{self.tokens}"

    def work(self, branch, by):
        path, steps = self.path(branch), self.steps(self.path(branch))
        if not steps:
            return
        number, token = self.random.choice(steps), self.token()
        step = f"auth:{number}"
        others = [it for it in steps if it != number]
        kinds = ["done"] * 5 + ["fail", "note", "note", "set", "add", "add", "reopen", "move", "squash", "remove", "start"]
        kind = self.random.choice(kinds)
        words = {
            "done": ["done", step, "-m", token, "--force"],
            "fail": ["fail", step, "-m", token],
            "reopen": ["reopen", step],
            "start": ["start", step, "--force"],
            "note": ["note", step, token],
            "set": ["set", step, "tags+=" + self.random.choice(["db", "web", "slow"])],
            "add": ["add", "auth", f"Extra {token}", "--after", number],
            "move": ["move", step, "--after", self.random.choice(others or [number])],
            "squash": ["squash", "auth", number, self.random.choice(others or [number]), "--title", f"Both {token}", "--force"],
            "remove": ["remove", step, "--force"],
        }[kind]
        if kind in ("squash", "remove") and len(steps) < 6:
            return
        self.counts["worked"] += self.planwatch(path, by, *words).returncode == 0
        self.commit(path, f"{kind} {number}")

    def of_commit(self, path, commit):
        listed = self.git(path, "ls-tree", "-r", commit, "--", "plans").stdout.splitlines()
        entries = [re.fullmatch(r"\d+ blob (\w+)\t(.*\.md)", it) for it in listed]
        blob_of = {it.group(2): it.group(1) for it in entries if it}
        for blob in set(blob_of.values()) - self.blobs.keys():
            self.blobs[blob] = self.git(path, "cat-file", "blob", blob).stdout
        return {name: self.blobs[blob] for name, blob in blob_of.items()}

    def of_tree(self, path):
        files = (path / "plans").rglob("*.md")
        return {str(it.relative_to(path)): it.read_text() for it in files if ".planwatch" not in it.parts}

    def exchange(self, branch, other):
        path = self.path(branch)
        self.git(self.path(other), "push", "-q", "-f", "origin", other)
        self.git(path, "fetch", "-q", "origin")
        kind = self.random.choice(["merge", "merge", "merge", "rebase", "pick", "stash"])
        theirs = f"origin/{other}"
        if kind == "pick" and self.git(path, "rev-parse", "-q", "--verify", f"{theirs}^2").returncode == 0:
            # A merge cannot be picked.
            kind = "merge"
        base = self.git(path, "merge-base", "HEAD", theirs).stdout.strip()
        ours = self.of_commit(path, "HEAD")
        tip = self.git(path, "rev-parse", "HEAD").stdout.strip()
        replay = Replay(self, path, theirs, tip) if kind == "rebase" else Replay(self, path)
        if kind == "pick":
            base = f"{theirs}^"
            self.git(path, "cherry-pick", theirs)
        elif kind == "stash":
            self.planwatch(path, "ann", "note", f"auth:{self.random.choice(self.steps(path))}", self.token())
            base, ours = self.git(path, "rev-parse", "HEAD").stdout.strip(), self.of_tree(path)
            self.git(path, "stash", "push", "-q")
            self.git(path, "merge", "-q", "--ff-only", theirs)
            if self.git(path, "rev-parse", "HEAD").stdout.strip() == base:
                # Nothing came in: the branches differ, or theirs is behind.
                theirs = base
        else:
            self.git(path, *(["merge", "-q", "--no-edit", theirs] if kind == "merge" else ["rebase", "-q", theirs]))
        sides = [State(self.of_commit(path, base)), State(ours), State(self.of_commit(path, theirs))]
        if kind == "stash":
            self.git(path, "stash", "pop", "-q")
        self.counts["merges"] += 1
        before = self.counts["person"] + self.counts["scalar"]
        stops = 0
        while self.settle(path, kind):
            stops += 1
            assert stops < MOST_STOPS, f"the {kind} does not end"
        if kind == "stash":
            self.commit(path, "from the stash")
            self.git(path, "stash", "drop", "-q")
        elif self.has_driver:
            self.planwatch(path, "ann", "git", "resolve", "--renumber")
            self.commit(path, "what git merged without a conflict")
        self.judge(path, kind, sides, self.counts["person"] + self.counts["scalar"] == before, replay)

    def settle(self, path, kind):
        """Resolves the conflicts and continues the operation. Returns whether it may stop once more."""
        conflicts = self.git(path, "diff", "--name-only", "--diff-filter=U").stdout.split()
        said = []
        if conflicts and self.has_driver:
            ran = self.planwatch(path, "ann", "git", "resolve", "--renumber")
            said = (ran.stdout + ran.stderr).splitlines()
            conflicts = self.git(path, "diff", "--name-only", "--diff-filter=U").stdout.split()
        for name in conflicts:
            text = (path / name).read_text() if (path / name).exists() else ""
            scalar = is_scalar(text)
            self.counts["scalar" if scalar else "person"] += 1
            if not scalar:
                why = [it.split("  ")[0] for it in said if name in it] or said[:1]
                self.example(f"{kind} {name}: {' '.join(why)}", text)
            self.keep_both(path, name)
        self.git(path, "add", "-A")
        git_dir = path / ".git"
        if (git_dir / "rebase-merge").exists() or (git_dir / "rebase-apply").exists():
            if self.git(path, "rebase", "--continue").returncode:
                if not self.git(path, "diff", "--name-only", "--diff-filter=U").stdout:
                    self.git(path, "rebase", "--skip")
            return True
        if (git_dir / "CHERRY_PICK_HEAD").exists():
            self.git(path, "commit", "-q", "--allow-empty", "--no-edit")
        elif (git_dir / "MERGE_HEAD").exists():
            self.git(path, "commit", "-q", "--no-edit")
        return False

    def keep_both(self, path, name):
        """The person keeps OURS, and records the tokens that only THEIRS had, so that they do not count as lost by the tools."""
        theirs = self.git(path, "show", f":3:{name}").stdout
        if self.git(path, "checkout", "-q", "--ours", "--", name).returncode:
            ours = self.git(path, "show", f":2:{name}")
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_text(theirs if ours.returncode else ours.stdout)
        kept = (path / name).read_text()
        for token in sorted(set(MARK.findall(theirs)) - set(MARK.findall(kept))):
            (path / "plans" / "auth" / f"kept-{token}.md").write_text(f"{token}\n")

    def example(self, what, text=""):
        self.examples.append(what + "".join(f"\n        {it}" for it in text.splitlines()))

    def count(self, kind, found, how):
        self.counts[kind] += len(found)
        if found:
            self.example(f"{how}: {kind} {'; '.join(sorted(found)[:3])}")

    def judge(self, path, how, sides, is_alone, replay):
        """`is_alone`: no person resolved a conflict, so that the tools alone made the result."""
        base, ours, theirs = sides
        now = State(self.of_commit(path, "HEAD"))
        # A picked commit brings only what it changed.
        brought = theirs.tokens - base.tokens if how == "pick" else theirs.tokens
        self.count("lost", (ours.tokens | brought) - now.tokens, how)
        if not is_alone:
            return
        found = json.loads(self.planwatch(path, "ann", "check", "--git", "--json").stdout or "{}").get("problems", [])
        self.count("foreign", set(self.foreign(now, sides, replay)), how)
        self.count("undone", set(self.undone(now, sides, replay, how)), how)
        if how in ("merge", "stash"):
            # If two steps had the same text, each side may have removed one of them.
            both = {it for it in ours.holders.keys() & theirs.holders.keys() if len(base.holders.get(it, [])) < 2}
            # If a cherry-pick brought a step to both sides, one side may have removed it since.
            removed = ours.removed | theirs.removed
            new = (ours.holders.keys() | theirs.holders.keys()) - base.holders.keys() - removed
            reported = {heading for it in found if it["code"] == "changed-after-removal"
                        for heading in Step((path / it["path"]).read_text()).headings}
            self.count("gone", (both | new) - now.holders.keys() - reported, how)
        twice = {it for it, n in now.titles.items() if n > max(1, *(side.titles[it] for side in sides))}
        self.count("doubled", twice, how)
        bad = {f"{it['code']} {it['path']}" for it in found if it["severity"] == "error" and it["code"] not in FINE}
        self.count("damaged", bad, how)

    @staticmethod
    def foreign(now, sides, replay):
        for title, step in now.steps.items():
            had = set().union(*(side.statuses_of(step) for side in sides[1:]))
            if not had or step.status in had:
                continue
            # If git left out merges, the last status may be one that only those merges had changed.
            if not replay.leaves_out or step.status not in replay.statuses_of(step):
                yield f"{title} is {step.status}, the sides said {sorted(had)}"

    @staticmethod
    def undone(now, sides, replay, how):
        base, *both = sides
        for side, other in (both, both[::-1]):
            for title, step in side.steps.items():
                after, there = now.steps.get(title), other.steps.get(title)
                # A step that a side has twice may have two statuses.
                if step.status != "completed" or not after or not there or title in now.completed:
                    continue
                # A picked commit does not bring a completion that was there before it.
                if how == "pick" and side is both[1] and title in base.completed:
                    continue
                # Below the title of a squashed step are its former titles, the last one first.
                was = next((base.steps[it] for it in step.headings if it in base.steps), None)
                # The other side knew of the completion and recorded further attempts, or only the other side changed the status.
                went_on = there.attempts > step.attempts or (was and was.status == "completed" != there.status)
                if went_on or len(after.headings) != len(step.headings):
                    continue
                # A rebase merges each replayed commit with THEIRS, not OURS as a whole.
                done = [it for _, it in replay.changes(title) if it.status == "completed"]
                if side is both[0] and replay.leaves_out and all(there.attempts > it.attempts for it in done):
                    continue
                if side is both[1] and len(replay.changes(title)) > len(done):
                    continue
                yield f"{title} was completed and is {after.status}"

    def go(self, exchanges):
        while self.counts["merges"] < exchanges:
            for _ in range(4):
                branch = self.random.choice(BRANCHES)
                self.work(branch, self.random.choice(PEOPLE))
            branch, other = self.random.sample(BRANCHES, 2)
            self.exchange(branch, other)
        return self.counts


def run(binary, exchanges, seed):
    texts, passed = [], True
    for name, has_driver in [("planwatch", True), ("git alone", False)]:
        with tempfile.TemporaryDirectory() as root:
            week = Week(binary, root, seed, has_driver)
            counts = week.go(exchanges)
        texts.append(f"{name}: " + ", ".join(f"{value} {key}" for key, value in counts.items()))
        if has_driver:
            # A week with hardly any work proves nothing.
            passed = not any(counts[it] for it in KINDS) and counts["worked"] > 2 * exchanges
            texts.extend(week.examples[:8] if not passed else [])
    return passed, "\n     ".join(texts)
