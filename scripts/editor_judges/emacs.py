"""Drives Emacs with eglot: a daemon without a window, which types keys and runs its timers. emacsclient queries it."""
import json
import pathlib
import re
import subprocess

from editor_judges.ground import PATIENCE, block, until

# The functions that the checks call. They write results to a file as JSON, so that emacsclient does not quote them.
LISP = r"""
(setq make-backup-files nil auto-save-default nil create-lockfiles nil eglot-connect-timeout 60
      ring-bell-function 'ignore enable-local-variables nil
      ;; markdown-mode would add a last line end where there is none.
      mode-require-final-newline nil)
(defun judge-answer (value file)
  (let ((coding-system-for-write 'utf-8-unix))
    (write-region (json-serialize (list :value value) :null-object nil :false-object :json-false) nil file nil 'silent)))
(defun judge-show (path) (switch-to-buffer (find-file-noselect path)))
(defun judge-open (path)
  "Opens a file by typing its name, so that the hooks of a command run."
  (execute-kbd-macro (vconcat (kbd "C-x C-f C-a C-k") path (kbd "RET"))))
(defun judge-go (path line column)
  (judge-show path) (goto-char (point-min)) (forward-line (1- line)) (forward-char column))
(defun judge-type (length text)
  "Deletes characters, and types a text, key by key."
  (delete-char length)
  (execute-kbd-macro (vconcat (mapcar (lambda (it) (if (= it ?\n) ?\r it)) text))))
(defun judge-is-managed (path)
  (with-current-buffer (find-file-noselect path)
    (and (bound-and-true-p eglot--managed-mode) (eglot-current-server) t)))
(defun judge-diagnostics (path)
  (with-current-buffer (find-file-noselect path)
    (vconcat
     (mapcar (lambda (it)
               (let* ((spec (alist-get 'eglot-lsp-diag (flymake--diag-data it))))
                 (list :line (line-number-at-pos (flymake-diagnostic-beg it))
                       :text (buffer-substring-no-properties (flymake-diagnostic-beg it) (flymake-diagnostic-end it))
                       :code (plist-get spec :code) :message (plist-get spec :message))))
             (flymake-diagnostics)))))
(defun judge-candidates ()
  "The completions at point: label and detail."
  (let* ((capf (eglot-completion-at-point))
         (prefix (buffer-substring-no-properties (nth 0 capf) (nth 1 capf))))
    (vconcat
     (mapcar (lambda (it) (let ((item (get-text-property 0 'eglot--lsp-item it)))
                            (list :label (plist-get item :label) :detail (plist-get item :detail)
                                  :documentation (plist-get item :documentation))))
             (funcall (nth 2 capf) prefix nil t)))))
(defun judge-accept (label)
  "Inserts a completion as Emacs does when it is chosen."
  (let* ((capf (eglot-completion-at-point))
         (chosen (seq-find (lambda (it) (equal label (plist-get (get-text-property 0 'eglot--lsp-item it) :label)))
                           (funcall (nth 2 capf) "" nil t))))
    (completion--replace (nth 0 capf) (nth 1 capf) (substring-no-properties chosen))
    (funcall (plist-get (nthcdr 3 capf) :exit-function) chosen 'finished)))
(defun judge-titles ()
  (vconcat (mapcar (lambda (it) (plist-get it :title)) (eglot-code-actions (point) (point)))))
(defun judge-act (title)
  (let ((last-nonmenu-event t))
    (cl-letf (((symbol-function 'completing-read) (lambda (&rest _) title))
              ((symbol-function 'y-or-n-p) (lambda (&rest _) t))
              ((symbol-function 'read-string) (lambda (&rest _) title)))
      (eglot-code-actions (point) (point) nil t))))
(defun judge-rename (name)
  (cl-letf (((symbol-function 'y-or-n-p) (lambda (&rest _) t))) (eglot-rename name)))
(defun judge-hover ()
  (let ((it (plist-get (jsonrpc-request (eglot-current-server) :textDocument/hover (eglot--TextDocumentPositionParams)) :contents)))
    (if (stringp it) it (plist-get it :value))))
(defun judge-place (xref)
  (let ((location (xref-item-location xref)))
    (list :file (xref-file-location-file location) :line (xref-location-line location))))
(defun judge-definition () (judge-place (car (xref-backend-definitions 'eglot "LSP identifier at point."))))
(defun judge-references ()
  (vconcat (mapcar (lambda (it) (file-name-nondirectory (plist-get (judge-place it) :file)))
                   (xref-backend-references 'eglot "LSP identifier at point."))))
(defun judge-save () (cl-letf (((symbol-function 'yes-or-no-p) (lambda (&rest _) t))) (save-buffer)))
"""


class Emacs:
    """The same operations as those of Neovim. Lines count from 1, columns from 0."""

    # eglot offers no file operations to the server, so a step cannot be renamed with its file.
    renames_files = False

    def __init__(self, project):
        self.project, self.name = project, self.named()
        self.home = project.base / "emacs"
        self.home.mkdir()
        self.socket = self.home / "socket"
        self.answer = self.home / "answer.json"
        init, judge = self.home / ".emacs.d" / "init.el", self.home / "judge.el"
        init.parent.mkdir()
        init.write_text(block("elisp", "Emacs"))
        judge.write_text(LISP)
        environment = {**project.environment, "HOME": str(self.home), "TERM": "dumb", "LANG": "C.UTF-8"}
        self.log = (self.home / "log").open("wb")
        self.process = subprocess.Popen(["emacs", f"--fg-daemon={self.socket}", "-l", str(judge)], env=environment,
                                        cwd=project.root, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        until("Emacs starts", lambda: self._client("t").returncode == 0, lambda: self.said())

    @staticmethod
    def named():
        """Emacs with its version, and that of eglot if it is a package of its own."""
        form = '(princ (format "%s %s" emacs-version (or (locate-library "eglot") "")))'
        shown = subprocess.run(["emacs", "--batch", "-q", "--eval", form], capture_output=True, text=True, check=True).stdout
        eglot = re.search(r"eglot-([0-9]+(\.[0-9]+)*)", shown)
        return f"Emacs {shown.split(' ')[0]} with eglot" + (f" {eglot[1]}" if eglot else "")

    def said(self):
        self.log.flush()
        return (self.home / "log").read_text(errors="replace")[-2000:]

    def _client(self, form):
        return subprocess.run(["emacsclient", "-s", str(self.socket), "--eval", form], capture_output=True, text=True,
                              timeout=PATIENCE, stdin=subprocess.DEVNULL)

    def ask(self, form):
        """The value of a Lisp form."""
        self.do(f"(judge-answer {form} {quoted(self.answer)})")
        return json.loads(self.answer.read_text())["value"]

    def do(self, form):
        ran = self._client(f"(progn {form} t)")
        if ran.returncode != 0:
            raise RuntimeError(f"Emacs: {(ran.stdout + ran.stderr).strip()[:600]}")

    def open(self, path, is_plan=True):
        self.do(f"(judge-open {quoted(path)})")
        if is_plan:
            until(f"{self.name} attaches the server to {path.name}",
                  lambda: self.ask(f"(judge-is-managed {quoted(path)})"), self.said)
            # Flymake begins after the first key that is typed in a buffer.
            self.do(f'(progn (judge-show {quoted(path)}) (execute-kbd-macro (kbd "C-f C-b")))')

    def text(self, path):
        return self.ask(f"(with-current-buffer (find-file-noselect {quoted(path)}) (buffer-substring-no-properties (point-min) (point-max)))")

    def is_modified(self, path):
        return self.ask(f"(buffer-modified-p (find-buffer-visiting {quoted(path)}))")

    def reload(self, path):
        """Rereads a file that a command has changed, as `global-auto-revert-mode` does."""
        self.do(f"(with-current-buffer (find-buffer-visiting {quoted(path)}) (revert-buffer t t t))")

    def _at(self, path, line, column, form):
        return f"(progn (judge-go {quoted(path)} {line} {column}) {form})"

    def type_over(self, path, line, column, length, text, stays=False):
        """Replaces characters by typed ones. Emacs has no insert mode, so `stays` has no effect."""
        self.do(self._at(path, line, column, f"(judge-type {length} {quoted(text)})"))

    def escape(self):
        pass

    def diagnostics(self, path):
        return self.ask(f"(judge-diagnostics {quoted(path)})")

    def complete(self, path, line, column):
        self.here = (path, line, column)
        return self.ask(self._at(path, line, column, "(judge-candidates)"))

    def accept(self, label):
        self.do(self._at(*self.here, f"(judge-accept {quoted(label)})"))

    def dismiss(self):
        pass

    def definition(self, path, line, column):
        found = self.ask(self._at(path, line, column, "(judge-definition)"))
        return pathlib.Path(found["file"]), found["line"]

    def references(self, path, line, column):
        return sorted(set(self.ask(self._at(path, line, column, "(judge-references)"))))

    def rename(self, path, line, column, name):
        self.do(self._at(path, line, column, f"(judge-rename {quoted(name)})"))

    def hover(self, path, line, column):
        return self.ask(self._at(path, line, column, "(judge-hover)"))

    def act(self, path, line, column, title):
        titles = self.ask(self._at(path, line, column, "(judge-titles)"))
        chosen = next((it for it in titles if title in it), None)
        if chosen is None:
            raise AssertionError(f"no code action has `{title}`; there are {titles}")
        self.do(self._at(path, line, column, f"(judge-act {quoted(chosen)})"))
        return titles

    def save(self, *paths):
        for path in paths:
            self.do(f"(with-current-buffer (find-buffer-visiting {quoted(path)}) (judge-save))")

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


def quoted(text):
    """A text as a Lisp string."""
    return '"' + str(text).replace("\\", "\\\\").replace('"', '\\"') + '"'
