"""Runs the scenarios in Neovim and Emacs. scripts/editor-check starts it with the interpreter that has pynvim."""
import pathlib
import sys

from editor_judges import scenarios
from editor_judges.emacs import Emacs
from editor_judges.ground import Project
from mcp_judges.ground import Checks


def makers(editors):
    """The functions that start each editor, by the names in the printed lines."""
    found = {}
    if "neovim" in editors:
        from editor_judges.neovim import Neovim
        for program in ["/usr/bin/nvim", str(pathlib.Path(sys.executable).parent / "nvim")]:
            found[Neovim.named(program)] = lambda project, program=program: Neovim(project, program)
    if "emacs" in editors:
        found[Emacs.named()] = Emacs
    return found


def main():
    binary, editors, size, *names = sys.argv[1:]
    chosen = scenarios.SMALL if size == "small" else scenarios.ALL
    if names:
        chosen = [it for it in scenarios.ALL if it.__name__ in names]
        unknown = set(names) - {it.__name__ for it in chosen}
        if unknown:
            sys.exit(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(it.__name__ for it in scenarios.ALL)}")
    failed = 0
    for name, make in makers(editors.split(",")).items():
        checks = Checks(name)
        for scenario in chosen:
            with checks.part(scenario.__name__), Project(binary) as project:
                editor = make(project)
                try:
                    scenario(scenarios.Scene(checks, project, editor))
                finally:
                    editor.close()
        failed += checks.end()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
