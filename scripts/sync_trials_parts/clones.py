"""G5: clones of one machine, a slow remote, killed workers, and a clone that is cut off for a while."""
import pathlib
import subprocess
import sys
import tempfile
import time

from . import fleet

DELAY = 150


def relay(it, name, server):
    control = it.top / f"cut-{name}"
    command = [sys.executable, str(fleet.PARTS / "relay.py"), "127.0.0.1:0", server, str(DELAY), "0", "0", str(control)]
    process = it.also(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return int(process.stdout.readline()), control


def daemon(it):
    """git's own server, on a free port."""
    import socket
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # The daemon program itself, because `git daemon` would start it as a separate process.
    path = subprocess.run(["git", "--exec-path"], capture_output=True, text=True).stdout.strip()
    command = [f"{path}/git-daemon", "--reuseaddr", "--listen=127.0.0.1", f"--port={port}", "--export-all",
               "--enable=receive-pack", f"--base-path={it.top}", str(it.top)]
    it.also(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(100):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return f"127.0.0.1:{port}"
        time.sleep(0.05)
    raise RuntimeError("git daemon does not start")


def run(binary, small):
    n_clones, n_steps, seconds, cut = (4, 12, 1.0, 5) if small else (8, 40, 5.0, 120)
    with tempfile.TemporaryDirectory() as top:
        it = fleet.Fleet(binary, top, n_steps)
        try:
            return trial(it, n_clones, seconds, cut)
        finally:
            it.stop()


def trial(it, n_clones, seconds, cut):
    it.begin()
    server, began = daemon(it), time.time()
    places = {}
    for n in range(n_clones):
        name = f"w{n}"
        port, control = relay(it, name, server)
        places[name] = (it.clone(name, f"git://127.0.0.1:{port}/hub.git"), control)
        it.start(name, places[name][0], seconds)
    names = list(places)
    time.sleep(seconds * 2)
    # Two workers are killed at work and started again. A third clone is cut off.
    for name in names[:2]:
        it.kill(name)
        it.start(name, places[name][0], seconds)
    control = places[names[2]][1]
    pathlib.Path(control).touch()
    reunion, deadline = time.time() + cut, time.time() + 900
    while time.time() < deadline:
        if control.exists() and time.time() >= reunion:
            control.unlink()
        if len(it.ended()) == it.n_steps and not control.exists():
            break
        time.sleep(0.5)
    wall = time.time() - began
    for name in names:
        it.kill(name)
    for directory, _ in places.values():
        it.planwatch(directory, "sync")
    twice, lost = it.judge()
    open_steps = it.n_steps - len(it.ended())
    rate = it.connections()
    text = (f"{n_clones} clones, {it.n_steps} steps, {wall:.0f} s: twice {len(twice)}, lost {len(lost)}, open {open_steps}, "
            f"{rate:.2f} connections a claim")
    return not twice and not lost and not open_steps and rate <= 4.5, text
