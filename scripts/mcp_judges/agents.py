"""Registers the server with the command lines of real agents, which connect to it. Needs no login and no model."""
import json
import subprocess
import tempfile

from mcp_judges import tools
from mcp_judges.calls import READING, WRITING
from mcp_judges.ground import Checks, Daemon, Project

CODEX_REQUESTS = [
    {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"clientInfo": {"name": "p", "title": "p", "version": "0"}}},
    {"jsonrpc": "2.0", "method": "initialized"},
    {"jsonrpc": "2.0", "id": 1, "method": "mcpServerStatus/list", "params": {}},
]


class Agent:
    """The command line of one agent, with a separate home directory."""

    def __init__(self, name, project, home):
        self.program = tools.npm(name) / name
        self.project, self.environment = project, {**tools.environment(home), "GEMINI_CLI_TRUST_WORKSPACE": "true"}

    def __call__(self, *arguments, seconds=90):
        ran = subprocess.run(
            [self.program, *arguments], env=self.environment, cwd=self.project.root, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=seconds,
        )
        return ran.returncode, ran.stdout + ran.stderr


def claude(checks, project, daemon, home, binary):
    agent = Agent("claude", project, home)
    checks.that("claude mcp add", agent("mcp", "add", "--scope", "user", "planwatch", "--", binary, "mcp")[0] == 0)
    checks.that("claude mcp add, by address", agent("mcp", "add", "--scope", "user", "--transport", "http", "planwatch-http", f"{daemon.url}/mcp")[0] == 0)
    _, output = agent("mcp", "list")
    lines = {line.split(":")[0].strip(): line for line in output.splitlines() if ":" in line}
    for name in ("planwatch", "planwatch-http"):
        checks.that(f"claude mcp list: {name} is connected", "Connected" in lines.get(name, ""), lines.get(name, output[-500:]))


def codex(checks, project, daemon, home, binary):
    agent = Agent("codex", project, home)
    checks.that("codex mcp add", agent("mcp", "add", "planwatch", "--", binary, "mcp")[0] == 0)
    checks.that("codex mcp add, by address", agent("mcp", "add", "planwatch-http", "--url", f"{daemon.url}/mcp")[0] == 0)
    process = subprocess.Popen(
        [agent.program, "app-server"], env=agent.environment, cwd=project.root, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True,
    )
    try:
        for it in CODEX_REQUESTS:
            process.stdin.write(json.dumps(it) + "\n")
        process.stdin.flush()
        answer = next((it for it in map(json.loads, process.stdout) if it.get("id") == 1), {})
    finally:
        process.kill()
        process.wait()
    found = {it["name"]: it for it in answer.get("result", {}).get("data", [])}
    for name in ("planwatch", "planwatch-http"):
        names = sorted(found.get(name, {}).get("tools", {}))
        checks.that(f"codex sees the tools of {name}", names == sorted(READING + WRITING), f"{len(names)} tools {str(answer)[:300] if not names else ''}")


def gemini(checks, project, daemon, home, binary):
    agent = Agent("gemini", project, home)
    checks.that("gemini mcp add", agent("mcp", "add", "-s", "user", "planwatch", binary, "mcp")[0] == 0)
    checks.that("gemini mcp add, by address", agent("mcp", "add", "-s", "user", "-t", "http", "planwatch-http", f"{daemon.url}/mcp")[0] == 0)
    _, output = agent("mcp", "list")
    for name in ("planwatch", "planwatch-http"):
        line = next((it for it in output.splitlines() if f"{name}:" in it), "")
        checks.that(f"gemini mcp list: {name} is connected", "Connected" in line, line or output[-500:])


AGENTS = {"claude": claude, "codex": codex, "gemini": gemini}


def run(binary, names):
    checks = Checks("agents")
    for name in names or AGENTS:
        with checks.part(name), Project(binary) as project, tempfile.TemporaryDirectory() as home, Daemon(project, "--no-token") as daemon:
            AGENTS[name](checks, project, daemon, home, binary)
    return checks.end()
