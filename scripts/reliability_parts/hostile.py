"""R14: with hostile files and names, no command hangs or panics, and no file is silently ignored or wrongly written to."""
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time

# Seconds after which a command is killed.
HANGS = 60.0

FM = "---\nstatus: pending\n{}\n---\n# T\n"


def yaml_cases():
    """Difficult front matters: name, text, whether writing must be refused."""
    deep = 100_000
    yield "nested-flow", FM.format("a: " + "[" * deep), True
    yield "nested-flow-closed", FM.format("a: " + "[" * 1000 + "]" * 1000), True
    yield "nested-dashes", FM.format("a:\n" + "- " * 50_000), True
    yield "nested-maps", FM.format("\n".join(" " * i + f"k{i}:" for i in range(2000))), True
    yield "nested-braces", FM.format("a: " + "{b: " * 5000), True
    laughs = "\n".join([f"a{i}: &a{i} [" + ", ".join([f"*a{i - 1}"] * 9) + "]" for i in range(1, 40)])
    yield "billion-laughs", FM.format("a0: &a0 lol\n" + laughs), None
    yield "quad", FM.format("a: &a " + "x" * 100_000 + "\nb: [" + ", ".join(["*a"] * 900) + "]"), None
    yield "many-aliases", FM.format("a: &a x\nb: [" + ", ".join(["*a"] * 20_000) + "]"), True
    merges = "\n".join([f"m{i}: &m{i}\n  <<: [" + ", ".join([f"*m{i - 1}"] * 8) + f"]\n  k{i}: 1" for i in range(1, 60)])
    yield "merge-bomb", FM.format("m0: &m0 {x: 1}\n" + merges), None
    yield "self-alias", FM.format("a: &a [*a]"), None
    yield "unknown-alias", FM.format("a: *nope"), True
    yield "many-keys", FM.format("\n".join(f"k{i}: {i}" for i in range(60_000))), None
    yield "many-tags", FM.format("tags: [" + ", ".join(f"t{i}" for i in range(60_000)) + "]"), None
    yield "many-wrong", FM.format("depends: [" + ", ".join("{a: 1}" for _ in range(30_000)) + "]"), None
    yield "long-line", FM.format("a: " + "x" * 900_000), None
    yield "long-quoted", FM.format('a: "' + "\\x41" * 200_000 + '"'), None
    yield "long-key", FM.format("k" * 5000 + ": 1"), None
    yield "too-long-front-matter", FM.format("a: " + "x" * 1_100_000), True
    yield "too-large", FM.format("a: 1") + "y" * 4_200_000, True
    yield "unclosed", "---\nstatus: pending\n", True
    yield "unclosed-quote", FM.format('a: "x'), True
    yield "tab-indent", FM.format("a:\n\tb: 1"), True
    yield "duplicate", FM.format("status: completed"), True
    yield "list-root", "---\n- a\n---\n", True
    yield "scalar-root", "---\nhello\n---\n", True
    yield "two-documents", FM.format("a: 1\n--- b"), None
    yield "directive", "---\n%YAML 1.2\nstatus: pending\n---\n", None
    yield "conflict-header", FM.format("<<<<<<< ours\na: 1\n=======\na: 2\n>>>>>>> theirs"), True
    yield "conflict-body", FM.format("a: 1") + "<<<<<<< ours\nx\n=======\ny\n>>>>>>> theirs\n", True
    yield "null-bytes", FM.format("a: \0"), None
    yield "nul-body", FM.format("a: 1") + "\0" * 100, None
    yield "only-cr", FM.format("a: 1").replace("\n", "\r"), None
    yield "mixed-eol", "---\r\nstatus: pending\na: 1\r\n---\n# T\r\n", None
    yield "bom", "\ufeff" + FM.format("a: 1"), None
    yield "two-boms", "\ufeff\ufeff" + FM.format("a: 1"), None
    yield "empty", "", None
    yield "only-dashes", "---\n---\n", None
    yield "only-newlines", "\n" * 10_000, None
    yield "no-newline", "---\nstatus: pending\n---", None
    yield "status-list", FM.format("x: 1").replace("pending", "[a, b]"), None
    yield "status-map", FM.format("x: 1").replace("pending", "{a: b}"), None
    yield "status-huge", FM.format("x: 1").replace("pending", "p" * 100_000), None
    yield "claim-text", FM.format("claim: me"), None
    yield "attempts-text", FM.format("attempts: none"), None
    yield "attempts-null-items", FM.format("attempts: [~, ~, 1, [2]]"), None
    yield "notes-map", FM.format("notes: {a: 1}"), None
    yield "time-huge", FM.format("created_at: 9999999-99-99"), None
    yield "depends-self", FM.format("depends: [1]"), None
    yield "depends-missing", FM.format("depends: [77, nope, other:3, -1, 1e3, .nan]"), None
    yield "binary-tag", FM.format("a: !!binary x"), None
    yield "odd-tags", FM.format("a: !<tag:x,2000:y> b\nc: !!float 1"), None
    yield "complex-key", FM.format("? [a, b]\n: c"), None
    yield "anchors-on-keys", FM.format("&k a: 1\n*k : 2"), None
    yield "surrogate-escape", FM.format('a: "\\ud800"'), None
    yield "control-escape", FM.format('title: "\\e[31mred\\a"'), None
    yield "body-quotes", FM.format("a: 1") + ">" * 100_000, None
    yield "body-brackets", FM.format("a: 1") + "[" * 100_000, None
    yield "body-nested-list", FM.format("a: 1") + "\n".join(" " * (2 * i) + "- x" for i in range(1000)), None
    yield "body-fences", FM.format("a: 1") + "```\n" * 20_000, None
    yield "body-boxes", FM.format("a: 1") + "## Tasks\n" + "- [ ] x\n" * 50_000, None
    yield "body-steps", FM.format("a: 1") + "## Dependencies\n" + "step-1 " * 50_000, None
    yield "body-parentheses", FM.format("a: 1") + "## Dependencies\n" + "(" * 100_000 + "step-1", None
    for nth, character in enumerate("\u0085\u2028\u2029\ufffe\ufeff\u200b\u202e\x1b\x7f\x00\x0b\x0c"):
        yield f"character-{nth}", FM.format(f"title: a{character}b"), None
    for nth, word in enumerate(["yes", "~", "0x1F", "1_000", "12:30:45", ".nan", "<<", "=", "!x", "@x", "`x", "%x", "&", "*", "|", ">", "-", "?", ":", "''", '""', "[", "{", "]", "}", ","]):
        yield f"word-{nth}", f"---\nstatus: {word}\n---\n", None
        yield f"title-{nth}", f"---\nstatus: pending\ntitle: {word}\n---\n", None
        yield f"item-{nth}", f"---\nstatus: pending\ntags: [{word}]\n---\n", None
        yield f"key-{nth}", f"---\nstatus: pending\n{word}: 1\n---\n", None
    for key in ("id", "claim", "depends", "attempts", "notes", "verify", "touches", "confirmed", "created_at", "metadata"):
        for nth, value in enumerate(("[[[]]]", "{a: {b: [c]}}", "!!set {a}")):
            yield f"{key}-{nth}", FM.format(f"{key}: {value}"), None


def bytes_cases():
    head = b"---\nstatus: pending\n---\n"
    yield "utf16", "---\nstatus: pending\n---\n".encode("utf-16"), True
    yield "utf8-broken-header", b"---\nstatus: p\xffending\n---\n", True
    yield "utf8-broken-body", head + b"x\xff\xfe", True
    yield "all-nul", b"\0" * 4096, None
    yield "random", bytes((i * 7919 + 13) % 256 for i in range(5000)), True
    for n in range(0x80, 0x100, 8):
        yield f"byte-{n:x}", head + bytes([n]), True
        yield f"byte-header-{n:x}", b"---\ntitle: a" + bytes([n]) + b"\n---\n", True


NAMES = [
    "step_1.md", "Step-1.md", "STEP-1.MD", "step-1b.md", "step-.md", "step-1.2.3.md", "step--1.md", "step-1e3.md", "step 1.md",
    "step-1 .md", "step-1.markdown", "step1.md", "step-1234567890.md", "step-1.md.txt", "step-0x1.md", "step-1,5.md", "step-+1.md",
    "step-1 (copy).md", "steps-1.md", "step-1-2.md",
]


class Case:
    """One case, in a separate plans directory."""

    def __init__(self, binary, base, name, limit):
        self.binary, self.name, self.limit = binary, name, limit
        self.root = base / "case"
        self.home = base / "home"
        shutil.rmtree(self.root, ignore_errors=True)
        self.plan = self.root / "plans" / "p"
        self.plan.mkdir(parents=True)
        (self.plan / "plan.md").write_text("---\nstatus: active\n---\n# P\n")
        self.slow = self.panics = 0
        self.worst = 0.0

    def run(self, *arguments):
        environment = {"HOME": str(self.home), "PLANWATCH_NOW": "2026-11-21T12:00:00Z", "PLANWATCH_BY": "ann", "PATH": os.environ.get("PATH", "")}
        started = time.perf_counter()
        try:
            ran = subprocess.run([self.binary, *arguments], cwd=self.root, env=environment, capture_output=True, timeout=HANGS)
        except subprocess.TimeoutExpired:
            self.slow += 1
            self.worst = HANGS
            return None
        took = time.perf_counter() - started
        self.worst = max(self.worst, took)
        self.slow += took > self.limit
        is_panic = ran.returncode in (101, 134, 139) or ran.returncode < 0 or b"panicked" in ran.stderr
        self.panics += is_panic
        return ran

    def read(self):
        """Runs every command that reads, and returns everything they printed."""
        output = b""
        for arguments in (["check"], ["list", "p"], ["--json", "list", "p"], ["show", "p:1"], ["status"], ["next", "p"], ["--no-index", "list", "p"]):
            ran = self.run(*arguments)
            output += (ran.stdout + ran.stderr) if ran else b""
        return output


def run(binary, limit):
    """Counts the commands that take more than `limit` seconds."""
    base = pathlib.Path(tempfile.mkdtemp(prefix="planwatch-r14-"))
    try:
        return judge(binary, base, limit)
    finally:
        shutil.rmtree(base, ignore_errors=True)


def judge(binary, base, limit):
    total = slow = panics = 0
    worst = (0.0, "")
    ignored, written = [], []
    cases = [(name, text.encode("utf-8", "surrogatepass"), refuse) for name, text, refuse in yaml_cases()] + list(bytes_cases())
    for name, content, refuse in cases:
        case = Case(binary, base, name, limit)
        step = case.plan / "step-1.md"
        step.write_bytes(content)
        output = case.read()
        if b"step-1" not in output and b"p:1" not in output:
            ignored.append(name)
        for arguments in (["done", "p:1", "--force"], ["set", "p:1", "title", "new"], ["note", "p:1", "n"], ["attempt", "p:1", "tried"]):
            case.run(*arguments)
        if refuse and step.read_bytes() != content:
            written.append(name)
        total, slow, panics = total + 1, slow + case.slow, panics + case.panics
        worst = max(worst, (case.worst, name))
    for name in NAMES:
        case = Case(binary, base, name, limit)
        (case.plan / name).write_bytes(b"x")
        if name != "steps-1.md" and name.encode() not in case.read():
            ignored.append(name)
        total, slow, panics = total + 1, slow + case.slow, panics + case.panics
    for name, make in special_files():
        case = Case(binary, base, name, limit)
        keep = make(case.plan / "step-1.md")
        if b"step-1" not in case.read():
            ignored.append(name)
        case.run("done", "p:1", "--force")
        total, slow, panics = total + 1, slow + case.slow, panics + case.panics
        del keep
    passed = not (slow or panics or ignored or written) and total >= 250
    details = "".join(f"; {what}: {', '.join(names[:8])}" for what, names in (("ignored", ignored), ("written", written)) if names)
    return passed, (
        f"{total} hostile files and names: {slow} commands over {limit} s, {panics} panics, {len(ignored)} silently ignored, "
        f"{len(written)} written to; slowest {worst[0] * 1000:.0f} ms ({worst[1]}){details}"
    )


def special_files():
    def unix_socket(path):
        server = socket.socket(socket.AF_UNIX)
        directory = os.getcwd()
        os.chdir(path.parent)
        try:
            server.bind(path.name)
        finally:
            os.chdir(directory)
        return server

    def directory(path):
        path.mkdir()
        (path / "plan.md").write_text("x")

    def outside(path):
        path.symlink_to("/etc/passwd")

    yield "fifo", os.mkfifo
    yield "socket", unix_socket
    yield "directory", directory
    yield "link-out", outside
    yield "link-dev-zero", lambda path: path.symlink_to("/dev/zero")
    yield "link-dangling", lambda path: path.symlink_to("nowhere.md")
    yield "link-loop", lambda path: path.symlink_to("step-1.md")
    yield "link-up", lambda path: path.symlink_to("../../../../etc/passwd")
    if os.geteuid() != 0:
        yield "unreadable", lambda path: (path.write_text("x"), path.chmod(0))
