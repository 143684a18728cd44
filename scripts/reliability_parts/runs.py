"""R18: kill -9 of `run` at random moments, until its plan is complete.

Each round has a plan whose steps depend on the steps before them. Its runs are killed after a random time, until one ends
normally. Then every step must be completed, no two agents may have worked on a step at the same time,
and no process of the killed runs may be left.
"""
import contextlib
import os
import pathlib
import random
import signal
import subprocess
import tempfile
import time

AGENT = """#!/bin/sh
n=${PLANWATCH_STEP#*:}
# The directory may belong to an agent that was killed. If its agent still runs, `together` records the step.
mkdir "work/$n" 2>/dev/null || {
    pid=$(cat "work/$n/pid" 2>/dev/null)
    [ -n "$pid" ] && grep -qv ') Z ' "/proc/$pid/stat" 2>/dev/null && echo "$n" >> work/together
}
echo $$ > "work/$n/pid"
sleep 0.0$((n % 5))
planwatch -q done "$PLANWATCH_STEP" -m "by $PLANWATCH_CLAIM"
sleep 0.0$((n % 3))
rm -r "work/$n"
"""


def is_running(pid):
    try:
        return ") Z " not in pathlib.Path(f"/proc/{pid}/stat").read_text()
    except (OSError, ValueError):
        return False


def clear(root):
    """Removes the marks of killed agents, and keeps those of running ones."""
    for mark in (root / "work").glob("*/pid"):
        # An agent that ends at this moment removes its mark itself.
        with contextlib.suppress(FileNotFoundError):
            text = mark.read_text().strip()
            if text and not is_running(text):
                mark.unlink()
                mark.parent.rmdir()


def one(binary, place, rng, steps=6):
    root = pathlib.Path(place)
    (root / "plans" / "p").mkdir(parents=True)
    (root / "work").mkdir()
    (root / "plans" / "p" / "plan.md").write_text("---\norder: sequential\n---\n# P\n")
    (root / "agent.sh").write_text(AGENT)
    for n in range(1, steps + 1):
        verify = "verify: ['true']\n" if n % 2 else ""
        (root / "plans" / "p" / f"step-{n}.md").write_text(f"---\nstatus: pending\n{verify}---\n# Step {n}\n")
    environment = {"HOME": str(root / "home"), "PATH": os.environ.get("PATH", ""), "PLANWATCH_BY": "ann"}
    output = subprocess.run([binary, "--json", "trust"], cwd=root, env=environment, capture_output=True, text=True).stdout
    hashes = [it.split('"')[0] for it in output.split('"hash":"')[1:]]
    command = [binary, "run", "p", "--command", "sh agent.sh", "--max-attempts", "1000", "-q"]
    command += [it for hash in hashes for it in ("--trust-hash", hash)]
    kills = 0
    for _ in range(400):
        running = subprocess.Popen(command, cwd=root, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(rng.uniform(0.002, 0.25))
        if running.poll() is None:
            running.send_signal(signal.SIGKILL)
            kills += 1
        code = running.wait()
        if code == 0:
            break
        # Only the marks are cleared here. The next run ends the processes that a killed run left.
        clear(root)
    else:
        return kills, "the plan was not completed in 400 runs"
    if (root / "work" / "together").exists():
        return kills, "two agents worked on one step at the same time: " + (root / "work" / "together").read_text()
    list_ = subprocess.run([binary, "list", "p"], cwd=root, env=environment, capture_output=True, text=True).stdout
    if f"{steps}/{steps}  completed" not in list_:
        return kills, list_
    for n in range(1, steps + 1):
        text = (root / "plans" / "p" / f"step-{n}.md").read_text()
        if text.count("status: completed") != 1 or text.count("outcome: completed") != 1 or "claim: {" in text and n % 2:
            return kills, text
    return kills, None


def run(binary, rounds):
    environment = os.environ.get("PATH", "")
    os.environ["PATH"] = f"{pathlib.Path(binary).parent}:{environment}"
    rng, kills = random.Random(5), 0
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as place:
            killed, why = one(binary, place, rng)
            kills += killed
            if why:
                return False, f"after {kills} kills: {why}"
    return True, f"{kills} kills of {rounds} runs; every plan complete, each step reported once"
