"""Sends invalid input to the server over stdio, and disconnects in ways that no client should."""
import json
import os
import random
import signal
import subprocess
import time

from mcp_judges.ground import Checks, Project
from mcp_judges.raw import MANY, MODERN, PROMPT, Raw

GARBAGE = [
    b"\n", b"   \n", b"\r\n", b"hello\n", b"{\n", b"}\n", b"null\n", b"true\n", b"1\n", b'"x"\n', b"[]\n", b"[1,2]\n", b"{}\n", b"\x00\n", b"\xff\xfe\n",
    b"\xef\xbb\xbf{}\n", b'{"jsonrpc":"2.0"}\n', b'{"jsonrpc":"1.0","id":900,"method":"ping"}\n', b'{"id":901,"method":"ping"}\n',
    b'{"jsonrpc":"2.0","id":902}\n', b'{"jsonrpc":"2.0","id":903,"method":5}\n', b'{"jsonrpc":"2.0","id":904,"method":"tools/call"}\n',
    b'{"jsonrpc":"2.0","id":905,"method":"tools/call","params":[]}\n', b'{"jsonrpc":"2.0","id":906,"method":"tools/call","params":{"name":7}}\n',
    b'{"jsonrpc":"2.0","id":907,"method":"tools/call","params":{"name":"get_plan","arguments":[1]}}\n',
    b'{"jsonrpc":"2.0","id":908,"method":"no/such/method"}\n', b'{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}\n',
    b'{"jsonrpc":"2.0","id":null,"method":"ping"}\n', b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}\n', b'{"jsonrpc":"2.0","id":[],"method":"ping"}\n',
    b'{"jsonrpc":"2.0","id":99999999999999999999999,"method":"ping"}\n', b'{"jsonrpc":"2.0","id":-1,"method":"ping"}\n',
    b'{"jsonrpc":"2.0","id":909,"result":{}}\n', b'{"jsonrpc":"2.0","id":910,"error":{"code":1,"message":"x"}}\n',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4242}}\n', b'{"jsonrpc":"2.0","method":"notifications/no-such"}\n',
    b'{"jsonrpc":"2.0","method":"notifications/progress","params":{}}\n', b'[{"jsonrpc":"2.0","id":911,"method":"ping"}]\n',
    b'{"jsonrpc":"2.0","id":912,"method":"tools/call","params":{"name":"get_plan","arguments":{"plan":"\\ud800"}}}\n',
    b'{"jsonrpc":"2.0","id":913,"id":914,"method":"ping","method":"tools/list"}\n', b'{"jsonrpc":"2.0","id":915,"method":"' + b"x" * 100_000 + b'"}\n',
    b'{"jsonrpc":"2.0","id":916,"method":"ping","params":{"a":' + b"[" * 5000 + b"]" * 5000 + b"}}\n", b"[" * 200_000 + b"\n", b"Content-Length: 10\r\n\r\n{}\n",
]


def settled(checks, name, server, seconds=PROMPT):
    """Closes the server's input, and checks the requirements for every exit."""
    code, took = server.end(seconds)
    checks.that(f"{name}: exits when its input ends", code == 0, f"exit {code} after {took:.2f} s")
    checks.same(f"{name}: only messages of the protocol on stdout", server.faults, [])
    checks.that(f"{name}: no panic", b"panicked" not in server.errors, server.errors[-800:].decode(errors="replace") if b"panicked" in server.errors else "")


def garbage(checks, project, _):
    with Raw(project) as server:
        server.hello()
        for nth, line in enumerate(GARBAGE):
            server.send(line)
            answer = server.ask("ping")
            if "result" not in answer:
                checks.that(f"alive after garbage {nth}", False, f"{line[:80]!r}: {answer}")
        unread = server.answers.get("null", [])
        checks.that("lines without a readable id are answered with id null", len(unread) >= 20 and all(it["error"]["code"] in (-32700, -32600) for it in unread), unread[:3])
        for it in (902, 903, 916):
            checks.that(f"line {it} is answered with its id", server.wait(it).get("error", {}).get("code") == -32600, server.answers.get(str(it)))
        checks.that(f"alive after {len(GARBAGE)} lines of garbage", server.call("list_plans", {})["result"]["structuredContent"]["plans"])
        settled(checks, "garbage", server)


def before_hello(checks, project, _):
    """The first message is not a valid initialization."""
    for name, line in (
        ("nothing", b""), ("garbage", b"hello\n"), ("half a message", b'{"jsonrpc":"2.0","id":1,"method":"initi'), ("a notification", b'{"jsonrpc":"2.0","method":"x"}\n'),
        ("a response", b'{"jsonrpc":"2.0","id":1,"result":{}}\n'), ("a call", b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_plans"}}\n'),
        ("an unknown version", b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"1999-01-01","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}\n'),
        ("initialize without anything", b'{"jsonrpc":"2.0","id":1,"method":"initialize"}\n'),
    ):
        with Raw(project) as server:
            if line:
                server.send(line)
            if name == "garbage":
                checks.that("garbage first, then hello", "result" in server.hello())
            elif name == "an unknown version":
                checks.that("another version is offered", "protocolVersion" in str(server.wait(1)), server.answers)
            code, took = server.end(PROMPT)
            checks.that(f"{name} first: it exits", isinstance(code, int) and code >= 0 and took < PROMPT, f"exit {code} after {took:.2f} s {server.errors[:200]!r}")
            checks.that(f"{name} first: no panic, only messages of the protocol", not server.faults and b"panicked" not in server.errors, f"{server.faults} {server.errors[-300:]!r}")


def eras(checks, project, _):
    """Messages of old and new protocol versions in one process, and unknown versions."""
    with Raw(project) as server:
        found = server.ask("server/discover", {}, is_modern=True)
        checks.that("discover", "2026-07-28" in json.dumps(found), found)
        checks.that("a modern call without more", "result" in server.call("list_plans", {}, is_modern=True))
        meta = {**MODERN, "io.modelcontextprotocol/protocolVersion": "2099-01-01"}
        answer = server.ask("tools/list", {"_meta": meta})
        checks.that("a future version is refused with a list of the supported ones", "2026-07-28" in json.dumps(answer.get("error", {})), answer)
        settled(checks, "eras", server)


def large(checks, project, size):
    """Long lines are refused or processed, and need memory of at most a few times their length."""
    for name, megabytes in (("1 MB", 1), (f"{size} MB", size)):
        with Raw(project) as server:
            server.hello()
            text = "x" * (megabytes * 1_000_000)
            before = project.bytes()
            answer = server.call("add_note", {"plan": "fence-repair", "note": text})
            reply = json.dumps(answer)
            checks.that(f"a note of {name}: the answer is short", len(reply) < 10_000, reply[:300])
            if "error" in reply and project.bytes() != before:
                checks.that(f"a note of {name}: refused without a change", False, reply[:300])
            checks.that(f"a note of {name}: alive", "result" in server.ask("ping"))
            memory = server.memory()
            checks.that(f"a note of {name}: memory", memory < 60_000_000 + megabytes * 12_000_000, f"{memory // 1_000_000} MB")
            settled(checks, f"a note of {name}", server)
    with Raw(project) as server:
        server.hello()
        server.send(b"y" * 5_000_000)
        settled(checks, "5 MB without a newline", server)


def in_flight(checks, project, requests):
    with Raw(project) as server:
        server.hello()
        sent = []
        for n in range(requests):
            if n % 10 == 0:
                sent.append(server.request("tools/call", {"name": "get_step", "arguments": {"step": f"fence-repair:{1 + n % 5}"}}))
            else:
                sent.append(server.request("ping"))
        begun = time.monotonic()
        server.send(*sent)
        missing = server.wait_for_all([it["id"] for it in sent])
        checks.that(f"{requests} requests in flight, each answered once", not missing, f"missing or twice {missing[:5]}; {time.monotonic() - begun:.1f} s")
        wrong = [it["id"] for it in sent if it["method"] == "tools/call" and server.answers[json.dumps(it["id"])][0]["result"]["structuredContent"]["id"] != it["params"]["arguments"]["step"]]
        checks.same("each gets its own answer", wrong, [])
        memory = server.memory()
        checks.that("memory", memory < 150_000_000, f"{memory // 1_000_000} MB")
        settled(checks, "in flight", server)


def ends(checks, project, _):
    """Disconnects and signals during the work."""
    writes = lambda server: [server.request("tools/call", {"name": "add_note", "arguments": {"plan": "docs-onboarding", "note": f"end {n}"}}) for n in range(200)]
    with Raw(project) as server:
        server.hello()
        server.send(*writes(server))
        # The server first answers the earlier requests, unless that takes long, so that `printf … | planwatch mcp` works.
        settled(checks, "input ends with 200 writes in flight", server, MANY)
        answered = sum(len(it) for it in server.answers.values()) - 1
        written = project.text("docs-onboarding/plan.md").count("text: end ")
        checks.that("each write except the last one was answered", 0 < answered <= written <= answered + 1, f"{answered} answered, {written} written")
    with Raw(project) as server:
        server.hello()
        server.send(b'{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"name":"add_note","arguments":{"plan":"docs-onboarding","note":"half')
        settled(checks, "half a message", server)
        checks.that("half a message does nothing", "half" not in project.text("docs-onboarding/plan.md").split("# ")[0])
    with Raw(project, reads=False) as server:
        server.send(server.request("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}))
        server.process.stdout.readline()
        # The client closes its end while answers are being sent.
        server.process.stdout.close()
        try:
            server.send(*(server.request("tools/list") for _ in range(50)))
        except BrokenPipeError:
            pass
        code, took = server.end(PROMPT)
        checks.that("the client has stopped reading", isinstance(code, int) and code >= 0 and took < PROMPT and b"panicked" not in server.errors, f"exit {code} after {took:.2f} s {server.errors[-300:]!r}")
    for number in (signal.SIGTERM, signal.SIGINT):
        with Raw(project) as server:
            server.hello()
            begun = time.monotonic()
            server.process.send_signal(number)
            try:
                code = server.process.wait(PROMPT)
            except subprocess.TimeoutExpired:
                code = "still running"
            checks.that(f"{number.name} ends it", code != "still running" and b"panicked" not in server.errors, f"exit {code} after {time.monotonic() - begun:.2f} s")
    with Raw(project, reads=False) as server:
        # Without a reader, the queue of answers must stay limited and must not prevent the exit.
        server.send(server.request("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}))
        server.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        os.set_blocking(server.process.stdin.fileno(), False)
        data = b"".join(json.dumps(server.request("tools/list")).encode() + b"\n" for _ in range(20_000))
        written, end = 0, time.monotonic() + 2
        while written < len(data) and time.monotonic() < end:
            try:
                written += os.write(server.process.stdin.fileno(), data[written:written + 65536])
            except BlockingIOError:
                time.sleep(0.01)
        memory = server.memory()
        checks.that("no reader: memory stays limited", memory < 250_000_000, f"{memory // 1_000_000} MB after {written} bytes")
        server.process.stdout.close()
        code, took = server.end(PROMPT)
        checks.that("no reader: it exits when both pipes are closed", isinstance(code, int) and took < PROMPT and b"panicked" not in server.errors, f"exit {code} after {took:.2f} s")


def identifiers(checks, project, _):
    """Unusual ids are returned unchanged, and two requests with the same id cause no failure."""
    with Raw(project) as server:
        server.hello()
        for it in ("text", "", "1", 0, -5, 2**53, "ünïcode \U0001f600", "x" * 10_000):
            server.send({"jsonrpc": "2.0", "id": it, "method": "ping"})
            checks.that(f"id {str(it)[:20]!r} is returned", server.wait(it).get("id") == it)
        call = {"jsonrpc": "2.0", "id": "twice", "method": "tools/call", "params": {"name": "briefing", "arguments": {}}}
        server.send(call, call, {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "twice"}})
        checks.that("one id for two calls, cancelled: alive", "result" in server.ask("ping"))
        settled(checks, "ids", server)


def forged(checks, project, _):
    """A person's answer to another request, or to none, is not accepted."""
    yes = {"person": {"action": "accept", "content": {"yes": True}}}
    before = project.bytes()

    def question(server, tool, arguments, **more):
        return server.call(tool, arguments, is_modern=True, **more)["result"]

    def is_asked(result):
        return result.get("resultType") == "input_required"

    with Raw(project) as server:
        asked = question(server, "delete_plan", {"plan": "fence-repair"})
        checks.that("a person is asked", is_asked(asked), asked)
        state = asked.get("requestState", "")
        key = next(iter(asked.get("inputRequests", {"person": 0})))
        yes = {key: yes["person"]}
        for name, tool, arguments, more in (
            ("without a state", "delete_plan", {"plan": "fence-repair"}, {"inputResponses": yes}),
            ("with an invented state", "delete_plan", {"plan": "fence-repair"}, {"inputResponses": yes, "requestState": "AAAA"}),
            ("with a state that was changed", "delete_plan", {"plan": "fence-repair"}, {"inputResponses": yes, "requestState": state[:-4] + "AAAA"}),
            ("with the state of another plan", "delete_plan", {"plan": "feature-auth"}, {"inputResponses": yes, "requestState": state}),
            ("with the state of another tool", "confirm_gate", {"plan": "fence-repair", "phase": "x"}, {"inputResponses": yes, "requestState": state}),
            ("with no answer", "delete_plan", {"plan": "fence-repair"}, {"inputResponses": {}, "requestState": state}),
            ("with an answer to something else", "delete_plan", {"plan": "fence-repair"}, {"inputResponses": {"other": yes[key]}, "requestState": state}),
            ("with a yes that is a text", "delete_plan", {"plan": "fence-repair"}, {"inputResponses": {key: {"action": "accept", "content": {"yes": "true"}}}, "requestState": state}),
        ):
            answer = server.call(tool, arguments, is_modern=True, **more)
            result = answer.get("result", {})
            shown = (result.get("structuredContent") or {}).get("state")
            checks.that(f"forged, {name}", is_asked(result) or "error" in answer or result.get("isError") or shown == "declined", answer)
        checks.same("forged answers changed no file", project.bytes(), before)
    with Raw(project) as other:
        result = question(other, "delete_plan", {"plan": "fence-repair"}, inputResponses=yes, requestState=state)
        checks.that("forged, with the state of another process", is_asked(result), result)
        checks.same("the state of another process changed no file", project.bytes(), before)


def is_alive(server, nth):
    """Sends a ping whose id is a text, because a changed message may have used any number."""
    server.send({"jsonrpc": "2.0", "id": f"still alive after {nth}", "method": "ping"})
    return "result" in server.wait(f"still alive after {nth}")


def fuzz(checks, project, rounds):
    """Sends messages with a few changed bytes. After every 50, a ping must be answered."""
    rng = random.Random(7)
    with Raw(project) as server:
        server.hello()
        base = [
            server.request("tools/call", {"name": "get_plan", "arguments": {"plan": "fence-repair", "limit": 3}}), server.request("tools/list"),
            server.request("tools/call", {"name": "update_step", "arguments": {"step": "feature-auth:1", "metadata": {"a": [1, None, {"b": "c"}]}}}),
            server.request("resources/read", {"uri": "planwatch:///plans/fence-repair"}), server.request("prompts/get", {"name": "ps-plan"}),
            server.request("tools/call", {"name": "add_note", "arguments": {"step": "feature-auth:1", "note": "fuzz"}}, is_modern=True),
            server.request("completion/complete", {"ref": {"type": "ref/prompt", "name": "ps-plan"}, "argument": {"name": "plan", "value": "f"}}),
        ]
        lines = [json.dumps(it).encode() for it in base]
        for nth in range(rounds):
            line = bytearray(rng.choice(lines))
            for _ in range(rng.randint(1, 4)):
                place = rng.randrange(len(line))
                match rng.randrange(4):
                    case 0:
                        line[place] = rng.randrange(256)
                    case 1:
                        del line[place:place + rng.randint(1, 9)]
                    case 2:
                        line[place:place] = rng.choice([b"{", b"}", b"[", b'"', b"\\", b"null", b"-1", b"1e999", b"\xff", b"\\u0000", b"999999999999999999999"])
                    case _:
                        other = rng.choice(lines)
                        start = rng.randrange(len(other))
                        line[place:place] = other[start:start + rng.randint(1, 40)]
                line = line or bytearray(b"{")
            server.send(bytes(line).replace(b"\n", b" ") + b"\n")
            if nth % 50 == 49 and not is_alive(server, nth):
                checks.that("alive", False, line)
                break
        checks.that(f"alive after {rounds} changed messages", is_alive(server, rounds))
        settled(checks, "fuzz", server)
    problems = [it for it in project.json("check", check=False)["problems"] if it["severity"] == "error"]
    checks.same("`planwatch check` finds no error", problems, [])


def crowd(checks, project, notes):
    """Several servers write to one step at the same time, and nothing is lost."""
    import threading

    step, servers = "feature-auth:2", 4

    def work(nth):
        with Raw(project) as server:
            server.hello()
            for n in range(notes):
                answer = server.call("add_note", {"step": step, "note": f"crowd {nth}-{n}."})
                if answer.get("result", {}).get("isError") or "error" in answer:
                    faults.append(answer)
                answer = server.call("update_step", {"step": step, "metadata": {f"key_{nth}_{n}": n}})
                if answer.get("result", {}).get("isError") or "error" in answer:
                    faults.append(answer)

    faults = []
    threads = [threading.Thread(target=work, args=(nth,)) for nth in range(servers)]
    for it in threads:
        it.start()
    for it in threads:
        it.join()
    checks.same("four servers on one step: no call was refused", faults[:1], [])
    text = project.text("feature-auth/step-2.md")
    missing = [f"{nth}-{n}" for nth in range(servers) for n in range(notes) if f"crowd {nth}-{n}." not in text]
    checks.same("each note is there", missing, [])
    found = project.json("show", step)["metadata"]
    missing = [f"key_{nth}_{n}" for nth in range(servers) for n in range(notes) if f"key_{nth}_{n}" not in found]
    checks.same("each key of metadata is there", missing, [])


PARTS = {
    # Each part with its size in the small and in the full run.
    "garbage": (garbage, 0, 0), "before hello": (before_hello, 0, 0), "eras": (eras, 0, 0), "large": (large, 8, 64),
    "in flight": (in_flight, 1000, 10_000), "ends": (ends, 0, 0), "ids": (identifiers, 0, 0), "forged": (forged, 0, 0),
    "fuzz": (fuzz, 500, 20_000), "crowd": (crowd, 5, 40),
}


def run(binary, is_small):
    checks = Checks("hostile stdio")
    for name, (part, small, whole) in PARTS.items():
        with checks.part(name), Project(binary) as project:
            part(checks, project, small if is_small else whole)
    return checks.end()
