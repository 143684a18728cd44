"""G6: machines as network namespaces, and a git server behind a web server in one of them."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from . import fleet

SERVER = """server.document-root = "{top}"
server.port = 8080
server.bind = "10.77.0.1"
server.modules = ("mod_alias", "mod_setenv", "mod_cgi")
server.pid-file = "{top}/lighttpd.pid"
server.errorlog = "{top}/lighttpd.log"
server.max-keep-alive-requests = 100
alias.url = ("/git" => "{backend}")
setenv.set-environment = ("GIT_PROJECT_ROOT" => "{top}", "GIT_HTTP_EXPORT_ALL" => "1", "REMOTE_USER" => "trial")
cgi.assign = ("git-http-backend" => "")
"""

PREFIX = "pwtrial"


def ip(*words):
    ran = subprocess.run(["ip", *words], capture_output=True, text=True)
    if ran.returncode != 0:
        raise RuntimeError(f"ip {' '.join(words)}: {ran.stderr}")


class Network:
    """A bridge in the server's namespace, and a namespace for each machine."""

    def __init__(self, n):
        self.names = [f"{PREFIX}{os.getpid()}x{it}" for it in range(n + 1)]

    def __enter__(self):
        try:
            self.make()
        except RuntimeError:
            self.__exit__()
            raise
        return self

    def make(self):
        server = self.names[0]
        for name in self.names:
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        ip("-n", server, "link", "add", "br0", "type", "bridge")
        ip("-n", server, "addr", "add", "10.77.0.1/16", "dev", "br0")
        ip("-n", server, "link", "set", "br0", "up")
        for at, name in enumerate(self.names[1:], 1):
            ip("-n", server, "link", "add", f"m{at}", "type", "veth", "peer", "name", "eth0", "netns", name)
            ip("-n", server, "link", "set", f"m{at}", "master", "br0", "up")
            ip("-n", name, "addr", "add", f"10.77.1.{at}/16", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")

    def __exit__(self, *_):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)

    def on(self, at):
        return ["ip", "netns", "exec", self.names[at]]

    def cut(self, at, is_cut):
        ip("-n", self.names[0], "link", "set", f"m{at}", "down" if is_cut else "up")


def run(binary, small):
    lighttpd = shutil.which("lighttpd", path=os.environ["PATH"] + ":/usr/sbin")
    backend = pathlib.Path(subprocess.run(["git", "--exec-path"], capture_output=True, text=True).stdout.strip()) / "git-http-backend"
    if lighttpd is None or not backend.exists():
        return None, "there is no lighttpd, or no git http-backend"
    n_machines, n_workers, n_steps, seconds = (3, 6, 12, 4.0) if small else (20, 50, 250, 60.0)
    try:
        network = Network(n_machines).__enter__()
    except (RuntimeError, FileNotFoundError) as error:
        return None, f"network namespaces cannot be made: {error}"
    with tempfile.TemporaryDirectory() as top:
        it = fleet.Fleet(binary, top, n_steps)
        try:
            return trial(it, network, (lighttpd, backend), (n_machines, n_workers, seconds), small)
        finally:
            it.stop()
            network.__exit__()


def serve(it, network, lighttpd, backend):
    config = it.top / "lighttpd.conf"
    config.write_text(SERVER.format(top=it.top, backend=backend))
    it.also([*network.on(0), lighttpd, "-D", "-f", str(config)], stderr=subprocess.DEVNULL)
    relay = [*network.on(0), sys.executable, str(fleet.PARTS / "relay.py"), "10.77.0.1:8081", "10.77.0.1:8080", "50", "25",
             "0.01", str(it.top / "cut")]
    it.also(relay, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout.readline()


def trial(it, network, server, sizes, small):
    n_machines, n_workers, seconds = sizes
    it.begin()
    serve(it, network, *server)
    url = "http://10.77.0.1:8081/git/hub.git"
    places = [it.clone(f"m{at}", url) for at in range(1, n_machines + 1)]
    # A working connection first, so that the times are those of the work.
    probe = it.planwatch(places[0], "sync", prefix=network.on(1))
    if probe.returncode != 0:
        return False, f"the server does not work: {probe.stderr.strip()}"
    began = time.time()
    for n in range(n_workers):
        at = n % n_machines
        it.start(f"w{n}", places[at], seconds, network.on(at + 1))
    deadline, is_cut = began + (120 if small else 1800), False
    full = None
    while time.time() < deadline:
        n_ended = len(it.ended())
        if not is_cut and n_ended >= it.n_steps // 3:
            # One machine is cut off for a moment. Its packets are lost, as with a pulled cable.
            network.cut(1, True)
            time.sleep(2 if small else 30)
            network.cut(1, False)
            is_cut = True
        if n_ended >= it.n_steps - n_workers and full is None:
            # From here on there are fewer steps than workers.
            full = time.time()
        if n_ended == it.n_steps:
            break
        time.sleep(1)
    it.stop()
    for at, directory in enumerate(places, 1):
        it.planwatch(directory, "sync")
    twice, lost = it.judge()
    events = [event for event in it.events() if event["at"] <= (full or time.time())]
    worked, since = 0.0, {}
    for event in events:
        if event["what"] == "claimed":
            since[event["worker"]] = event["at"]
        elif event["what"] == "done" and event["worker"] in since:
            worked += event["at"] - event["seconds"] - since.pop(event["worker"])
    end = full or time.time()
    worked += sum(end - at for at in since.values())
    utilisation = worked / (n_workers * (end - began))
    open_steps = it.n_steps - len(it.ended())
    text = (f"{n_workers} workers on {n_machines} machines, {it.n_steps} steps of {seconds:.0f} s: twice {len(twice)}, "
            f"lost {len(lost)}, open {open_steps}, utilisation {utilisation:.0%}, {it.connections():.2f} connections a claim")
    return not twice and not lost and not open_steps and (small or utilisation >= 0.9), text
