"""A git server over ssh: a separate sshd with its own keys, which protects a branch and refuses custom refs.

It checks the answer of each command, and that no command asks a question.
"""
import getpass
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time

from . import fleet

SERVER = "/usr/sbin/sshd"

# The ssh of the clones. It logs its arguments, and uses a separate configuration.
CLIENT = """#!/bin/sh
echo "$@" >> {top}/ssh-calls
exec {ssh} -F {top}/ssh/client "$@"
"""

# A host that rejects custom refs and pushes to main.
HOOK = """#!/bin/sh
while read old new name; do
  case $name in
    refs/planwatch/*) echo "$name: custom refs are not allowed" >&2; exit 1;;
    refs/heads/main) echo "main is protected" >&2; exit 1;;
  esac
done
"""


class Host:
    def __init__(self, it):
        self.it, self.place, self.process = it, it.top / "ssh", None
        self.place.mkdir(mode=0o700)
        for name in ["host", "user"]:
            command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.place / name)]
            subprocess.run(command, check=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.let_in(True)
        self.know(True)
        (self.place / "server").write_text(
            f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {self.place}/host\nPidFile none\nUsePAM no\n"
            f"AuthorizedKeysFile {self.place}/authorized\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n"
            "PermitRootLogin prohibit-password\nStrictModes no\n")
        (self.place / "client").write_text(
            f"IdentityFile {self.place}/user\nIdentitiesOnly yes\nUserKnownHostsFile {self.place}/known\n"
            "GlobalKnownHostsFile /dev/null\nPasswordAuthentication yes\n")
        client = it.top / "bin" / "ssh"
        client.write_text(CLIENT.format(top=it.top, ssh=shutil.which("ssh")))
        client.chmod(0o755)

    def let_in(self, is_allowed):
        text = (self.place / "user.pub").read_text() if is_allowed else ""
        (self.place / "authorized").write_text(text)

    def know(self, is_known):
        key = (self.place / "host.pub").read_text()
        (self.place / "known").write_text(f"[127.0.0.1]:{self.port} {key}" if is_known else "")

    def start(self):
        if os.getuid() == 0:
            pathlib.Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        self.process = self.it.also([SERVER, "-D", "-e", "-f", str(self.place / "server")], stderr=subprocess.DEVNULL)
        for _ in range(100):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        raise RuntimeError("sshd does not start")

    def stop(self):
        self.process.kill()
        self.process.wait()

    def url(self):
        return f"ssh://{getpass.getuser()}@127.0.0.1:{self.port}{self.it.hub}"


def run(binary):
    if not pathlib.Path(SERVER).exists() or not shutil.which("ssh"):
        return None, "needs openssh-server and openssh-client"
    with tempfile.TemporaryDirectory() as top:
        it = fleet.Fleet(binary, top, 4)
        try:
            wrong = trial(it)
        finally:
            it.stop()
    return not wrong, "; ".join(wrong) or "claims and ends over ssh; refused keys, unknown hosts, protected branches"


def trial(it):
    host, wrong = Host(it), []
    it.begin(has_sync=False)
    hook = it.hub / "hooks" / "pre-receive"
    hook.write_text(HOOK)
    hook.chmod(0o755)
    host.start()
    one, other = (it.clone(name, host.url()) for name in ["one", "other"])

    def expect(what, directory, words, code, text):
        began = time.time()
        ran = it.planwatch(directory, *words.split())
        said = ran.stdout + ran.stderr
        if ran.returncode != code or text not in said or time.time() - began > 60:
            wrong.append(f"{what}: exit {ran.returncode}, {said.strip()[:200]!r}")

    expect("a host that refuses custom refs", one, "sync init", 0, "refs/tags/planwatch-claims/")
    shutil.copy(one / "planwatch.toml", other / "planwatch.toml")
    expect("a first claim", one, "claim", 0, "p:1")
    expect("a second claim", other, "claim", 0, "p:2")
    expect("a claim of a claimed step", other, "claim p:1", 4, "claimed")
    expect("an end", one, "done p:1", 0, "")
    # The work arrives on the protected branch by a merge at the host.
    it.git(one, "checkout", "-q", "-b", "work")
    it.git(one, "add", "plans")
    it.git(one, "commit", "-q", "-m", "Work")
    it.git(one, "push", "-q", "origin", "work")
    it.git(it.hub, "update-ref", "refs/heads/main", "refs/heads/work")
    expect("a merge at the host", other, "sync", 0, "removed")
    host.let_in(False)
    expect("a key that the host does not know", one, "claim", 4, "remote-refused")
    host.let_in(True)
    host.know(False)
    expect("a host that the client does not know", one, "claim", 4, "remote-refused")
    host.know(True)
    host.stop()
    expect("a host that is down", one, "claim", 4, "remote-unreachable")
    host.start()
    expect("a claim after that", one, "claim", 0, "p:3")
    calls = (it.top / "ssh-calls").read_text().splitlines()
    asking = [call for call in calls if "receive-pack" in call and "BatchMode=yes" not in call]
    # Only git itself, which pushed the branch, may ask.
    if len(asking) > 1:
        wrong.append(f"ssh may ask a question: {asking[0]}")
    names = set(it.git(it.hub, "for-each-ref", "--format=%(refname)").split())
    outside = {name for name in names if not name.startswith("refs/tags/planwatch-claims/")}
    if outside != {"refs/heads/main", "refs/heads/work"}:
        wrong.append(f"pushed: {sorted(outside)}")
    return wrong
