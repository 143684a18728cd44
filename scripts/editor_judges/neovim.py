"""Drives Neovim as an embedded child: keys are typed, and its buffers, marks and menus are read through pynvim."""
import logging
import pathlib
import subprocess

import pynvim

from editor_judges.ground import NEOVIM_SETTINGS, block, until

# Each child that has ended would be reported as a warning.
logging.getLogger("asyncio").setLevel(logging.ERROR)

# The functions that the checks call. They work in 0.7 and in 0.11.
LUA = r"""
judge = { said = {} }
vim.notify = function(message) table.insert(judge.said, tostring(message)) end
function judge.clients()
  local all = vim.lsp.get_clients and vim.lsp.get_clients({ bufnr = 0 }) or vim.tbl_values(vim.lsp.buf_get_clients(0))
  return vim.tbl_filter(function(it) return it.name == 'planwatch' and it.initialized end, all)
end
function judge.diagnostics(path)
  local buffer = vim.fn.bufnr(path)
  local found = {}
  for _, it in ipairs(vim.diagnostic.get(buffer)) do
    local ok, text = pcall(vim.api.nvim_buf_get_text, buffer, it.lnum, it.col, it.end_lnum, it.end_col, {})
    local code = it.code or (it.user_data and it.user_data.lsp and it.user_data.lsp.code)
    table.insert(found, { line = it.lnum + 1, text = ok and table.concat(text, '\n') or '?', code = code, message = it.message })
  end
  return found
end
function judge.act(title)
  judge.titles = vim.NIL
  judge.said = {}
  vim.ui.select = function(items, options, choose)
    judge.titles = vim.tbl_map(options.format_item, items)
    for nth, shown in ipairs(judge.titles) do
      if shown:find(title, 1, true) then return choose(items[nth], nth) end
    end
    choose(nil)
  end
  vim.lsp.buf.code_action()
end
function judge.hover()
  local position = vim.lsp.util.make_position_params(0, judge.clients()[1].offset_encoding)
  for _, it in pairs(vim.lsp.buf_request_sync(0, 'textDocument/hover', position, 10000) or {}) do
    local contents = it.result and it.result.contents
    if contents then return type(contents) == 'string' and contents or contents.value end
  end
  return ''
end
function judge.hints()
  if not vim.lsp.inlay_hint then return {} end
  return vim.tbl_map(function(it)
    local hint = it.inlay_hint
    return { line = hint.position.line + 1, label = type(hint.label) == 'string' and hint.label or hint.label[1].value }
  end, vim.lsp.inlay_hint.get({ bufnr = 0 }))
end
function judge.lenses()
  return vim.tbl_map(function(it) return it.command and it.command.title or '' end, vim.lsp.codelens.get(0))
end
"""


class Neovim:
    """The same operations as those of Emacs. Lines count from 1, columns from 0 in characters."""

    renames_files = True

    def __init__(self, project, program):
        self.project, self.program = project, program
        self.home = project.base / f"neovim-{pathlib.Path(program).parent.parent.name}"
        self.home.mkdir()
        self.name = self.named(program)
        major, minor = map(int, self.name.split(" ")[1].split(".")[:2])
        self.is_new = (major, minor) >= (0, 11)
        init = self.home / "init.lua"
        init.write_text(block("lua", NEOVIM_SETTINGS[self.is_new]))
        variables = [f"{name}={value}" for name, value in project.environment.items()]
        environment = ["env", "-i", "-C", str(project.root), *variables, f"HOME={self.home}", "TERM=xterm"]
        self.vim = pynvim.attach("child", argv=[*environment, program, "-u", str(init), "-n", "-i", "NONE", "--embed", "--headless"])
        self.vim.exec_lua(LUA)
        self.vim.command("set hidden completeopt=menuone,noselect nofixendofline")

    @staticmethod
    def named(program):
        shown = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
        return "Neovim " + shown.splitlines()[0].removeprefix("NVIM v")

    def lua(self, expression, *arguments):
        return self.vim.exec_lua(f"return {expression}", *arguments)

    def said(self):
        return self.lua("judge.said")

    def open(self, path, is_plan=True):
        self.vim.command(f"edit {self.vim.call('fnameescape', str(path))}")
        if is_plan:
            until(f"{self.name} attaches the server to {path.name}", lambda: self.lua("#judge.clients()") == 1,
                  lambda: f"{self.said()}; {self.server_log()}")

    def server_log(self):
        logs = [it.read_text(errors="replace")[-1500:] for it in self.home.rglob("*lsp*.log")]
        return " ".join(logs)

    def _buffer(self, path):
        number = self.vim.call("bufnr", str(path))
        return next(it for it in self.vim.buffers if it.number == number)

    def text(self, path):
        # Neovim 0.7 does not read a file that it has renamed.
        self.vim.call("bufload", str(path))
        return "\n".join(self._buffer(path)[:])

    def is_modified(self, path):
        return self._buffer(path).options["modified"]

    def reload(self, path):
        """Rereads a file that a command has changed, as `autoread` does on the next key."""
        self.vim.command("checktime")

    def _go(self, path, line, column):
        if self.vim.current.buffer.name != str(path):
            self.open(path)
        text = self.vim.current.buffer[line - 1]
        self.vim.current.window.cursor = (line, len(text[:column].encode()))

    def type_over(self, path, line, column, length, text, stays=False):
        """Replaces characters by typed ones. `stays` leaves Neovim in insert mode."""
        self._go(path, line, column)
        is_end = column >= len(self.vim.current.buffer[line - 1])
        keys = f"{length}s" if length else ("A" if is_end else "i")
        self._input(keys + text.replace("<", "<lt>") + ("" if stays else "<Esc>"))

    def _input(self, keys):
        while keys:
            keys = keys[self.vim.input(keys):]
        # Keys are processed in order. The answer to a later request shows that they have been processed.
        self.vim.eval("1")

    def escape(self):
        self._input("<Esc>")

    def diagnostics(self, path):
        return self.lua("judge.diagnostics(...)", str(path))

    def complete(self, path, line, column):
        """The completions at a place, shown in the menu: label and detail."""
        self._go(path, line, column)
        is_end = column >= len(self.vim.current.buffer[line - 1])
        self._input(("A" if is_end else "i") + "<C-x><C-o>")
        until("the menu opens", lambda: self.vim.call("pumvisible") == 1, lambda: (self.text(path), self.said(), self.server_log()))
        items = self.vim.call("complete_info", ["items"])["items"]
        return [{"label": it.get("abbr") or it["word"], "detail": f"{it.get('menu', '')} {it.get('info', '')}"} for it in items]

    def accept(self, label):
        """Chooses a completion of the open menu by keys."""
        items = self.vim.call("complete_info", ["items"])["items"]
        nth = next(nth for nth, it in enumerate(items) if (it.get("abbr") or it["word"]) == label)
        self._input("<C-n>" * (nth + 1) + "<C-y><Esc>")

    def dismiss(self):
        self._input("<C-e><Esc>")

    def definition(self, path, line, column):
        """Jumps, and returns where to."""
        self._go(path, line, column)
        before = (str(path), line)
        self.vim.exec_lua("judge.said = {}; vim.lsp.buf.definition()")

        def place():
            found = tuple(self.lua("{ vim.api.nvim_buf_get_name(0), vim.fn.line('.') }"))
            return found if found != before else None

        found = until("go to definition moves", place, lambda: (before, self.said()))
        return pathlib.Path(found[0]), found[1]

    def references(self, path, line, column):
        """The files that refer to what is at a place."""
        self._go(path, line, column)
        self.vim.call("setqflist", [])
        self.vim.exec_lua("vim.lsp.buf.references()")
        found = until("references are listed", lambda: self.vim.call("getqflist"), self.said)
        self.vim.command("cclose")
        return sorted({pathlib.Path(self.vim.call("bufname", it["bufnr"])).name for it in found})

    def rename(self, path, line, column, name):
        self._go(path, line, column)
        self.vim.exec_lua("judge.said = {}; vim.lsp.buf.rename(...)", name)

    def hover(self, path, line, column):
        self._go(path, line, column)
        return self.lua("judge.hover()")

    def hints(self, path):
        self._go(path, 1, 0)
        return self.lua("judge.hints()")

    def lenses(self, path):
        self._go(path, 1, 0)
        self.vim.exec_lua("if vim.fn.has('nvim-0.11') == 1 then vim.lsp.codelens.refresh({ bufnr = 0 }) else vim.lsp.codelens.refresh() end")
        return until("lenses are shown", lambda: self.lua("judge.lenses()"), self.said)

    def act(self, path, line, column, title):
        """Chooses the first code action with these words in its title. Returns all titles."""
        self._go(path, line, column)
        self.vim.exec_lua("judge.act(...)", title)
        titles = until("code actions are offered", lambda: self.lua("judge.titles") or self.said(), self.server_log)
        if not any(title in it for it in titles):
            raise AssertionError(f"no code action has `{title}`; there are {titles}")
        return titles

    def save(self, *paths):
        for path in paths:
            self.vim.command(f"buffer {self.vim.call('fnameescape', str(path))}")
            self.vim.command("write")

    def close(self):
        try:
            self.vim.command("qall!", async_=True)
        except OSError:
            pass
        self.vim.close()
