"""One worker: claims a step, works on it for a while, completes it, and logs the answers.

    worker.py BINARY DIRECTORY NAME SECONDS LOG

It is killed at the end. A claim is bound to this process, so a worker that is started again in the same clone can claim the
step of a killed one.
"""
import itertools
import json
import os
import random
import subprocess
import sys
import time


def main():
    binary, directory, name, seconds, log = sys.argv[1:6]
    tag = ""
    log = open(log, "a", buffering=1)

    def say(what, **more):
        log.write(json.dumps({"what": what, "worker": name, "at": time.time(), **more}) + "\n")

    n_runs = itertools.count()

    def run(verb, *words):
        nonlocal tag
        tag = f"{name}-{os.getpid()}-{next(n_runs)}"
        environment = {**os.environ, "PLANWATCH_BY": name, "TRIAL_CALL": tag}
        began = time.time()
        ran = subprocess.run([binary, verb, *words], cwd=directory, env=environment, capture_output=True, text=True)
        return ran, time.time() - began

    while True:
        ran, took = run("claim", "--json", "--pid", str(os.getpid()))
        if ran.returncode != 0:
            code = ran.stderr.split('"code":"')[-1].split('"')[0] if ran.stderr else "nothing"
            say("no-claim", call=tag, exit=ran.returncode, code=code, seconds=took)
            time.sleep(random.uniform(0.5, 2.0))
            continue
        answer = json.loads(ran.stdout)
        step, claim = answer["step"]["id"], answer["claim"]["id"]
        say("claimed", call=tag, step=step, claim=claim, seconds=took)
        time.sleep(float(seconds) * random.uniform(0.9, 1.1))
        ran, took = run("done", step, "--claim", claim, "-m", name)
        say("done", step=step, claim=claim, exit=ran.returncode, seconds=took, told=ran.stderr.strip()[:300])


main()
