"""R8, R9 and R10: the answers of a watching process must match the files, whatever happens to them.

The expected answers are those of --no-index, which reads every file. R8 repeatedly exchanges all files with `git checkout`.
R9 creates directories faster than they can be watched, moves them, fills the kernel's queue while the process is stopped, and
lowers the limit of watched directories in a separate user namespace. R10 saves files in random ways for a long time
and compares an answer after every few saves.
"""
import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import tempfile
import time

STATUSES = ["pending", "wip", "done", "failed", "blocked", "skipped"]
QUESTIONS = [
    ["list", "--all", "--json"],
    ["status", "--json"],
    ["next", "--json"],
    # The output for people, which may come from a cache.
    ["next"],
    ["check", "--json"],
    ["sql", "--json", "select id, status, title from steps order by archived, id, path"],
]


class Project:
    """A plans directory with a separate home directory."""

    def __init__(self, binary, scratch):
        self.binary = binary
        self.top = pathlib.Path(tempfile.mkdtemp(prefix="planwatch-watcher-", dir=scratch))
        self.plans = self.top / "work" / "plans"
        self.plans.mkdir(parents=True)
        self.environment = {
            "HOME": str(self.top), "PLANWATCH_BY": "ann", "PLANWATCH_NOW": "2026-11-21T12:00:00Z",
            "PATH": os.environ.get("PATH", ""), "GIT_CONFIG_GLOBAL": "/dev/null",
        }

    def run(self, *arguments, before=()):
        command = [*before, self.binary, *arguments]
        return subprocess.run(command, cwd=self.plans.parent, env=self.environment, capture_output=True, text=True)

    def shell(self, *command):
        subprocess.run(command, cwd=self.plans.parent, env=self.environment, check=True, capture_output=True)

    def step(self, path, status, more=""):
        path = self.plans / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text(status, more))

    def watch(self):
        ran = self.run("watch", "--detach", "--json")
        if ran.returncode != 0:
            log = self.plans / ".planwatch" / "daemon.log"
            raise RuntimeError(ran.stderr + (log.read_text() if log.exists() else ""))
        return json.loads(ran.stdout)["pid"]

    def differs(self, question):
        """How many rows of an answer differ from those of --no-index."""
        answers = [self.run(*how, *question) for how in ([], ["--no-index"])]
        if (answers[0].returncode, answers[0].stdout) == (answers[1].returncode, answers[1].stdout):
            return 0
        rows = [set(it.stdout.replace("},{", "},\n{").splitlines()) for it in answers]
        return max(len(rows[0] ^ rows[1]), 1)

    def close(self):
        self.run("watch", "--stop")
        shutil.rmtree(self.top, ignore_errors=True)


def text(status, more=""):
    return f"---\nstatus: {status}\n---\n# Step\n{more}\n"


@contextlib.contextmanager
def project(binary, scratch=None):
    made = Project(binary, scratch)
    try:
        yield made
    finally:
        made.close()


def checkouts(binary, n_files, rounds):
    """R8: the number of different rows, and the longest time until two correct answers."""
    with project(binary) as it:
        for branch, status in (("one", "pending"), ("two", "done")):
            for n in range(n_files):
                it.step(f"plan-{n // 10}/step-{n % 10}.md", status, branch)
            if branch == "one":
                (it.plans.parent / ".gitignore").write_text(".planwatch/\n")
                it.shell("git", "init", "-q", "-b", branch)
            else:
                it.shell("git", "checkout", "-q", "-b", branch)
            it.shell("git", "add", "-A")
            it.shell("git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", branch)
        it.watch()
        wrong, slowest = 0, 0.0
        for n in range(rounds):
            it.shell("git", "checkout", "-q", ("one", "two")[n % 2])
            began = time.monotonic()
            wrong += it.differs(QUESTIONS[0])
            expected = ("pending", "completed")[n % 2]
            query = f"select count(*) as n from steps where status = '{expected}'"
            answer = it.run("sql", "--json", query)
            slowest = max(slowest, time.monotonic() - began)
            wrong += abs(json.loads(answer.stdout)["rows"][0]["n"] - n_files)
        passed = wrong == 0
        return passed, f"{wrong} rows differ after {rounds} checkouts of {n_files} files; at most {slowest:.1f} s until two correct answers"


def storms(binary, n_directories, n_files):
    """R9: the number of different rows after each kind of storm."""
    found = {}
    with project(binary) as it:
        it.step("first/step-1.md", "pending")
        pid = it.watch()
        for n in range(n_directories):
            for step in range(1, 5):
                it.step(f"storm-{n}/step-{step}.md", STATUSES[n % 6])
        found["new directories"] = it.differs(QUESTIONS[0])
        for n in range(0, n_directories, 3):
            (it.plans / f"storm-{n}").rename(it.plans / f"moved-{n}")
            it.step(f"moved-{n}/step-1.md", "failed", "after the move")
            it.step(f"storm-{n}/step-9.md", "wip")
        found["moved"] = it.differs(QUESTIONS[0])
        # The stopped process does not read the queue, which holds 16,384 events.
        os.kill(pid, signal.SIGSTOP)
        for n in range(n_files):
            it.step(f"queue-{n // 10}/step-{n % 10}.md", "pending")
        for n in range(n_files):
            it.step(f"queue-{n // 10}/step-{n % 10}.md", STATUSES[n % 6])
        os.kill(pid, signal.SIGCONT)
        found["overflow"] = it.differs(QUESTIONS[0])
        running = it.run("watch", "--detach", "--json")
        found["overflow"] += int(json.loads(running.stdout)["pid"] != pid)
    found["watch limit"] = limited(binary)
    passed = not any(found.values())
    return passed, "rows that differ: " + ", ".join(f"{name} {n}" for name, n in found.items())


def limited(binary):
    """Sets a limit of 20 directories, in a separate namespace. Counts wrong answers, and 1 if the log does not report the limit."""
    with project(binary) as it:
        it.step("first/step-1.md", "pending")
        script = "echo 20 > /proc/sys/user/max_inotify_watches && exec \"$0\" watch --detach --json"
        started = subprocess.run(
            ["unshare", "-Ur", "sh", "-c", script, binary], cwd=it.plans.parent, env=it.environment, capture_output=True, text=True)
        if started.returncode != 0:
            return f"not measured ({started.stderr.strip()[:60]})" if "unshare" in started.stderr else 1
        wrong = 0
        for n in range(40):
            it.step(f"storm-{n}/step-1.md", "pending")
        wrong += it.differs(QUESTIONS[0])
        for n in range(40):
            it.step(f"storm-{n}/step-1.md", "done")
        wrong += it.differs(QUESTIONS[0])
        deadline = time.monotonic() + 20
        log = it.plans / ".planwatch" / "daemon.log"
        while "every two seconds" not in log.read_text():
            if time.monotonic() > deadline:
                return wrong + 1
            time.sleep(0.05)
        return wrong


def save(it, rng, path):
    """Saves a file once, in one of the ways that usual editors save."""
    status, more = rng.choice(STATUSES), "x" * rng.randrange(400)
    beside = path.with_name(path.name + "~")
    kind = rng.randrange(8)
    if kind == 0:
        path.write_text(text(status, more))
    elif kind == 1:
        beside.write_text(text(status, more))
        beside.rename(path)
    elif kind == 2:
        path.rename(beside)
        path.write_text(text(status, more))
        beside.unlink()
    elif kind == 3:
        with path.open("a") as file:
            file.write("\nmore\n")
    elif kind == 4:
        subprocess.run(["sed", "-i", f"s/^status: .*/status: {status}/", str(path)], check=True)
    elif kind == 5:
        path.unlink()
        path.write_text(text(status, more))
    elif kind == 6:
        stamp = path.stat().st_mtime_ns
        path.write_text(text(status, more))
        os.utime(path, ns=(stamp, stamp))
    else:
        it.run("set", f"{path.parent.name}:{path.stem.removeprefix('step-')}", "title", f"title {more[:20]}")


def shuffle(it, rng, n):
    """Creates, renames, removes, archives or exchanges a whole plan."""
    plans = [path for path in it.plans.iterdir() if path.is_dir() and not path.name.startswith((".", "_"))]
    kind = rng.randrange(5)
    if kind == 0 or len(plans) < 4:
        for step in range(1, 4):
            it.step(f"made-{n}/step-{step}.md", rng.choice(STATUSES))
    elif kind == 1:
        rng.choice(plans).rename(it.plans / f"named-{n}-{rng.randrange(1 << 30)}")
    elif kind == 2:
        shutil.rmtree(rng.choice(plans))
    elif kind == 3:
        archive = it.plans / "_archive"
        archive.mkdir(exist_ok=True)
        plan = rng.choice(plans)
        plan.rename(archive / f"{plan.name}-{rng.randrange(1 << 30)}")
    else:
        plan = rng.choice(plans)
        outside = it.top / f"outside-{rng.randrange(1 << 30)}"
        plan.rename(outside)
        it.step(f"{plan.name}/step-7.md", rng.choice(STATUSES))
        shutil.rmtree(plan)
        outside.rename(plan)


def soak(binary, n_questions):
    """R10: the number of answers that differ from those of --no-index."""
    rng = random.Random(10)
    wrong = ended = 0
    with project(binary) as it:
        for n in range(8):
            for step in range(1, 6):
                it.step(f"plan-{n}/step-{step}.md", "pending")
        pid = it.watch()
        for n in range(n_questions):
            for _ in range(rng.randrange(1, 4)):
                if rng.randrange(8) == 0:
                    shuffle(it, rng, n)
                steps = sorted(it.plans.glob("[!_.]*/step-*.md"))
                save(it, rng, rng.choice(steps))
            wrong += it.differs(rng.choice(QUESTIONS)) > 0
        ended += not os.path.exists(f"/proc/{pid}")
    passed = wrong == 0 and ended == 0
    return passed, f"{wrong} wrong answers to {n_questions} questions" + (", and the process has ended" if ended else "")
