"""Clones of one repository, their workers, and the final state of the steps."""
import collections
import json
import os
import pathlib
import shutil
import subprocess
import sys

PARTS = pathlib.Path(__file__).resolve().parent

# A wrapper of git that logs the connections of each command.
GIT = """#!/bin/sh
for word in "$@"; do
  case $word in push|fetch|ls-remote) echo "$TRIAL_CALL" >> "$TRIAL_CALLS"; break;; esac
done
exec {git} "$@"
"""


class Fleet:
    def __init__(self, binary, top, n_steps):
        self.binary, self.top, self.n_steps = binary, pathlib.Path(top), n_steps
        self.hub, self.workers, self.others = self.top / "hub.git", {}, []
        (self.top / "bin").mkdir()
        (self.top / "logs").mkdir()
        stand_in = self.top / "bin" / "git"
        stand_in.write_text(GIT.format(git=shutil.which("git")))
        stand_in.chmod(0o755)
        home = self.top / "home"
        home.mkdir()
        self.environment = {
            "HOME": str(home), "LC_ALL": "C.UTF-8", "GIT_CONFIG_NOSYSTEM": "1", "TRIAL_CALLS": str(self.top / "calls"),
            "XDG_STATE_HOME": str(home / "state"), "PATH": f"{self.top / 'bin'}:{os.environ['PATH']}",
            "GIT_AUTHOR_NAME": "t", "GIT_AUTHOR_EMAIL": "t@example.org", "GIT_COMMITTER_NAME": "t",
            "GIT_COMMITTER_EMAIL": "t@example.org",
        }

    def git(self, directory, *words):
        ran = subprocess.run(["git", *words], cwd=directory, env=self.environment, capture_output=True, text=True)
        if ran.returncode != 0:
            raise RuntimeError(f"git {' '.join(words)}: {ran.stderr}")
        return ran.stdout

    def planwatch(self, directory, *words, prefix=()):
        command = [*prefix, self.binary, *words]
        return subprocess.run(command, cwd=directory, env=self.environment, capture_output=True, text=True)

    def begin(self, has_sync=True):
        """The hub, with a plan of all steps, and sync set up by a first clone beside it."""
        self.git(self.top, "init", "-q", "--bare", "-b", "main", str(self.hub))
        self.git(self.hub, "config", "http.receivepack", "true")
        first = self.top / "first"
        self.git(self.top, "clone", "-q", str(self.hub), str(first))
        plan = first / "plans" / "p"
        plan.mkdir(parents=True)
        (plan / "plan.md").write_text("# P\n")
        for n in range(1, self.n_steps + 1):
            (plan / f"step-{n}.md").write_text(f"---\nstatus: pending\n---\n# Step {n}\n")
        (first / ".gitignore").write_text("plans/.planwatch\n")
        self.git(first, "checkout", "-q", "-B", "main")
        ran = self.planwatch(first, "sync", "init") if has_sync else None
        if ran and ran.returncode != 0:
            raise RuntimeError(ran.stderr)
        self.git(first, "add", ".")
        self.git(first, "commit", "-q", "-m", "Begin")
        self.git(first, "push", "-q", "origin", "main")

    def clone(self, name, url):
        self.git(self.top, "clone", "-q", str(self.hub), name)
        self.git(self.top / name, "remote", "set-url", "origin", url)
        return self.top / name

    def start(self, name, directory, seconds, prefix=()):
        log = self.top / "logs" / name
        command = [*prefix, sys.executable, str(PARTS / "worker.py"), self.binary, str(directory), name, str(seconds), str(log)]
        self.workers[name] = subprocess.Popen(command, env=self.environment)

    def kill(self, name):
        self.workers[name].kill()
        self.workers[name].wait()

    def also(self, command, **more):
        process = subprocess.Popen(command, **more)
        self.others.append(process)
        return process

    def stop(self):
        for process in [*self.workers.values(), *self.others]:
            process.kill()
            process.wait()

    def ended(self):
        """The step and the claim of each record at the hub whose work has ended."""
        refs = self.git(self.hub, "for-each-ref", "--format=%(objectname)", "refs/planwatch/claims/").split()
        names = "".join(f"{it}\n" for it in refs)
        ran = subprocess.run(["git", "cat-file", "--batch"], cwd=self.hub, input=names, capture_output=True, text=True)
        records = [json.loads(it) for it in ran.stdout.splitlines() if it.startswith("{")]
        return {f"{it['plan']}:{it['step']}": it["id"] for it in records if it["state"] == "completed"}

    def events(self):
        lines = [line for log in sorted((self.top / "logs").iterdir()) for line in log.read_text().splitlines()]
        events = []
        for line in lines:
            try:
                events.append(json.loads(line))
            except ValueError:
                # A worker was killed while it wrote.
                continue
        return sorted(events, key=lambda it: it["at"])

    def connections(self):
        """For each claim that was made: the connections of all commands that claimed or were beaten. Commands that found
        nothing ready, or no remote, are not counted."""
        path = self.top / "calls"
        made = collections.Counter(path.read_text().split()) if path.exists() else {}
        events = self.events()
        claimed = [it["call"] for it in events if it["what"] == "claimed"]
        beaten = [it["call"] for it in events if it["what"] == "no-claim" and it["code"] == "claimed"]
        return sum(made.get(it, 0) for it in claimed + beaten) / max(1, len(claimed))

    def judge(self):
        """Steps that were finished twice, and finished steps of which the hub has another result or none."""
        events, ended = self.events(), self.ended()
        done = {}
        for it in events:
            if it["what"] == "done" and it["exit"] == 0:
                done.setdefault(it["step"], set()).add(it["claim"])
        twice = sorted(step for step, claims in done.items() if len(claims) > 1)
        lost = sorted(step for step, claims in done.items() if ended.get(step) not in claims)
        return twice, lost
