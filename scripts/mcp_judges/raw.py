"""A connection to a server over stdio at the level of bytes, so that invalid messages can be sent."""
import json
import subprocess
import threading
import time

# Time limits in seconds, long enough for a slow shared machine.
ANSWER, PROMPT, MANY = 120, 60, 600

MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
}
INITIALIZE = {
    "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"},
}


class Raw:
    """Collects every line of the server's output. A line that is not a message of the protocol is a fault."""

    def __init__(self, project, *arguments, reads=True):
        self.process = subprocess.Popen(
            [project.binary, "mcp", *arguments], cwd=project.root, env={**project.environment, "RUST_BACKTRACE": "1"},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        self.lines, self.answers, self.faults, self.errors, self.last = [], {}, [], b"", 0
        self.lock = threading.Condition()
        self.threads = [threading.Thread(target=self._errors, daemon=True)]
        if reads:
            self.threads.append(threading.Thread(target=self._read, daemon=True))
        for it in self.threads:
            it.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            try:
                stream.close()
            except OSError:
                pass

    def _read(self):
        for line in self.process.stdout:
            try:
                message = json.loads(line)
                is_message = isinstance(message, dict) and message.get("jsonrpc") == "2.0" and line.endswith(b"\n")
            except ValueError:
                message, is_message = None, False
            with self.lock:
                if not is_message:
                    self.faults.append(line[:300])
                else:
                    self.lines.append(message)
                    if "method" not in message:
                        self.answers.setdefault(json.dumps(message.get("id")), []).append(message)
                self.lock.notify_all()

    def _errors(self):
        for line in self.process.stderr:
            self.errors = (self.errors + line)[-20_000:]

    def send(self, *messages):
        """Writes bytes unchanged, and other values as lines of JSON."""
        lines = [it if isinstance(it, bytes) else json.dumps(it).encode() + b"\n" for it in messages]
        self.process.stdin.write(b"".join(lines))
        self.process.stdin.flush()

    def request(self, method, params=None, is_modern=False):
        self.last += 1
        params = dict(params or {})
        if is_modern:
            params["_meta"] = MODERN
        return {"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}

    def ask(self, method, params=None, is_modern=False, seconds=ANSWER):
        """Sends a request and waits for its answer."""
        request = self.request(method, params, is_modern)
        self.send(request)
        return self.wait(request["id"], seconds)

    def call(self, tool, arguments, is_modern=False, **more):
        return self.ask("tools/call", {"name": tool, "arguments": arguments, **more}, is_modern)

    def hello(self):
        """Initializes the session as older clients do."""
        answer = self.ask("initialize", INITIALIZE)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    def wait(self, of, seconds=ANSWER):
        key = json.dumps(of)
        with self.lock:
            if not self.lock.wait_for(lambda: key in self.answers or self.process.poll() is not None, seconds):
                raise AssertionError(f"no answer to {of} within {seconds} s; stderr: {self.errors[-500:]!r}")
            if key not in self.answers:
                raise AssertionError(f"the server exited ({self.process.poll()}) without an answer to {of}; stderr: {self.errors[-500:]!r}")
            return self.answers[key][0]

    def wait_for_all(self, ids, seconds=MANY):
        keys = {json.dumps(it) for it in ids}
        with self.lock:
            self.lock.wait_for(lambda: keys <= set(self.answers) or self.process.poll() is not None, seconds)
            return [it for it in ids if len(self.answers.get(json.dumps(it), [])) != 1]

    def end(self, seconds=PROMPT):
        """Closes the server's input. Returns the exit code and how long the exit took."""
        begun = time.monotonic()
        try:
            self.process.stdin.close()
        except OSError:
            pass
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            code = "still running"
            self.process.kill()
        took = time.monotonic() - begun
        for it in self.threads:
            it.join(PROMPT)
        return code, took

    def memory(self):
        """The peak of resident memory in bytes."""
        for line in open(f"/proc/{self.process.pid}/status"):
            if line.startswith("VmHWM"):
                return int(line.split()[1]) * 1024
        return 0
