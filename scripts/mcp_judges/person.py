"""A person who edits the files of a plan while agents work on it, as editors save: a new file over the old one, or in place."""
import ctypes
import os
import random
import subprocess
import threading
import time

RENAME_EXCHANGE = 2


def exchange(one, other):
    """Lets two names change places in one moment."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(-100, os.fsencode(one), -100, os.fsencode(other), RENAME_EXCHANGE) != 0:
        raise OSError(ctypes.get_errno(), "renameat2")


class Person(threading.Thread):
    """Adds lines to texts and steps to the plan, and completes some steps by hand; knows what has to be there in the end.

    Whoever saves an old text over a new one takes back what came between, and no program can prevent that. So this
    person leaves alone the steps that agents are at, and saves the one that is noted on meanwhile (`hot`) as a careful
    editor does, which looks at what the save has replaced, and begins again if that is not what was read. Saves in
    place cannot look; they go to steps that were completed a while ago, and to one (`in_place`) where only notes are
    added meanwhile, of which such a save may take one away, but never the other way round.
    """

    def __init__(self, plan, seed, in_place, hot):
        super().__init__(daemon=True)
        self.plan, self.rng, self.in_place, self.hot = plan, random.Random(seed), in_place, hot
        self.over = threading.Event()
        self.lines, self.completed, self.added, self.faults = {}, set(), set(), []
        # Saves that had to begin again, and those where somebody wrote on a text that was just being taken back.
        self.again, self.unlucky = 0, 0
        # Files that held an old text again for a moment, until it was taken back.
        self.taken_back = set()
        self.saves = {"renamed": 0, "in place": 0}

    def run(self):
        nth = 0
        while not self.over.is_set():
            nth += 1
            try:
                self.one(nth)
            except Exception as error:
                self.faults.append(repr(error))
            self.over.wait(self.rng.uniform(0, 0.04))

    def one(self, nth):
        kind = nth % 8
        if kind == 0:
            self.save_in_place(self.plan / f"step-{self.in_place}.md", nth)
        elif kind == 1:
            self.save_renamed(self.plan / f"step-{self.hot}.md", lambda text: self.with_line(text, nth), nth)
        elif kind == 2 and len(self.completed) < 10:
            self.complete()
        elif kind == 3 and len(self.added) < 10:
            self.add()
        elif kind in (4, 5):
            quiet = self.quiet()
            if quiet:
                self.save_in_place(self.rng.choice(quiet), nth)
        elif kind == 6:
            self.save_renamed(self.plan / "plan.md", lambda text: self.with_line(text, nth), nth)
        else:
            ahead = self.ahead()
            if ahead:
                self.save_renamed(self.rng.choice(ahead), lambda text: self.with_line(text, nth), nth)

    @staticmethod
    def with_line(text, nth):
        return text + f"Line {nth} of the person.\n"

    def quiet(self):
        """Steps that were completed a while ago."""
        before = time.time() - 0.5
        steps = [it for it in self.plan.glob("step-*.md") if it.stat().st_mtime < before]
        return [it for it in steps if "\nstatus: completed\n" in it.read_text()]

    def ahead(self):
        """Steps that nobody takes for a while, because there are enough before them."""
        def number(path):
            return float(path.stem.removeprefix("step-"))

        files = sorted((it for it in self.plan.glob("step-*.md") if number(it) < 9000), key=number)
        untouched = [it for it in files if "status:" not in it.read_text()]
        return untouched[12:]

    def save_renamed(self, path, change, nth=None):
        """Saves a new file over the old one, unless it has changed meanwhile; then from the beginning."""
        beside = path.with_name(f".{path.name}.kate-swp")
        while True:
            read = path.read_bytes()
            new = change(read.decode())
            beside.write_bytes(new.encode())
            exchange(beside, path)
            if beside.read_bytes() == read:
                beside.unlink()
                if nth is not None:
                    self.lines[nth] = path
                self.saves["renamed"] += 1
                return
            # Somebody was faster: back, and read again.
            exchange(beside, path)
            self.taken_back.add(path.name)
            self.unlucky += beside.read_bytes() != new.encode()
            beside.unlink()
            self.again += 1

    def save_in_place(self, path, nth):
        beside = self.plan.parent.parent / "in-place"
        beside.write_text(self.with_line(path.read_text(), nth))
        # In a process of its own: a thread here might be made to wait between emptying and writing.
        subprocess.run(["cp", beside, path], check=True)
        self.lines[nth] = path
        self.saves["in place"] += 1

    def complete(self):
        """Completes a step by hand if nobody has it."""
        ahead = self.ahead()
        if not ahead:
            return
        path = self.rng.choice(ahead)
        self.save_renamed(path, lambda text: text.replace("---\n", "---\nstatus: completed\n", 1))
        self.completed.add(path.name)

    def add(self):
        """Adds a step as a file: written beside and renamed."""
        number = 9000 + len(self.added)
        path = self.plan / f"step-{number}.md"
        beside = path.with_name(f".{path.name}.new")
        beside.write_text(f"---\ndepends: []\n---\n\n# Added by the person {number}\n")
        os.rename(beside, path)
        self.added.add(path.name)
