"""The protocol's own conformance suite against the MCP server of a daemon.

What a revision of the protocol requires of every server is run with a baseline: scenarios that want tools and prompts of
the suite's own making, which planwatch has no reason to have. The baseline is held in both directions: what fails must be
in it, and what is in it must fail. The scenarios that want nothing of the kind are run one by one as well.
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


# What a check says that failed for a reason that the baseline gives.
REASONS = re.compile(
    r"there is no (tool|prompt) `(test_|greet|slow_compute|failing_job|protocol_error_job|confirm_delete|multi_input)|Tool 'json_schema_2020_12_tool' not found"
    r"|Not testable: |there is no such resource; resources are planwatch:|logging/setLevel|resources/(un)?subscribe|Prerequisite failed|fixture from Check 2 unavailable"
)
# Of the extension for tasks, and of a conversation that a missing tool ends in its first round.
TASKS = re.compile(r"tasks-|input-required-result-multi-round")


def other_reasons(place):
    """Failed checks that no reason of the baselines explains."""
    for path in sorted(place.glob("*/checks.json")):
        for it in json.loads(path.read_text()):
            said = f"{it.get('errorMessage') or ''} {it.get('details') or ''}"
            if it["status"] == "FAILURE" and not REASONS.search(said) and not TASKS.search(path.parent.name):
                yield f"{path.parent.name} {it['id']}: {said[:200]}"


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
                code, said = suite("--scenario", scenario, "--spec-version", revision)
                failed = [line for line in said.splitlines() if "✗" in line or "FAIL" in line]
                checks.that(f"{revision} {scenario}", code == 0, f"{summary(said)} {' '.join(failed[:6]) if code else ''}")
            baseline = HERE / f"conformance-{revision}.yaml"
            code, said = suite("--requirements", revision, "--expected-failures", str(baseline), "-o", f"{home}/{revision}")
            checks.that(f"{revision} all that is required, with the baseline", code == 0, summary(said) if code == 0 else said[-1500:])
            others = list(other_reasons(pathlib.Path(home) / revision))
            checks.that(f"{revision} what fails fails for want of the suite's own things", not others, "; ".join(others[:5]))
    return checks.end()


def summary(said):
    """The line with the sums, or the last one."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return next((it for it in lines if re.search(r"\d+/\d+|[Pp]assed", it)), lines[-1] if lines else "")
