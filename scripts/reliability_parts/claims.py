"""R6: eight claimers, and a killer. R7: workers that are stopped for longer than their lease.

R6: each claimer repeatedly claims and completes a step. Two processes a second are killed with -9 at random moments.
When no step is ready any more, the clock is set to a later time, so that the leases of the killed processes end, and the rest
is completed without a killer. Then every step must be completed once, under one claim, with the result that was reported.

R7: each worker claims a step, stops itself (SIGSTOP), and reports after it was continued. Meanwhile its lease ends and another
worker claims and completes the step. The late report must be refused and recorded as one note.
"""
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import tempfile
import threading
import time

WORKERS = 8
DAY = 24 * 60 * 60


def make(root, steps):
    plan = root / "plans" / "p"
    plan.mkdir(parents=True)
    (plan / "plan.md").write_text("# P\n")
    for n in range(1, steps + 1):
        (plan / f"step-{n}.md").write_text(f"# Step {n}\n")
    # A step whose workers are killed many times must still be completed in the end.
    (root / "planwatch.toml").write_text("max_attempts = 100000\n")


def environment(home, by, later=0):
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + later))
    return {"HOME": str(home), "PLANWATCH_BY": by, "PLANWATCH_NOW": at, "PATH": os.environ.get("PATH", "")}


class Race:
    def __init__(self, binary, base):
        self.binary, self.base, self.root = binary, base, base / "project"
        self.running, self.lock = {}, threading.Lock()
        self.claimed, self.completed, self.faults, self.killed = [], [], [], 0

    def run(self, by, later, *arguments):
        """Returns the exit code (negative if killed), stdout and stderr."""
        with self.lock:
            process = subprocess.Popen(
                [self.binary, *arguments], cwd=self.root, env=environment(self.base / "home", by, later),
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )
            self.running[process.pid] = process
        output, errors = process.communicate()
        with self.lock:
            del self.running[process.pid]
        return process.returncode, output, errors

    def worker(self, by, later):
        while True:
            code, output, errors = self.run(by, later, "claim", "p", "--json=step,claim", "--lease", "1h")
            if code == 7:
                return
            if code not in (0, -signal.SIGKILL):
                self.faults.append(f"claim: {code} {errors}")
                return
            if not output.endswith("\n"):
                continue
            answer = json.loads(output)
            step, claim = answer["step"]["id"], answer["claim"]["id"]
            self.claimed.append((step, claim, later))
            code, _, errors = self.run(by, later, "done", step, "--claim", claim, "-m", f"result of {claim}")
            if code == 0:
                self.completed.append((step, claim))
            elif code != -signal.SIGKILL:
                self.faults.append(f"done {step}: {code} {errors}")

    def killer(self, is_over):
        rng = random.Random(1)
        while not is_over.wait(rng.uniform(0.3, 0.7)):
            with self.lock:
                alive = [it for it in self.running.values() if it.poll() is None]
                if alive:
                    rng.choice(alive).kill()
                    self.killed += 1

    def phase(self, later, is_killing):
        workers = [threading.Thread(target=self.worker, args=(f"worker {n}", later)) for n in range(WORKERS)]
        is_over = threading.Event()
        killer = threading.Thread(target=self.killer, args=(is_over,))
        for it in workers + ([killer] if is_killing else []):
            it.start()
        for it in workers:
            it.join()
        is_over.set()
        if is_killing:
            killer.join()


def race(binary, steps, scratch):
    base = pathlib.Path(tempfile.mkdtemp(prefix="planwatch-r6-", dir=scratch))
    try:
        make(base / "project", steps)
        race = Race(binary, base)
        race.phase(0, True)
        first = len(race.claimed)
        race.phase(2 * DAY, False)
        return judge(race, steps, first)
    finally:
        shutil.rmtree(base, ignore_errors=True)


def judge(race, steps, first):
    # No lease ends within a phase, so a step that is claimed twice in one phase has two owners.
    phases = [race.claimed[:first], race.claimed[first:]]
    duplicates = sum(len(it) - len({step for step, _, _ in it}) for it in phases)
    texts = {n: (race.root / "plans" / "p" / f"step-{n}.md").read_text() for n in range(1, steps + 1)}
    stuck = sum("\nstatus: completed\n" not in it for it in texts.values())
    twice = sum(it.count("outcome: completed") > 1 for it in texts.values())
    lost = sum(f"result of {claim}" not in texts[int(step[2:])] for step, claim in race.completed)
    passed = duplicates == stuck == twice == lost == 0 and not race.faults
    text = f"{WORKERS} claimers x {steps} steps, {race.killed} killed: {duplicates + twice} duplicates, {stuck} stuck, {lost} lost results"
    return passed, text + "".join(f"\n  {it}" for it in race.faults[:5])


def fence(binary, rounds, scratch):
    base = pathlib.Path(tempfile.mkdtemp(prefix="planwatch-r7-", dir=scratch))
    try:
        make(base / "project", rounds)
        return stopped(binary, rounds, base)
    finally:
        shutil.rmtree(base, ignore_errors=True)


def stopped(binary, rounds, base):
    root, home = base / "project", base / "home"
    workers = []
    for n in range(rounds):
        # The shell stops itself between the claim and the report.
        out = base / f"claimed-{n}"
        script = f'"{binary}" claim p --json=step,claim --lease 10m > "{out}" && kill -STOP $$; exec "{binary}" done "$(cut -d= -f1 "{out}.id")" --claim "$(cut -d= -f2 "{out}.id")" -m "late result {n}."'
        process = subprocess.Popen(
            ["sh", "-c", script], cwd=root, env=environment(home, f"worker {n}"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.waitpid(process.pid, os.WUNTRACED)
        claimed = json.loads(out.read_text())
        pathlib.Path(f"{out}.id").write_text(f"{claimed['step']['id']}={claimed['claim']['id']}")
        workers.append(process)
    completed = 0
    for n in range(rounds):
        later = {"cwd": root, "env": environment(home, "other", 3600), "capture_output": True, "text": True}
        ran = subprocess.run([binary, "claim", "p", "--json=step,claim"], **later)
        claimed = json.loads(ran.stdout)
        ran = subprocess.run([binary, "done", claimed["step"]["id"], "--claim", claimed["claim"]["id"], "-m", "in time"], **later)
        completed += ran.returncode == 0
    for process in workers:
        process.send_signal(signal.SIGCONT)
    accepted = sum(process.wait() != 4 for process in workers)
    texts = [(root / "plans" / "p" / f"step-{n}.md").read_text() for n in range(1, rounds + 1)]
    outcomes = sum(it.count("outcome: completed") != 1 for it in texts)
    recorded = sum("".join(texts).count(f"late result {n}.") == 1 for n in range(rounds))
    passed = accepted == outcomes == 0 and recorded == completed == rounds
    return passed, f"{rounds} workers stopped past their lease: {accepted} late reports accepted, {outcomes} steps with two outcomes, {recorded} late results recorded"
