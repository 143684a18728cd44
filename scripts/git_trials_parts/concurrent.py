"""G3: `git commit` while a user edits, stages and commits without pause.

The user has a file that is always staged before it is committed, and one that is committed by name. Both count up. Afterwards,
no commit may have reverted a line of a plan file, no commit of planwatch may contain a file of the user, and at most 3 in 100 of the
user's commits may have failed.
"""
import os
import pathlib
import shutil
import subprocess
import tempfile
import threading

STEP = "---\nstatus: pending\n---\n# One\n"
MOST_FAILED = 0.03


def environment(home):
    # The machine's own configuration must not matter.
    return {"HOME": str(home), "PLANWATCH_BY": "ann", "PATH": os.environ.get("PATH", ""), "GIT_CONFIG_NOSYSTEM": "1"}


def make(root, env):
    plan = root / "plans" / "p"
    plan.mkdir(parents=True)
    (plan / "plan.md").write_text("# P\n")
    (plan / "step-1.md").write_text(STEP)
    (root / "staged").write_text("0\n")
    (root / "named").write_text("0\n")
    for words in (
        ["init", "-q", "-b", "main"],
        ["config", "user.name", "Ann"],
        ["config", "user.email", "ann@example.org"],
        ["config", "gc.auto", "0"],
        ["add", "-A"],
        ["commit", "-q", "-m", "Begin"],
    ):
        subprocess.run(["git", *words], cwd=root, env=env, check=True)


class User(threading.Thread):
    """Edits, stages and commits until it is stopped."""

    def __init__(self, root, env):
        super().__init__()
        self.root, self.env = root, env
        self.is_over = threading.Event()
        self.made = self.failed = 0

    def git(self, *words):
        return subprocess.run(["git", *words], cwd=self.root, env=self.env, capture_output=True).returncode == 0

    def commit(self, *words):
        if self.git("commit", "-q", "-m", "user", *words):
            self.made += 1
        else:
            self.failed += 1

    def run(self):
        n = 0
        while not self.is_over.is_set():
            n += 1
            (self.root / "staged").write_text(f"{n}\n")
            (self.root / "named").write_text(f"{n}\n")
            if not self.git("add", "staged"):
                self.failed += 1
                continue
            self.commit(*([] if n % 2 else ["--", "named"]))


def run(binary, commits, scratch):
    base = pathlib.Path(tempfile.mkdtemp(prefix="planwatch-g3-", dir=scratch))
    try:
        return trial(binary, commits, base)
    finally:
        shutil.rmtree(base, ignore_errors=True)


def trial(binary, commits, base):
    root, env = base / "work", environment(base / "home")
    root.mkdir()
    make(root, env)
    user = User(root, env)
    user.start()
    repeated = 0
    try:
        for n in range(commits):
            verb = ["done", "reopen"][n % 2]
            subprocess.run([binary, "-q", verb, "p:1", "-m", str(n)], cwd=root, env=env, check=True)
            # A refusal leaves everything as it was; the next try commits it.
            while subprocess.run([binary, "-q", "git", "commit"], cwd=root, env=env, capture_output=True).returncode:
                repeated += 1
                if repeated > commits:
                    return False, f"{repeated} refusals in {n} commits"
    finally:
        user.is_over.set()
        user.join()
    reverted, missing, swept, carried = judge(root, env, commits)
    share = user.failed / max(1, user.made + user.failed)
    passed = reverted == missing == swept == 0 and share <= MOST_FAILED
    return passed, (
        f"{commits} commits beside {user.made} of a user: {reverted} silent reverts, {missing} attempts missing, "
        f"{swept} files of the user swept in, {user.failed} commits of the user failed ({share:.1%}); "
        f"{carried} changes were carried by a commit of the user, {repeated} refusals were repeated"
    )


def judge(root, env, commits):
    def git(*words):
        return subprocess.run(["git", *words], cwd=root, env=env, check=True, capture_output=True, text=True).stdout

    reverted = swept = carried = attempts = 0
    for commit in git("rev-list", "--reverse", "HEAD").split():
        files = set(git("show", "--format=", "--name-only", commit).split())
        is_own = git("show", "-s", "--format=%s", commit).startswith("plan(p): ")
        swept += bool(is_own and files - {"plans/p/step-1.md"})
        if "plans/p/step-1.md" in files:
            now = git("show", f"{commit}:plans/p/step-1.md").count("  - at:")
            reverted += now < attempts
            attempts = now
            carried += not is_own
    # The first commit made the file.
    return reverted, commits - attempts, swept, max(0, carried - 1)
