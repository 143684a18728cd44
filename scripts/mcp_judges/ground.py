"""Shared by all checks: the binary, a temporary project, the daemon, and one printed line per check."""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.request

# After this many seconds an operation counts as hanging. A slow and busy machine needs less for every operation here.
PATIENCE = 120
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# Set by --quiet, which every script accepts: only failures and totals are printed.
QUIET = "PLANWATCH_JUDGES_QUIET"
if "--quiet" in sys.argv:
    sys.argv.remove("--quiet")
    os.environ[QUIET] = "1"
# A shell starts background processes with SIGINT ignored, and servers would inherit that, although a check ends them with it.
signal.signal(signal.SIGINT, signal.default_int_handler)
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target"))).resolve()


def binary():
    """The binary under test. The release binary is built unless PLANWATCH_BIN is the path of another."""
    named = os.environ.get("PLANWATCH_BIN")
    if named:
        return str(pathlib.Path(named).resolve())
    subprocess.run(["cargo", "build", "--release", "--locked", "--quiet"], cwd=ROOT, check=True)
    return str(TARGET / "release" / "planwatch")


class Project:
    """A copy of plans-example in a temporary directory, with a separate home directory."""

    def __init__(self, binary, name="planwatch-judge"):
        self.binary = binary
        self.base = pathlib.Path(tempfile.mkdtemp(prefix=f"{name}-"))
        self.root = self.base / "project"
        self.plans = self.root / "plans"
        shutil.copytree(ROOT / "plans-example", self.plans)
        (self.base / "home").mkdir()
        # Without the user's own configuration, and without a git repository somewhere above.
        self.environment = {
            "HOME": str(self.base / "home"), "PATH": os.environ.get("PATH", ""), "PLANWATCH_BY": "person",
            "TMPDIR": os.environ.get("TMPDIR", "/tmp"),
        }

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.base, ignore_errors=True)

    def add_long_plan(self, name, steps):
        """Creates a plan whose steps are all ready, because none has dependencies."""
        plan = self.plans / name
        plan.mkdir()
        (plan / "plan.md").write_text(f"---\nstatus: active\n---\n\n# Long work with {steps} steps\n\nMany steps, all alike.\n")
        for n in range(1, steps + 1):
            words = " ".join(["carefully"] * (1 + n % 3))
            (plan / f"step-{n}.md").write_text(f"---\ndepends: []\n---\n\n# Part {n} of the long work, {words} done\n\nDo part {n}.\n")
        return plan

    def run(self, *arguments, check=True):
        ran = subprocess.run(
            [self.binary, *arguments], cwd=self.root, env=self.environment, capture_output=True, text=True, timeout=PATIENCE,
        )
        if check and ran.returncode != 0:
            raise AssertionError(f"planwatch {' '.join(arguments)}: {ran.returncode} {ran.stderr}")
        return ran

    def json(self, *arguments, check=True):
        return json.loads(self.run(*arguments, "--json", check=check).stdout)

    def text(self, path):
        return (self.plans / path).read_text()

    def bytes(self):
        """The contents of all files of the plans by name, without planwatch's own files."""
        found = {}
        for path in sorted(self.plans.rglob("*")):
            name = path.relative_to(self.plans).as_posix()
            if path.is_file() and not name.startswith("."):
                found[name] = path.read_bytes()
        return found


def free_port():
    with socket.socket() as it:
        it.bind(("127.0.0.1", 0))
        return it.getsockname()[1]


class Daemon:
    """Runs `planwatch watch --http` for a project until the block ends."""

    def __init__(self, project, *arguments):
        self.project, self.arguments = project, arguments
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.token = None
        self.log = project.base / "daemon.log"

    def __enter__(self):
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [self.project.binary, "watch", "--json", "--http", f"127.0.0.1:{self.port}", *self.arguments],
                cwd=self.project.root, env=self.project.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )
        try:
            self._wait_until_ready()
            if "--no-token" not in self.arguments:
                self.token = (self.project.plans / ".planwatch" / "token").read_text().strip()
            self.ask("/api/plans")
        except BaseException:
            self.process.kill()
            self.process.wait()
            raise
        return self

    def _wait_until_ready(self, seconds=PATIENCE):
        end = time.monotonic() + seconds
        while '"kind":"ready"' not in self.log.read_text():
            if self.process.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"the daemon is not ready: {self.log.read_text()[-2000:]}")
            time.sleep(0.02)

    def headers(self):
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}

    def ask(self, path, method="GET", body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, method=method, headers=self.headers())
        if data is not None:
            request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.loads(answer.read() or b"null")

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"the daemon did not end within {PATIENCE} seconds")
        if "panicked" in self.log.read_text(errors="replace"):
            raise AssertionError(f"the daemon panicked: {self.log.read_text(errors='replace')[-2000:]}")


@contextlib.contextmanager
def stopped_servers():
    """Stops the child processes of this process, which are the servers, until the block ends."""
    found = [int(it) for task in pathlib.Path("/proc/self/task").glob("*/children") for it in task.read_text().split()]
    assert found, "no server was started, or this system does not list child processes"
    try:
        for pid in found:
            os.kill(pid, signal.SIGSTOP)
        yield
    finally:
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


class Checks:
    """Prints one line per check and counts those that failed."""

    def __init__(self, where):
        self.where, self.failed, self.done = where, 0, 0

    def that(self, name, passed, detail=""):
        self.done += 1
        self.failed += not passed
        detail = " ".join(str(detail).split())
        shown = detail[:110 if passed else 1500]
        if not passed or QUIET not in os.environ:
            print(f"{'ok' if passed else 'FAILED':6} {self.where}: {name}{'  ' + shown if shown else ''}", flush=True)
        return bool(passed)

    def same(self, name, found, expected):
        return self.that(name, found == expected, "" if found == expected else f"{found!r}, expected {expected!r}")

    @contextlib.contextmanager
    def part(self, name):
        """An exception fails this part only; the next part runs."""
        try:
            yield
        except (Exception, BaseExceptionGroup) as error:
            self.that(name, False, describe(error))

    def end(self):
        """Prints the totals. Returns the exit code."""
        print(f"{'ok' if not self.failed else 'FAILED':6} {self.where}: {self.done} checks, {self.failed} failed", flush=True)
        return 1 if self.failed else 0


def describe(error):
    """The message of an exception and its place in these files. For a group, that of its first exception."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    ours = [it for it in traceback.extract_tb(error.__traceback__) if "mcp_judges" in it.filename]
    place = f"{pathlib.Path(ours[-1].filename).name}:{ours[-1].lineno} {ours[-1].line}" if ours else ""
    return f"{type(error).__name__}: {str(error)[:1200]} at {place}"
