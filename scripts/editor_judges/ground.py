"""Shared by the checks with editors: the plans, the settings of docs/editors.md, and waiting."""
import re
import shutil
import time

from mcp_judges import ground

ROOT = ground.ROOT
SCRIPTS = ROOT / "scripts"
# A slow and busy machine needs less for every operation here.
PATIENCE = 30
# The current time for planwatch, both in the editor's server and in the commands that it is compared with.
NOW = "2026-11-21T12:00:00Z"
BOM = "\ufeff"
# The headings of docs/editors.md, by whether Neovim is 0.11 or newer.
NEOVIM_SETTINGS = {True: "Neovim 0.11 and newer", False: "Neovim 0.7 to 0.10"}

PLAN = "# Shop\n\nWhat the shop needs.\n\n## Steps\n- step-1: Schema\n- step-2: Cart (depends: step-1)\n- step-3: Checkout\n"
FILES = {
    "shop/plan.md": PLAN,
    "shop/step-1.md": "---\nstatus: pending # first\ndepends: []\n---\n# Schema\n\n## Tasks\n- [ ] Draw it\n- [ ] Write it\n",
    "shop/step-2.md": "---\nstatus: pending\ndepends: [1]\n---\n# Cart\n\nText of the cart: 🚀 ünïcödé.\n",
    "shop/step-3.md": "---\nstatus: pending\ndepends:\n  - 2\n  - billing:1\n---\n# Checkout\n",
    "billing/plan.md": "# Billing\n",
    "billing/step-1.md": "---\r\nstatus: pending\r\n---\r\n# Invoices\r\n\r\nWith the line ends of Windows.\r\n",
    "billing/step-2.md": f"{BOM}---\nstatus: pending # kept\ndepends: []\n---\n# Reminders\n\nWith a byte order mark, and without a last line end.",
}


class Project(ground.Project):
    """Short plans, so that each check can name the whole expected text. `README.md` beside them is not a plan."""

    def __init__(self, binary):
        super().__init__(binary, "planwatch-editor")
        shutil.rmtree(self.plans)
        for name, text in FILES.items():
            path = self.plans / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
        (self.root / "README.md").write_text("---\nstatus: pendng\n---\n# No plan\n")
        programs = self.base / "bin"
        programs.mkdir()
        # The settings call the program by its name.
        (programs / "planwatch").symlink_to(binary)
        self.environment |= {"PATH": f"{programs}:{self.environment['PATH']}", "PLANWATCH_NOW": NOW, "LANG": "C.UTF-8"}

    def after(self, *arguments):
        """The contents of all files after a command, which runs on a copy of the files as they are now."""
        with Project(self.binary) as other:
            shutil.rmtree(other.plans)
            shutil.copytree(self.plans, other.plans, ignore=shutil.ignore_patterns(".planwatch"))
            other.run(*arguments)
            return other.bytes()


def block(language, heading):
    """The first block in this language below a heading of docs/editors.md: the settings that users copy."""
    page = (ROOT / "docs" / "editors.md").read_text()
    below = page.split(f"\n## {heading}\n", 1)[1]
    return re.search(rf"^```{language}\n(.*?)^```$", below, re.DOTALL | re.MULTILINE)[1]


def until(what, is_so, seen=lambda: "", seconds=PATIENCE):
    """Waits until something holds, and returns it. Fails with what was seen instead."""
    end = time.monotonic() + seconds
    while True:
        found = is_so()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {seconds} s; seen: {seen()}")
        time.sleep(0.02)
