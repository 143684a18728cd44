"""Lists, calls and reads with the MCP inspector's command line, and checks its exit codes."""
import json
import re
import subprocess
import tempfile

from mcp_judges import tools
from mcp_judges.calls import EXECUTOR, READING, WRITING
from mcp_judges.ground import Checks, Daemon, Project

TOOLSETS = [
    ((), READING + WRITING), (("--tools", "executor"), EXECUTOR), (("--read-only",), READING),
    (("--tools", "executor", "--read-only"), [it for it in EXECUTOR if it in READING]), (("--tools", "compat"), None),
]
# The inspector's own codes.
TOOL_FAILED = 5


class Inspector:
    def __init__(self, project, home):
        self.program = tools.npm("inspector") / "mcp-inspector"
        self.project, self.environment = project, tools.environment(home)

    def __call__(self, target, *arguments):
        """Returns the exit code, the answer (parsed if it is JSON), and stderr."""
        variables = [it for key in ("HOME", "PLANWATCH_BY") for it in ("-e", f"{key}={self.project.environment[key]}")]
        place = ["--cwd", str(self.project.root)] if target[0] != "http" else []
        where = target[1:] + ["--transport", "http"] if target[0] == "http" else target
        command = [self.program, "--cli", *(variables + place if place else []), *where, *arguments, "--format", "json", "-q"]
        ran = subprocess.run(command, env=self.environment, cwd=self.project.root, capture_output=True, text=True, timeout=60)
        try:
            answer = json.loads(ran.stdout)
        except ValueError:
            answer = ran.stdout[:500]
        return ran.returncode, answer, ran.stderr


def result_of(answer):
    """The result, without the inspector's wrapper."""
    return answer.get("result", answer) if isinstance(answer, dict) else {}


def lists(checks, inspect, target, arguments, expected, eras):
    for era in eras:
        name = f"tools/list {' '.join(arguments)} {era}"
        code, answer, errors = inspect([*target, *arguments], "--method", "tools/list", "--strict", "--protocol-era", era)
        found = [it["name"] for it in result_of(answer).get("tools", [])]
        is_right = code == 0 and found and (expected is None or sorted(found) == sorted(expected))
        checks.that(name, is_right, f"{len(found)} tools, exit {code} {'' if is_right else errors[-600:]}")
        # --strict requires a type for every field of a result, which would not fit into 20 kB. Only warnings about the arguments,
        # which a model writes, count.
        paths = re.findall(r"Path: (\S+)", errors)
        wrong = [it for it in paths if not it.startswith("outputSchema")]
        checks.that(f"{name}: no warnings of --strict about arguments", not wrong, f"{' '.join(wrong[:5])} ({len(paths) - len(wrong)} about results)")


def calls(checks, inspect, target, project, eras):
    project.run("decide", "Colour", "Green")
    for era in eras:
        more = ("--protocol-era", era)
        call = lambda tool, arguments: inspect(target, "--method", "tools/call", "--tool-name", tool, "--tool-args-json", json.dumps(arguments), *more)
        code, answer, errors = call("list_plans", {"limit": 2})
        plans = result_of(answer).get("structuredContent", {}).get("plans", [])
        checks.that(f"tools/call list_plans {era}", code == 0 and len(plans) == 2, f"exit {code} {errors[-300:]}")
        code, answer, _ = call("add_note", {"plan": "docs-onboarding", "note": f"by the inspector, {era}"})
        checks.that(f"tools/call add_note {era}", code == 0 and f"by the inspector, {era}" in project.text("docs-onboarding/plan.md"), f"exit {code}")
        for name, tool, arguments in (
            ("a refused call", "get_plan", {"plan": "no-such-plan"}), ("an unknown tool", "no_such_tool", {}),
            ("deleting without a person", "delete_plan", {"plan": "fence-repair"}),
        ):
            code, answer, errors = call(tool, arguments)
            checks.that(f"{name} {era}: exit {TOOL_FAILED}", code == TOOL_FAILED, f"exit {code} {errors[-300:]}")
        checks.that("nothing was deleted", (project.plans / "fence-repair" / "plan.md").is_file())
        code, answer, errors = inspect(target, "--method", "resources/list", *more)
        checks.that(f"resources/list {era}", code == 0 and len(result_of(answer).get("resources", [])) >= 5, f"exit {code} {errors[-300:]}")
        code, answer, errors = inspect(target, "--method", "resources/templates/list", *more)
        checks.that(f"resources/templates/list {era}", code == 0 and result_of(answer).get("resourceTemplates"), f"exit {code} {errors[-300:]}")
        for uri in ("planwatch:///plans/fence-repair", "planwatch:///plans/fence-repair/steps/2", "planwatch:///decisions/colour", "planwatch:///briefing"):
            code, answer, errors = inspect(target, "--method", "resources/read", "--uri", uri, *more)
            checks.that(f"resources/read {uri} {era}", code == 0 and result_of(answer).get("contents"), f"exit {code} {errors[-300:]}")
        code, answer, errors = inspect(target, "--method", "resources/read", "--uri", "planwatch:///plans/none", *more)
        checks.that(f"resources/read of a missing resource {era}: not 0", code != 0, f"exit {code}")
        code, answer, errors = inspect(target, "--method", "prompts/list", *more)
        checks.that(f"prompts/list {era}", code == 0 and len(result_of(answer).get("prompts", [])) == 3, f"exit {code} {errors[-300:]}")
        for prompt, arguments in (("ps-plans", ()), ("ps-execute", ("--prompt-args", "plan=fence-repair"))):
            code, answer, errors = inspect(target, "--method", "prompts/get", "--prompt-name", prompt, *arguments, *more)
            checks.that(f"prompts/get {prompt} {era}", code == 0 and result_of(answer).get("messages"), f"exit {code} {errors[-300:]}")


def run(binary, is_small, over_http):
    checks = Checks("inspector")
    eras = ["modern"] if is_small else ["modern", "legacy"]
    with Project(binary) as project, tempfile.TemporaryDirectory() as home:
        inspect, stdio = Inspector(project, home), [binary, "mcp"]
        with checks.part("lists"):
            for arguments, expected in TOOLSETS[:1] if is_small else TOOLSETS:
                lists(checks, inspect, stdio, arguments, expected, eras)
        with checks.part("calls over stdio"):
            calls(checks, inspect, stdio, project, eras)
    if over_http:
        with checks.part("calls over HTTP"), Project(binary) as project, tempfile.TemporaryDirectory() as home, Daemon(project, "--no-token") as daemon:
            calls(checks, Inspector(project, home), ["http", f"{daemon.url}/mcp"], project, eras)
            load(checks, Inspector(project, home), daemon)
    return checks.end()


def load(checks, inspect, daemon):
    code, answer, errors = inspect(
        ["http", f"{daemon.url}/mcp"], "--protocol-era", "modern", "--method", "tools/call", "--tool-name", "list_plans",
        "--load", "--load-requests", "200", "--load-concurrency", "8",
    )
    checks.that("200 calls, 8 at a time", code == 0, f"exit {code} {errors[-300:]} {str(answer)[:200]}")
