"""Edits the files of a plan as a person does while agents work on it. Saves replace the file with a rename, or write in place."""
import ctypes
import os
import random
import subprocess
import threading
import time

RENAME_EXCHANGE = 2


def exchange(one, other):
    """Exchanges two files atomically."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(-100, os.fsencode(one), -100, os.fsencode(other), RENAME_EXCHANGE) != 0:
        raise OSError(ctypes.get_errno(), "renameat2")


class Person(threading.Thread):
    """Adds lines to texts and steps to the plan, completes some steps by hand, and records the expected result.

    A save of an old text over a new one removes the changes made in between, and no program can prevent that. So the
    person avoids the steps on which agents work. Agents add notes to the step `hot`; it is saved as careful editors save:
    they check which text the save has replaced, and begin again if it is not the text that was read. Saves in place cannot
    check that. They go to steps that were completed some time ago, and to the step `in_place`, to which agents only add
    notes. Such a save may remove a note, but a note never removes a save.
    """

    def __init__(self, plan, seed, in_place, hot):
        super().__init__(daemon=True)
        self.plan, self.rng, self.in_place, self.hot = plan, random.Random(seed), in_place, hot
        self.over = threading.Event()
        self.lines, self.completed, self.added, self.faults = {}, set(), set(), []
        # The number of saves that began again, and of those during whose undo another program wrote.
        self.again, self.unlucky = 0, 0
        # Files that briefly had an old text again, until the save was undone.
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
        """Steps that were completed some time ago."""
        before = time.time() - 0.5
        steps = [it for it in self.plan.glob("step-*.md") if it.stat().st_mtime < before]
        return [it for it in steps if "\nstatus: completed\n" in it.read_text()]

    def ahead(self):
        """Steps that no agent claims soon, because enough other steps come before them."""
        def number(path):
            return float(path.stem.removeprefix("step-"))

        files = sorted((it for it in self.plan.glob("step-*.md") if number(it) < 9000), key=number)
        untouched = [it for it in files if "status:" not in it.read_text()]
        return untouched[12:]

    def save_renamed(self, path, change, nth=None):
        """Replaces the file. If it has changed since it was read, undoes the save and begins again."""
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
            # Another program was faster: undo the save and read again.
            exchange(beside, path)
            self.taken_back.add(path.name)
            self.unlucky += beside.read_bytes() != new.encode()
            beside.unlink()
            self.again += 1

    def save_in_place(self, path, nth):
        beside = self.plan.parent.parent / "in-place"
        beside.write_text(self.with_line(path.read_text(), nth))
        # `cp` is a separate process, because a thread here might pause between truncating and writing.
        subprocess.run(["cp", beside, path], check=True)
        self.lines[nth] = path
        self.saves["in place"] += 1

    def complete(self):
        """Completes a step by hand that no agent has claimed."""
        ahead = self.ahead()
        if not ahead:
            return
        path = self.rng.choice(ahead)
        self.save_renamed(path, lambda text: text.replace("---\n", "---\nstatus: completed\n", 1))
        self.completed.add(path.name)

    def add(self):
        """Adds a step: writes a temporary file and renames it."""
        number = 9000 + len(self.added)
        path = self.plan / f"step-{number}.md"
        beside = path.with_name(f".{path.name}.new")
        beside.write_text(f"---\ndepends: []\n---\n\n# Added by the person {number}\n")
        os.rename(beside, path)
        self.added.add(path.name)
