"""G2: a week of five people and three agents on four branches of one repository.

Each branch has a clone. In each turn one of the eight works on its branch and commits; every few turns a branch takes over what
another one has, by a merge, a rebase, a cherry-pick or a stash. After each, every attempt, note and completion that either side
had must be in a file of the branch, and every status must be one that a side had. What `git resolve --renumber` leaves in conflict
needs a person; one text that both sides changed is counted on its own. The week is repeated with git alone.
"""
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


class Week:
    def __init__(self, binary, root, seed, has_driver):
        self.binary, self.root, self.has_driver = binary, pathlib.Path(root), has_driver
        self.random = random.Random(seed)
        self.clock, self.tokens = 0, 0
        self.counts = dict.fromkeys(["merges", "lost", "foreign", "person", "scalar"], 0)
        self.examples = []
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
        self.clock += 60
        day, rest = divmod(self.clock, 86400)
        hour, rest = divmod(rest, 3600)
        at = f"2026-11-{2 + day:02}T{hour:02}:{rest // 60:02}:{rest % 60:02}Z"
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
        self.planwatch(path, by, *words)
        self.commit(path, f"{kind} {number}")

    def state(self, text_of):
        """Tokens of attempts and notes; the status of each live step by its title, and all its headings: a squashed step has those
        of its parts."""
        tokens, statuses, headings = set(), {}, {}
        for name, text in text_of.items():
            tokens |= set(MARK.findall(text))
            status, titles = STATUS.search(text), re.findall(r"^# (.*)$", text, re.M)
            if status and titles and "/step-" in name and "_archive" not in name:
                statuses.setdefault(titles[0], set()).add(status.group(1))
                headings.setdefault(titles[0], set()).update(titles)
        return tokens, statuses, headings

    def of_commit(self, path, commit):
        listed = self.git(path, "ls-tree", "-r", "--name-only", commit, "--", "plans").stdout.splitlines()
        return {name: self.git(path, "show", f"{commit}:{name}").stdout for name in listed if name.endswith(".md")}

    def of_tree(self, path):
        files = (path / "plans").rglob("*.md")
        return {str(it.relative_to(path)): it.read_text() for it in files if ".planwatch" not in it.parts}

    def exchange(self, branch, other):
        path = self.path(branch)
        self.git(self.path(other), "push", "-q", "-f", "origin", other)
        self.git(path, "fetch", "-q", "origin")
        kind = self.random.choice(["merge", "merge", "merge", "rebase", "pick", "stash"])
        theirs = f"origin/{other}"
        sides = [self.of_commit(path, "HEAD")]
        if kind == "pick":
            # A commit brings only what it changed.
            self.git(path, "cherry-pick", theirs)
        elif kind == "stash":
            self.planwatch(path, "ann", "note", f"auth:{self.random.choice(self.steps(path))}", self.token())
            sides.append(self.of_tree(path))
            self.git(path, "stash", "push", "-q")
            self.git(path, "merge", "-q", "--ff-only", theirs)
            self.git(path, "stash", "pop", "-q")
        else:
            sides.append(self.of_commit(path, theirs))
            words = ["merge", "-q", "--no-edit", theirs] if kind == "merge" else ["rebase", "-q", theirs]
            self.git(path, *words)
        self.counts["merges"] += 1
        for _ in range(60):
            if not self.settle(path, kind):
                break
        if kind == "stash":
            self.commit(path, "from the stash")
            self.git(path, "stash", "drop", "-q")
        self.judge(path, kind, sides)

    def settle(self, path, kind):
        """Resolves what is in conflict, and goes on. Returns whether the operation may stop once more."""
        conflicts = self.git(path, "diff", "--name-only", "--diff-filter=U").stdout.split()
        said = []
        if conflicts and self.has_driver:
            ran = self.planwatch(path, "ann", "git", "resolve", "--renumber")
            said = (ran.stdout + ran.stderr).splitlines()
            conflicts = self.git(path, "diff", "--name-only", "--diff-filter=U").stdout.split()
        for name in conflicts:
            text = (path / name).read_text() if (path / name).exists() else ""
            # The title of a step without the key is its first heading.
            is_scalar = re.search(r"<<<<<<< .*\n(?:(?:title|priority): |# ).*\n", text) is not None
            self.counts["scalar" if is_scalar else "person"] += 1
            if not is_scalar and len(self.examples) < 8:
                why = [it.split("  ")[0] for it in said if name in it] or said[:1]
                self.examples.append(f"{kind} {name}: {' '.join(why)}")
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
        """The person keeps OURS, and writes down what only THEIRS had, so that it does not count as lost by the tools."""
        theirs = self.git(path, "show", f":3:{name}").stdout
        if self.git(path, "checkout", "-q", "--ours", "--", name).returncode:
            ours = self.git(path, "show", f":2:{name}")
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_text(theirs if ours.returncode else ours.stdout)
        kept = (path / name).read_text()
        for token in sorted(set(MARK.findall(theirs)) - set(MARK.findall(kept))):
            (path / "plans" / "auth" / f"kept-{token}.md").write_text(f"{token}\n")

    def judge(self, path, kind, sides):
        tokens, statuses, headings = self.state(self.of_commit(path, "HEAD"))
        known = [self.state(it) for it in sides]
        lost = set().union(*(it[0] for it in known)) - tokens
        self.counts["lost"] += len(lost)
        if lost:
            self.examples.append(f"{kind} lost {sorted(lost)[:3]}")
        if kind in ("merge", "rebase"):
            for key, has in statuses.items():
                had = set().union(*(it[1].get(title, set()) for it in known for title in headings[key]))
                if had and has - had:
                    self.counts["foreign"] += len(has - had)
                    self.examples.append(f"{kind} {key}: {sorted(has)}, the sides said {sorted(had)}")

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
            passed = not (counts["lost"] or counts["foreign"] or counts["person"])
            texts.extend(week.examples[:8] if not passed else [])
    return passed, "; ".join(texts)
