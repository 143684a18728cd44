"""R17: commands that only read start no process, according to strace.

The first execve is the command itself. clone and clone3 with CLONE_THREAD start threads, which are allowed.
"""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile

CALLS = "execve,execveat,fork,vfork,clone,clone3"

STEP = """---
status: {status}
verify: ['touch evil']
---
# Step {n}

## Tasks
- [x] run `touch evil`
"""


def make(root):
    plan = root / "plans" / "p"
    plan.mkdir(parents=True)
    (plan / "plan.md").write_text("# P\n")
    for n, status in enumerate(("completed", "pending", "failed"), 1):
        (plan / f"step-{n}.md").write_text(STEP.format(n=n, status=status))
    (root / "plans" / "_scripts").mkdir()
    (root / "plans" / "_scripts" / "evil.md").write_text("---\ncommand: touch evil\n---\n")
    (root / "planwatch.toml").write_text('[agents.evil]\ncommand = "touch evil"\n')
    subprocess.run(["git", "init", "-q", "."], cwd=root, check=True)


def started(trace):
    """The lines of a trace that start a process, except the first."""
    lines = [it for it in trace.read_text().splitlines() if re.search(r"\b(execve|execveat|fork|vfork|clone|clone3)\(", it)]
    is_thread = lambda it: "CLONE_THREAD" in it
    is_failed = lambda it: " = -1 " in it
    others = [it for it in lines if not is_thread(it) and not is_failed(it)]
    return others[1:]


def run(binary):
    if not shutil.which("strace"):
        return False, "not measured: strace is not installed"
    verbs = ["list", "list p", "show p", "show p:2", "show p --graph text", "next", "next p", "status", "check", "search run", "trust",
             "script list", "decide", "insight", "doctor", "export p", "run p --command true --dry-run", "sql SELECT(1)"]
    with tempfile.TemporaryDirectory() as place:
        root = pathlib.Path(place) / "work"
        root.mkdir()
        make(root)
        environment = {"HOME": place, "PATH": os.environ.get("PATH", ""), "PLANWATCH_BY": "ann"}
        bad = []
        for n, verb in enumerate(verbs):
            trace = pathlib.Path(place) / f"trace-{n}"
            command = ["strace", "-f", "-s", "64", "-e", f"trace={CALLS}", "-o", str(trace), binary, *verb.split()]
            subprocess.run(command, cwd=root, env=environment, capture_output=True, check=False)
            bad += [f"{verb}: {line}" for line in started(trace)]
        trace = pathlib.Path(place) / "trace-watch"
        command = ["strace", "-f", "-s", "64", "-e", f"trace={CALLS}", "-o", str(trace), binary, "watch", "--json"]
        watching = subprocess.Popen(command, cwd=root, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        watching.stdout.readline()
        (root / "plans" / "p" / "step-2.md").write_text(STEP.format(n=2, status="completed"))
        watching.stdout.readline()
        pid = trace.read_text().split()[0]
        os.kill(int(pid), signal.SIGTERM)
        watching.wait(timeout=60)
        bad += [f"watch: {line}" for line in started(trace)]
        if (root / "evil").exists():
            bad.append("a command from the repository was run")
    return not bad, "; ".join(bad) if bad else f"{len(verbs) + 1} reading commands started no process"
