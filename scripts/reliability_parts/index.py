"""R11 and R12: answers stay correct whatever happens to modification times, the index file, and the disk.

Each answer through the index is compared with the answer of `--no-index`, which reads only the files. Nothing is repaired
by hand between two commands.
"""
import json
import os
import pathlib
import random
import shutil
import subprocess
import tempfile

STEPS = 10
SECOND = 1_000_000_000


class Place:
    """Plans in a separate directory, and the comparisons of answers about them."""

    def __init__(self, binary, base, plans):
        self.binary, self.base, self.plans = binary, base, base / "plans"
        self.wrong = self.failed = 0
        for plan in range(plans):
            for step in range(1, STEPS + 1):
                path = self.step(plan, step)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text("pending", 0))

    def step(self, plan, step):
        return self.plans / f"p{plan}" / f"step-{step}.md"

    def run(self, *arguments, binary=None, **more):
        home = self.base / "home"
        environment = {"HOME": str(home), "XDG_STATE_HOME": str(home / "state"), "XDG_CACHE_HOME": str(home / "cache"),
                       "PLANWATCH_BY": "ann", "PATH": os.environ.get("PATH", ""), **more}
        command = [binary or self.binary, *arguments]
        return subprocess.run(command, cwd=self.base, env=environment, capture_output=True, text=True)

    def compare(self, *question, binary=None, **more):
        """Runs a command with and without the index. Counts different outputs as wrong, and different exit codes as failed."""
        question = question or ("list", "--all", "--json")
        found = self.run(*question, binary=binary, **more)
        expected = self.run("--no-index", *question, binary=binary, **more)
        self.failed += found.returncode != expected.returncode
        self.wrong += found.stdout != expected.stdout

    def index_files(self):
        own = self.plans / ".planwatch"
        return [it for it in own.glob("index-v*.db*") if ".bad" not in it.name and not it.name.endswith(".lock")]


def text(status, n):
    # The statuses have seven letters each, so that every version has the same size.
    return f"---\nstatus: {status}\ntitle: \"Title {n:06}\"\n---\n# Step\n"


WORDS = ["pending", "blocked", "skipped"]


def with_place(tag, binary, plans, run, scratch=None):
    base = pathlib.Path(tempfile.mkdtemp(prefix=f"planwatch-{tag}-", dir=scratch))
    try:
        return run(Place(binary, base, plans))
    finally:
        shutil.rmtree(base, ignore_errors=True)


def stamps(binary, rounds, scratch):
    """R11, on an ext4 with timestamps in whole seconds, if one can be mounted.

    Otherwise these are simulated: after each write the file's times are set to a whole second.
    """
    base = pathlib.Path(tempfile.mkdtemp(prefix="planwatch-r11-", dir=scratch))
    mount = base / "mount"
    mount.mkdir()
    has_seconds = coarse(base / "image", mount)
    try:
        passed, text = with_place("r11", binary, 4, lambda place: stamped(place, rounds, not has_seconds), mount)
        how = "on an ext4 with timestamps in whole seconds" if has_seconds else "with simulated timestamps in whole seconds"
        return passed, f"{text} ({how})"
    finally:
        if has_seconds:
            subprocess.run(["umount", "-l", str(mount)], capture_output=True)
        shutil.rmtree(base, ignore_errors=True)


def coarse(image, mount):
    """Mounts a small file system with timestamps in whole seconds. Returns false if that is not possible."""
    with open(image, "wb") as file:
        file.truncate(64 << 20)
    for command in (["mkfs.ext4", "-q", "-I", "128", str(image)], ["mount", "-o", "loop", str(image), str(mount)]):
        try:
            if subprocess.run(command, capture_output=True).returncode:
                return False
        except FileNotFoundError:
            return False
    probe = mount / "probe"
    probe.touch()
    return probe.stat().st_mtime_ns % SECOND == 0


def stamped(place, rounds, is_simulated):
    rng = random.Random(11)
    shown = lambda path: json.loads(place.run("show", f"{path.parent.name}:{path.stem[5:]}", "--json").stdout)
    missed = [0, 0]
    place.compare()
    for kind in (0, 1):
        for n in range(rounds):
            path = place.step(rng.randrange(4), rng.randint(1, STEPS))
            status, before = rng.choice(WORDS), path.stat()
            with open(path, "r+") as file:
                file.write(text(status, n))
            # The modification time is the current second, or that of the file before the rewrite.
            if kind == 1:
                os.utime(path, ns=(before.st_mtime_ns, before.st_mtime_ns))
            elif is_simulated:
                second = path.stat().st_mtime_ns // SECOND * SECOND
                os.utime(path, ns=(second, second))
            plan, step = path.parent.name, path.stem[5:]
            found = place.run("sql", f"SELECT title, status FROM steps WHERE id = '{plan}:{step}'", "--json").stdout
            missed[kind] += f"Title {n:06}" not in found or status not in found
            if n % 100 == 0:
                missed[kind] += shown(path)["status"] != status
    place.compare()
    return sum(missed) + place.wrong + place.failed == 0, (
        f"{rounds} rewrites of the same size: {missed[0]} missed; {rounds} with the old modification time restored: {missed[1]} missed"
    )


def damage(binary, corruptions, deletions, scratch):
    """R12: damaged, deleted and unwritable index files."""
    return with_place("r12", binary, 20, lambda place: damaged(place, corruptions, deletions), scratch)


def damaged(place, corruptions, deletions):
    rng = random.Random(12)
    place.compare()
    for n in range(corruptions):
        corrupt(place, rng)
        edit(place, rng, n)
        place.compare()
        if n % 10 == 0:
            place.compare("search", "Step", "--json")
    lines = [f"corrupted x {corruptions}"]
    deleted_under_a_daemon(place, rng, deletions)
    lines.append(f"deleted x {deletions} under a watching process")
    lines.append(full_disk(place))
    lines.append(read_only(place))
    lines.append(two_versions(place, rng))
    return place.wrong + place.failed == 0, (
        f"index {', '.join(lines)}: {place.wrong} wrong answers, {place.failed} failed commands, 0 repairs by hand"
    )


def edit(place, rng, n):
    place.step(rng.randrange(20), rng.randint(1, STEPS)).write_text(text(rng.choice(WORDS), n))


def corrupt(place, rng):
    """Truncates one of the index's files, or overwrites parts of it with random bytes or text."""
    found = place.index_files()
    if not found:
        return
    path = rng.choice(found)
    size, kind = path.stat().st_size, rng.randrange(5)
    with open(path, "r+b") as file:
        if kind == 0:
            file.truncate(rng.randint(0, size))
        elif kind == 1:
            file.write(b"no database " * 100)
        else:
            for _ in range(rng.randint(1, 16)):
                file.seek(rng.randrange(max(size, 1)))
                file.write(rng.randbytes(rng.randint(1, 64)))


def deleted_under_a_daemon(place, rng, rounds):
    place.failed += place.run("watch", "--detach").returncode != 0
    try:
        for n in range(rounds):
            for path in place.index_files():
                if rng.random() < 0.7:
                    path.unlink(missing_ok=True)
            edit(place, rng, n)
            place.compare()
    finally:
        place.failed += place.run("watch", "--stop").returncode != 0


def mounted(place, options, run):
    """Calls `run` with a copy of the plans on a small tmpfs. Returns false if it cannot be mounted."""
    mount = place.base / "mount"
    mount.mkdir(exist_ok=True)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(mount)], capture_output=True).returncode:
        return False
    try:
        shutil.copytree(place.plans, mount / "plans", ignore=shutil.ignore_patterns(".planwatch*"))
        run(mount)
    finally:
        subprocess.run(["umount", "-l", str(mount)], capture_output=True)
    return True


def full_disk(place):
    def run(mount):
        there = ("--plans", str(mount / "plans"))
        room = 0
        with open(mount / "filler", "wb", buffering=0) as filler:
            try:
                while True:
                    room += filler.write(b"x" * 4096)
                    filler.flush()
            except OSError:
                pass
        for left in range(0, 40, 4):
            # There is a little more room each time, so that the disk becomes full at another point of the write.
            with open(mount / "filler", "r+b") as filler:
                filler.truncate(max(room - left * 4096, 0))
            place.compare(*there, "list", "--all", "--json")
            place.compare(*there, "search", "Step", "--json")

    return "full disk" if mounted(place, "size=2m", run) else "full disk not tried (nothing can be mounted)"


def read_only(place):
    def run(mount):
        there = ("--plans", str(mount / "plans"))
        place.compare(*there, "list", "--all", "--json")
        subprocess.run(["mount", "-o", "remount,ro", str(mount)], check=True)
        for _ in range(3):
            place.compare(*there, "list", "--all", "--json")
            # Without a cache directory the index is in memory.
            place.compare(*there, "list", "--all", "--json", XDG_CACHE_HOME="/proc/none")

    return "read-only" if mounted(place, "size=8m", run) else "read-only not tried (nothing can be mounted)"


def two_versions(place, rng):
    """Alternates with another release. Each release has its own index file; the tests of the crate check that, too."""
    path = os.environ.get("PLANWATCH_OTHER_BIN")
    if not path:
        return "two releases not tried (PLANWATCH_OTHER_BIN is not set)"
    place.compare()
    place.compare(binary=str(path))
    two = {it.name for it in place.index_files() if it.name.endswith(".db")}
    identities = lambda: {it.name: it.stat().st_ino for it in place.index_files() if it.name.endswith(".db")}
    place.failed += len(two) != 2
    before = identities()
    for n in range(20):
        edit(place, rng, n)
        place.compare()
        place.compare(binary=str(path))
    place.failed += identities() != before
    return f"two releases in turns ({len(two)} files)"
