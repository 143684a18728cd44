"""R18: kill -9 of `run` at random moments, until its plan is complete.

Each round works on a plan whose steps wait for the ones before them. Its runs are killed after a random time; the last one
may end by itself. Then every step has to be completed, by an agent that was started for it while no other was at work on it,
and nothing of the killed runs may be left.
"""
import os
import pathlib
import random
import signal
import subprocess
import tempfile
import time

AGENT = """#!/bin/sh
n=${PLANWATCH_STEP#*:}
# A mark may be that of an agent which was ended; together is who finds another one running.
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
    """An agent that was killed leaves its mark; one that runs keeps it."""
    for mark in (root / "work").glob("*/pid"):
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
    said = subprocess.run([binary, "--json", "trust"], cwd=root, env=environment, capture_output=True, text=True).stdout
    hashes = [it.split('"')[0] for it in said.split('"hash":"')[1:]]
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
        # What is left of a killed run is ended by the next one, and not by us.
        clear(root)
    else:
        return kills, "it is never complete"
    if (root / "work" / "together").exists():
        return kills, "two agents were at work on one step at once: " + (root / "work" / "together").read_text()
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
