"""R1: kill -9 at a random microsecond of a running command.

In each round a command that changes a step, or a plan and a step, is killed after a random time. Then every file must
have exactly its old or its new content, an acknowledged change must be present, and the next command must work.
The new content is what the same command, not killed, writes into a copy.
"""
import os
import pathlib
import random
import shutil
import signal
import subprocess
import tempfile
import time

STEP = "---\nid: p:{n}\nstatus: {status}   # by hand\ntitle: \"Step {n}\"\n---\n# Step {n}\n\nText, long enough for a partial write.\n" + "x" * 2000 + "\n"


def make(root):
    plan = root / "plans" / "p"
    plan.mkdir(parents=True)
    (plan / "plan.md").write_text("---\nstatus: active\n---\n# P\n\n## Steps\n- step-1: One\n- step-2: Two\n")
    for n in (1, 2):
        (plan / f"step-{n}.md").write_text(STEP.format(n=n, status="pending"))


def tree(root):
    plans = root / "plans"
    found = {}
    for path in sorted(plans.rglob("*")):
        relative = path.relative_to(plans)
        if path.is_file() and not relative.parts[0].startswith(".planwatch"):
            found[str(relative)] = path.read_bytes()
    return found


def state(root):
    """The sizes of planwatch's own files. A difference means that the command has begun to write."""
    own = root / "plans" / ".planwatch"
    return {str(it): it.stat().st_size for it in own.rglob("*") if it.is_file() and it.name != "lock"} if own.exists() else {}


def command(rng, n):
    choices = [
        ["set", "p:1", "title", f"title {n}"],
        ["attempt", "p:1", "no answer", "--notes", f"try {n}", "--keep-status"],
        ["done", "p:1", "-m", f"done {n}"],
        ["reopen", "p:1", "-m", f"again {n}"],
        ["note", "p:2", f"note {n}"],
        ["add", "p", f"new {n}"],
    ]
    return rng.choice(choices)


def environment(home, n):
    minute, second = divmod(n, 60)
    now = f"2026-11-21T{minute // 60 % 24:02}:{minute % 60:02}:{second:02}Z"
    return {"HOME": str(home), "PLANWATCH_NOW": now, "PLANWATCH_BY": "ann", "PATH": os.environ.get("PATH", "")}


def run(binary, rounds, scratch):
    rng = random.Random(1)
    base = pathlib.Path(tempfile.mkdtemp(prefix="planwatch-r1-", dir=scratch))
    try:
        return loop(binary, rounds, rng, base)
    finally:
        shutil.rmtree(base, ignore_errors=True)


def loop(binary, rounds, rng, base):
    live, copy = base / "live", base / "copy"
    make(live)
    torn = lost = killed = between = broken = 0
    typical = 0.01
    for n in range(rounds):
        if n % 100 == 0 and n:
            shutil.rmtree(live)
            make(live)
        arguments = command(rng, n)
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(live / "plans", copy / "plans", ignore=shutil.ignore_patterns(".planwatch"))
        old = tree(live)
        before = state(live)
        started = time.perf_counter()
        subprocess.run([binary, *arguments], cwd=copy, env=environment(base / "home2", n), capture_output=True)
        typical = 0.9 * typical + 0.1 * (time.perf_counter() - started)
        new = tree(copy)
        process = subprocess.Popen([binary, *arguments], cwd=live, env=environment(base / "home", n), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        deadline = time.perf_counter() + rng.uniform(0, 1.2 * typical)
        while time.perf_counter() < deadline:
            pass
        process.send_signal(signal.SIGKILL)
        answer = process.stdout.read()
        process.stdout.close()
        was_killed = process.wait() == -signal.SIGKILL
        now = tree(live)
        for name in set(old) | set(new) | set(now):
            if now.get(name) not in (old.get(name), new.get(name)):
                torn += 1
        killed += was_killed
        is_answered = answer.endswith(b"\n") or not was_killed
        if is_answered and now != new:
            lost += 1
        if was_killed and not answer and (state(live) != before or now != old):
            between += 1
        check = subprocess.run([binary, "list", "p"], cwd=live, env=environment(base / "home", n), capture_output=True)
        broken += check.returncode != 0
        # An interrupted change of several files is completed or undone as a whole.
        subprocess.run([binary, "check", "--fix"], cwd=live, env=environment(base / "home", n), capture_output=True)
        torn += tree(live) not in (old, new)
    passed = torn == lost == broken == 0
    return passed, (
        f"{rounds} kills: {torn} half-written files, {lost} acknowledged changes lost, {broken} not usable afterwards; "
        f"{killed} died, {between} of them between the first write and the answer"
    )
