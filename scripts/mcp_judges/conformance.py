"""Runs MCP's conformance suite on the MCP server of a daemon.

The scenarios that a revision of the protocol requires are run with a baseline of expected failures. Most of these need tools
and prompts that only a test server has. A failing scenario must be in the baseline, and a scenario in the baseline must fail.
The scenarios that need no such tools are also run one by one.
"""
import json
import pathlib
import re
import subprocess
import tempfile

from mcp_judges import tools
from mcp_judges.ground import Checks, Daemon, Project

HERE = pathlib.Path(__file__).resolve().parent
SCENARIOS = {
    "2026-07-28": [
        "tools-list", "resources-list", "prompts-list", "caching", "http-header-validation", "dns-rebinding-protection",
        "sep-2164-resource-not-found", "completion-complete",
    ],
    "2025-11-25": [
        "server-initialize", "ping", "tools-list", "resources-list", "prompts-list", "dns-rebinding-protection", "completion-complete",
    ],
}


# Messages of checks that fail for a reason in the baseline.
REASONS = re.compile(
    r"there is no (tool|prompt) `(test_|greet|slow_compute|failing_job|protocol_error_job|confirm_delete|multi_input)|Tool 'json_schema_2020_12_tool' not found"
    r"|Not testable: |there is no such resource; resources are planwatch:|logging/setLevel|resources/(un)?subscribe|Prerequisite failed|fixture from Check 2 unavailable"
)
# Scenarios of the extension for tasks, and one with several rounds that a missing tool ends in the first round.
TASKS = re.compile(r"tasks-|input-required-result-multi-round")


def other_reasons(place):
    """Failed checks without a reason in the baselines."""
    for path in sorted(place.glob("*/checks.json")):
        for it in json.loads(path.read_text()):
            message = f"{it.get('errorMessage') or ''} {it.get('details') or ''}"
            if it["status"] == "FAILURE" and not REASONS.search(message) and not TASKS.search(path.parent.name):
                yield f"{path.parent.name} {it['id']}: {message[:200]}"


def run(binary):
    checks = Checks("conformance")
    program = tools.npm("conformance") / "conformance"
    with Project(binary) as project, tempfile.TemporaryDirectory() as home, Daemon(project, "--no-token") as daemon:
        environment = tools.environment(home)

        def suite(*arguments):
            command = [program, "server", "--url", f"{daemon.url}/mcp", *arguments]
            ran = subprocess.run(command, env=environment, cwd=home, capture_output=True, text=True, timeout=300)
            return ran.returncode, re.sub(r"\x1b\[[0-9;]*m", "", ran.stdout + ran.stderr)

        for revision, scenarios in SCENARIOS.items():
            for scenario in scenarios:
                code, output = suite("--scenario", scenario, "--spec-version", revision)
                failed = [line for line in output.splitlines() if "✗" in line or "FAIL" in line]
                checks.that(f"{revision} {scenario}", code == 0, f"{summary(output)} {' '.join(failed[:6]) if code else ''}")
            baseline = HERE / f"conformance-{revision}.yaml"
            code, output = suite("--requirements", revision, "--expected-failures", str(baseline), "-o", f"{home}/{revision}")
            checks.that(f"{revision} all required scenarios, with the baseline", code == 0, summary(output) if code == 0 else output[-1500:])
            others = list(other_reasons(pathlib.Path(home) / revision))
            checks.that(f"{revision} all failures have a reason in the baseline", not others, "; ".join(others[:5]))
    return checks.end()


def summary(output):
    """The line with the totals, or the last one."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return next((it for it in lines if re.search(r"\d+/\d+|[Pp]assed", it)), lines[-1] if lines else "")
