"""G7: `run --worktrees` with agents that edit one file, and runs that are killed at any moment.

The steps say that they touch different files, but each agent replaces a line of the same file, some of them the same line.
Half of the agents commit, and some kill themselves before they report. The run is killed with SIGKILL after a random time and
started again, until it ends by itself. Beside it lies uncommitted work of a user, which is compared as bytes after each kill.

Afterwards each completed step's work must be in HEAD, each blocked step's work on a branch that is kept, and each commit
that an agent ever made in one of the two.
"""
import os
import pathlib
import random
import shutil
import signal
import subprocess
import tempfile
import time

LINES_PER_STEP = 8

AGENT = """#!/bin/sh
n=${PLANWATCH_STEP#*:}
line=$(cat "$AT/line-$n")
sed -i "$line s/.*/by step $n/" shared
echo "try" >> "work-$n"
if [ $((n % 2)) = 0 ]; then
    git add -A && git commit -q -m "step $n" && git rev-parse HEAD >> "$AT/commits"
fi
sleep 0.0$((n % 7))
# Some die before they report; the next attempt finds what they left.
if [ $((n % 5)) = 3 ] && [ ! -e "$AT/died-$n" ]; then
    touch "$AT/died-$n"
    kill -9 $$
fi
"$BINARY" -q done "$PLANWATCH_STEP" -m "made"
sleep 0.0$((n % 3))
"""


class Trial:
    def __init__(self, binary, base, rng, steps, jobs):
        self.base, self.root, self.rng, self.steps = base, base / "repository", rng, steps
        # The machine's own configuration must not matter.
        path = f"{pathlib.Path(binary).parent}:{os.environ.get('PATH', '')}"
        self.env = {"HOME": str(base / "home"), "PATH": path, "PLANWATCH_BY": "ann", "GIT_CONFIG_NOSYSTEM": "1", "AT": str(base), "BINARY": binary}
        self.command = [binary, "run", "p", "--worktrees", "--jobs", str(jobs), "--max-attempts", "1000", "-q"]
        self.command += ["--command", 'sh "$AT/agent.sh"']
        self.kills = 0
        self.make()

    def git(self, *words, check=True):
        ran = subprocess.run(["git", *words], cwd=self.root, env=self.env, capture_output=True, text=True)
        if check and ran.returncode:
            raise RuntimeError(f"git {' '.join(words)}: {ran.stderr}")
        return ran.stdout if check else ran.returncode == 0

    def make(self):
        plan = self.root / "plans" / "p"
        plan.mkdir(parents=True)
        (plan / "plan.md").write_text("# P\n")
        (self.base / "agent.sh").write_text(AGENT)
        for n in range(1, self.steps + 1):
            # Each seventh step replaces the line of the step before it.
            of = n - 1 if n % 7 == 0 else n
            (self.base / f"line-{n}").write_text(str(of * LINES_PER_STEP))
            (plan / f"step-{n}.md").write_text(f"---\nstatus: pending\ntouches: [area-{n}]\n---\n# Step {n}\n")
        lines = (self.steps + 1) * LINES_PER_STEP
        (self.root / "shared").write_text("".join(f"line {n}\n" for n in range(1, lines + 1)))
        (self.root / "mine").write_text("one\n")
        (self.root / ".gitignore").write_text("ignored\n")
        self.git("init", "-q", "-b", "main")
        for key, value in (("user.name", "Ann"), ("user.email", "ann@example.org"), ("gc.auto", "0")):
            self.git("config", key, value)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "Begin")
        (self.root / "staged").write_text("staged\n")
        self.git("add", "staged")
        (self.root / "staged").write_text("staged and edited\n")
        (self.root / "mine").write_text("one\ntwo\n")
        for name in ("untracked", "ignored"):
            (self.root / name).write_text("mine\n")

    def uncommitted(self):
        files = {name: (self.root / name).read_bytes() for name in ("staged", "mine", "untracked", "ignored")}
        index = [line for line in self.git("ls-files", "--stage", "staged", "mine").splitlines()]
        return files, index

    def run(self):
        """Kills runs until one ends; returns what went wrong."""
        before = self.uncommitted()
        for _ in range(300):
            running = subprocess.Popen(self.command, cwd=self.root, env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            try:
                code = running.wait(self.rng.uniform(0.01, 3.0))
            except subprocess.TimeoutExpired:
                running.send_signal(signal.SIGKILL)
                running.wait()
                self.kills += 1
                code = None
            said = running.stderr.read().decode(errors="replace")
            running.stderr.close()
            if self.uncommitted() != before:
                return "uncommitted work has changed"
            if code is not None:
                # 1: a conflict; 7: a conflict of a run before.
                return None if code in (0, 1, 7) and "error" not in said else f"the run ended with {code}: {said}"
        return "no run ended in 300"

    def has_line(self, n, where):
        line = f"by step {n}\n"
        if line in self.git("show", f"{where}:shared"):
            return True
        # A worker that began after this step was merged has seen the step's line, and may have replaced it in a commit. For a line
        # that a merge lost, there is only the commit that added it.
        return len(self.git("log", "--no-merges", "--format=%H", f"-S{line}", where, "--", "shared").split()) >= 2

    def lost(self):
        """Work that is neither in HEAD nor on a branch that is kept."""
        lost = []
        refs = self.git("for-each-ref", "--format=%(refname)", "refs/heads/planwatch-run/").split()
        completed = blocked = 0
        for n in range(1, self.steps + 1):
            text = (self.root / "plans" / "p" / f"step-{n}.md").read_text()
            is_completed = "\nstatus: completed" in text
            is_blocked = "\nstatus: blocked" in text
            completed, blocked = completed + is_completed, blocked + is_blocked
            where = "HEAD" if is_completed else next((it for it in refs if it.endswith(f"/p/{n}")), None)
            if not (is_completed or is_blocked) or where is None:
                lost.append(f"step {n}: {text}")
            elif not self.git("cat-file", "-e", f"{where}:work-{n}", check=False):
                lost.append(f"the file of step {n} in {where}")
            elif not self.has_line(n, where):
                lost.append(f"the line of step {n} in {where}")
        commits = self.base / "commits"
        made = commits.read_text().split() if commits.exists() else []
        for commit in made:
            if not any(self.git("merge-base", "--is-ancestor", commit, it, check=False) for it in ["HEAD", *refs]):
                lost.append(f"the commit {commit}")
        return lost, completed, blocked, len(made)


def has_new_git():
    version = subprocess.run(["git", "version"], capture_output=True, text=True, check=True).stdout.split()[2]
    return tuple(int(it) for it in version.split(".")[:2]) >= (2, 41)


def run(binary, rounds, steps, jobs, scratch=None):
    if not has_new_git():
        return None, "git 2.41 is needed"
    rng = random.Random(7)
    kills = completed = blocked = commits = 0
    for number in range(1, rounds + 1):
        base = pathlib.Path(tempfile.mkdtemp(prefix="planwatch-g7-", dir=scratch))
        try:
            trial = Trial(binary, base, rng, steps, jobs)
            why = trial.run()
            kills += trial.kills
            if why:
                return False, f"round {number}, {kills} kills: {why}"
            lost, done, stuck, made = trial.lost()
            completed, blocked, commits = completed + done, blocked + stuck, commits + made
            if lost:
                return False, f"round {number}, {kills} kills: lost: {'; '.join(lost)}"
        finally:
            shutil.rmtree(base, ignore_errors=True)
    return True, (
        f"{rounds} runs of {steps} steps with {jobs} workers on one file, {kills} kills: {completed} steps merged, {blocked} in "
        f"conflict and kept, {commits} commits of agents; work lost 0, uncommitted work changed 0"
    )
