"""R6: eight claimers and a killer. R7: workers that are stopped for longer than their lease.

R6: each claimer claims a step and completes it, over and over; two processes a second are killed with -9, at any moment.
When nothing more is handed out, the leases of the dead are let run out by a later clock and the rest is done without a
killer. Then every step must be completed once, by a claim that was told once, with the result that was reported.

R7: each worker claims, stops itself (SIGSTOP), and reports when it is woken. Meanwhile its lease ends and another one
claims and completes the step. The late report must be refused and kept as one note.
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
    # A step that was killed again and again is to be done in the end.
    (root / "planwatch.toml").write_text("max_attempts = 100000\n")


def environment(home, by, later=0):
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + later))
    return {"HOME": str(home), "PLANWATCH_BY": by, "PLANWATCH_NOW": at, "PATH": os.environ.get("PATH", "")}


class Race:
    def __init__(self, binary, base):
        self.binary, self.base, self.root = binary, base, base / "project"
        self.running, self.lock = {}, threading.Lock()
        self.told, self.answered, self.faults, self.killed = [], [], [], 0

    def run(self, by, later, *arguments):
        """Returns the exit code (negative if killed) and what was said."""
        with self.lock:
            process = subprocess.Popen(
                [self.binary, *arguments], cwd=self.root, env=environment(self.base / "home", by, later),
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )
            self.running[process.pid] = process
        said, errors = process.communicate()
        with self.lock:
            del self.running[process.pid]
        return process.returncode, said, errors

    def worker(self, by, later):
        while True:
            code, said, errors = self.run(by, later, "claim", "p", "--json=step,claim", "--lease", "1h")
            if code == 7:
                return
            if code not in (0, -signal.SIGKILL):
                self.faults.append(f"claim: {code} {errors}")
                return
            if not said.endswith("\n"):
                continue
            answer = json.loads(said)
            step, claim = answer["step"]["id"], answer["claim"]["id"]
            self.told.append((step, claim, later))
            code, _, errors = self.run(by, later, "done", step, "--claim", claim, "-m", f"result of {claim}")
            if code == 0:
                self.answered.append((step, claim))
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
        first = len(race.told)
        race.phase(2 * DAY, False)
        return judge(race, steps, first)
    finally:
        shutil.rmtree(base, ignore_errors=True)


def judge(race, steps, first):
    # Within one phase no lease ends: a step told twice there has two owners.
    phases = [race.told[:first], race.told[first:]]
    duplicates = sum(len(it) - len({step for step, _, _ in it}) for it in phases)
    texts = {n: (race.root / "plans" / "p" / f"step-{n}.md").read_text() for n in range(1, steps + 1)}
    stuck = sum("\nstatus: completed\n" not in it for it in texts.values())
    twice = sum(it.count("outcome: completed") > 1 for it in texts.values())
    lost = sum(f"result of {claim}" not in texts[int(step[2:])] for step, claim in race.answered)
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
        # The shell stops itself between what it was told and what it reports.
        out = base / f"told-{n}"
        script = f'"{binary}" claim p --json=step,claim --lease 10m > "{out}" && kill -STOP $$; exec "{binary}" done "$(cut -d= -f1 "{out}.id")" --claim "$(cut -d= -f2 "{out}.id")" -m "late result {n}."'
        process = subprocess.Popen(
            ["sh", "-c", script], cwd=root, env=environment(home, f"worker {n}"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.waitpid(process.pid, os.WUNTRACED)
        told = json.loads(out.read_text())
        pathlib.Path(f"{out}.id").write_text(f"{told['step']['id']}={told['claim']['id']}")
        workers.append(process)
    taken = 0
    for n in range(rounds):
        later = {"cwd": root, "env": environment(home, "other", 3600), "capture_output": True, "text": True}
        ran = subprocess.run([binary, "claim", "p", "--json=step,claim"], **later)
        told = json.loads(ran.stdout)
        ran = subprocess.run([binary, "done", told["step"]["id"], "--claim", told["claim"]["id"], "-m", "in time"], **later)
        taken += ran.returncode == 0
    for process in workers:
        process.send_signal(signal.SIGCONT)
    accepted = sum(process.wait() != 4 for process in workers)
    texts = [(root / "plans" / "p" / f"step-{n}.md").read_text() for n in range(1, rounds + 1)]
    outcomes = sum(it.count("outcome: completed") != 1 for it in texts)
    kept = sum("".join(texts).count(f"late result {n}.") == 1 for n in range(rounds))
    passed = accepted == outcomes == 0 and kept == taken == rounds
    return passed, f"{rounds} workers stopped past their lease: {accepted} late reports accepted, {outcomes} steps with two outcomes, {kept} late results kept"
