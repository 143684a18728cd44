//! Finds the words of a shell command line, split and unquoted as by a shell. It also finds out whether these words name
//! everything that the line runs.
//!
//! Only this module uses brush-parser. Syntax that shells interpret differently counts as unknown.

use brush_parser::word::{WordPiece, WordPieceWithSource, parse as pieces};
use brush_parser::{ParserOptions, Token, TokenizerOptions, uncached_tokenize_str};

/// Longer or more deeply nested lines are not analyzed.
const MAX_BYTES: usize = 16 << 10;
const MAX_NESTED: usize = 64;
const MAX_DEPTH: usize = 4;

/// Programs that run one of their words as a command line.
const SHELLS: [&str; 24] = [
    "sh",
    "bash",
    "dash",
    "ash",
    "ksh",
    "mksh",
    "zsh",
    "yash",
    "fish",
    "csh",
    "tcsh",
    "busybox",
    "su",
    "ssh",
    "watch",
    "flock",
    "script",
    "runuser",
    "tmux",
    "screen",
    "entr",
    "watchexec",
    "hyperfine",
    "concurrently",
];

/// Programs that run their standard input if no word names a file.
const INTERPRETERS: [&str; 10] =
    ["python", "python2", "python3", "perl", "ruby", "node", "php", "lua", "deno", "bun"];

/// Programs that determine at run time what they run.
const UNKNOWABLE: [&str; 6] = ["eval", "alias", "trap", "xargs", "parallel", "fc"];

/// Options of `find` and `fd` that run a command on the files that were found.
const RUNS_FOUND: [&str; 8] = ["-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"];

/// Programs whose words are mostly task names: `make build` does not mean the directory `build`.
const RUNNERS: [&str; 36] = [
    "make", "gmake", "npm", "npx", "pnpm", "yarn", "bun", "cargo", "just", "task", "go", "gradle", "gradlew",
    "mvn", "mvnw", "rake", "rails", "bundle", "tox", "nox", "poetry", "uv", "hatch", "docker", "podman",
    "bazel", "ninja", "cmake", "meson", "dune", "mix", "stack", "cabal", "deno", "composer", "git",
];

/// Options of these programs that name a directory.
const DIRECTORY_OPTIONS: [&str; 7] =
    ["--directory", "--prefix", "--cwd", "--dir", "--workdir", "--project", "--git-dir"];

/// The maximum number of short options before a value in the same word. In `make -skf./file`, there are three: `s`, `k`
/// and `f`.
const MAX_GROUPED: usize = 16;

/// A word, without its quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    pub text: String,
    pub role: Role,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A file or a directory. The command can use any file of the directory.
    Any,
    /// A file. If a directory has this name, the word is taken for the name of a task, not of the directory.
    File,
    /// A directory that other words are relative to.
    Base,
}

impl Word {
    /// The file names that a word may contain: the word itself, and its parts, as in `--flag=./file` or
    /// `-C./directory`.
    pub fn names(&self) -> Vec<&str> {
        let text = self.text.as_str();
        let is_part = |c: char| c.is_alphanumeric() || "/._+~%-".contains(c);
        let group = text.strip_prefix('-').filter(|it| !it.starts_with('-')).unwrap_or_default();
        let n_options = group.bytes().take(MAX_GROUPED).take_while(u8::is_ascii_alphanumeric).count();
        let values = (1..=n_options).filter_map(|it| group.get(it..));
        let rests = text.match_indices(['=', ':', ',', '@']).filter_map(|(at, _)| text.get(at + 1..));
        let parts = text.split(|c| !is_part(c));
        let mut names: Vec<_> = [text].into_iter().chain(values).chain(rests).chain(parts).collect();
        names.retain(|it| !it.is_empty());
        names.sort_unstable();
        names.dedup();
        names
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Line {
    pub words: Vec<Word>,
    /// Why the words may be incomplete. `None` means that they name everything that the shell runs.
    pub unknown: Option<&'static str>,
}

/// Reads a line for `sh -c`.
pub fn read(line: &str) -> Line {
    let mut read = Line::default();
    read.add(line, 0);
    read
}

/// The words of a command between two operators, and whether its input comes from a pipe.
#[derive(Default)]
struct Simple {
    words: Vec<String>,
    is_piped_to: bool,
}

impl Line {
    fn unknown(&mut self, why: &'static str) {
        self.unknown.get_or_insert(why);
    }

    fn word(&mut self, text: &str, role: Role) {
        let word = Word { text: text.to_owned(), role };
        if !text.is_empty() && !self.words.contains(&word) {
            self.words.push(word);
        }
    }

    fn add(&mut self, line: &str, depth: usize) {
        let is_odd = |c: char| c != ' ' && c != '\t' && c != '\n' && (c.is_control() || c.is_whitespace());
        let n_nested = line.chars().filter(|it| matches!(it, '(' | '{' | '`' | '[')).count();
        if line.len() > MAX_BYTES || n_nested > MAX_NESTED || depth > MAX_DEPTH || line.contains(is_odd) {
            return self.unknown(
                "it is too long, too deeply nested, or contains unusual spaces or control characters",
            );
        }
        let options = TokenizerOptions { enable_extended_globbing: false, posix_mode: true, sh_mode: true };
        let Ok(tokens) = uncached_tokenize_str(line, &options) else {
            return self.unknown("it is not a valid shell command");
        };
        let has_functions = tokens.iter().any(|it| matches!(it, Token::Operator(it, _) if it == "("));
        for simple in self.split(&tokens) {
            self.simple(&simple, has_functions, depth);
        }
    }

    /// Splits tokens into commands at operators. The files to which output is redirected are left out.
    fn split(&mut self, tokens: &[Token]) -> Vec<Simple> {
        let mut all = vec![Simple::default()];
        let mut is_written = false;
        for (nth, token) in tokens.iter().enumerate() {
            match token {
                Token::Word(_, _) if std::mem::take(&mut is_written) => {}
                Token::Word(word, _) => {
                    let word = self.unquoted(word);
                    if let (Some(word), Some(last)) = (word, all.last_mut()) {
                        last.words.push(word);
                    }
                }
                Token::Operator(operator, _) => match operator.as_str() {
                    ">" | ">>" | ">|" | ">&" | "&>" | "&>>" => is_written = true,
                    "<" | "<>" | "<&" => {}
                    it if it.contains('<') => self.unknown("it has a here-document"),
                    "(" if is_redirection(nth.checked_sub(1).map(|it| &tokens[it])) => {
                        self.unknown("it has a process substitution");
                    }
                    it => {
                        is_written = false;
                        let is_piped_to = it.starts_with('|') && it != "||";
                        all.push(Simple { is_piped_to, ..Simple::default() });
                    }
                },
            }
        }
        all
    }

    /// Returns a word without its quotes. If the word's value is known only at run time, returns only the literal part.
    /// `None` if there is no such part, or if the word cannot be read.
    fn unquoted(&mut self, word: &str) -> Option<String> {
        let options = ParserOptions {
            enable_extended_globbing: false,
            posix_mode: true,
            sh_mode: true,
            tilde_expansion: true,
        };
        let Ok(pieces) = pieces(word, &options) else {
            self.unknown("a word of it cannot be read");
            return None;
        };
        let mut text = String::new();
        let is_plain = pieces.iter().all(|it| plain(it, false, &mut text));
        // Each of these, as a word by itself, is a command, a reserved word or a placeholder of `find`, not a pattern.
        let is_pattern = |it: &str| !matches!(it, "[" | "]" | "[[" | "]]" | "{" | "}" | "!" | "{}");
        let has_pattern = is_pattern(word) && pieces.iter().any(is_expanded);
        if !is_plain || has_pattern {
            self.unknown("it has variables, substitutions or patterns");
            // The literal part may still be a name.
            return (!text.is_empty()).then_some(text);
        }
        Some(text)
    }

    fn simple(&mut self, simple: &Simple, has_functions: bool, depth: usize) {
        let name = |it: &str| it.rsplit('/').next().unwrap_or_default().to_owned();
        let names: Vec<_> = simple.words.iter().map(|it| name(it)).collect();
        let has = |list: &[&str]| names.iter().any(|it| list.contains(&it.as_str()));
        let start = simple.words.iter().position(|it| !is_before_command(it)).unwrap_or(simple.words.len());
        let (before, command) = simple.words.split_at(start);
        before.iter().for_each(|it| self.word(it, Role::Any));
        let first = command.first().map(String::as_str).unwrap_or_default();
        let runs_found = has(&["find", "fd", "fdfind"])
            && simple.words.iter().any(|it| RUNS_FOUND.contains(&it.split('=').next().unwrap_or_default()));
        let runs_input = simple.is_piped_to && (has(&SHELLS) || has(&INTERPRETERS));
        if has(&UNKNOWABLE) || runs_found || runs_input {
            self.unknown("it builds its commands at run time");
        }
        // These commands test whether a file exists, but do not read it.
        if matches!(first, "test" | "[") && !has_functions && before.iter().all(|it| is_reserved(it)) {
            return;
        }
        let is_runner = RUNNERS.contains(&name(first).as_str());
        for (nth, word) in command.iter().enumerate() {
            let role = match first {
                "." if nth == 0 => continue,
                "cd" | "pushd" => Role::Base,
                _ if is_runner && !names_directory(command, nth) => Role::File,
                _ => Role::Any,
            };
            self.word(word, role);
        }
        // `env -S`, also `--split-string` and its abbreviations, splits its word as a shell does.
        let splits =
            has(&["env"]) && simple.words.iter().any(|it| is_grouped(it, 'S') || it.starts_with("--s"));
        if has(&SHELLS) || splits {
            let is_line = |it: &&String| it.contains(|c: char| " \t\n;&|<>()$`*?[~{\\\"'".contains(c));
            simple.words.iter().filter(is_line).for_each(|it| self.add(it, depth + 1));
        }
    }
}

fn is_redirection(token: Option<&Token>) -> bool {
    matches!(token, Some(Token::Operator(it, _)) if it.ends_with(['<', '>']))
}

/// Appends the text of a piece to `text`. Returns false if the piece's text is known only at run time.
fn plain(piece: &WordPieceWithSource, is_quoted: bool, text: &mut String) -> bool {
    match &piece.piece {
        WordPiece::Text(it) | WordPiece::SingleQuotedText(it) => text.push_str(it),
        WordPiece::DoubleQuotedSequence(inner) => {
            // All pieces are visited, to collect their literal text.
            return inner.iter().filter(|it| !plain(it, true, text)).count() == 0;
        }
        WordPiece::EscapeSequence(it) => match it.strip_prefix('\\') {
            Some("\n") => {}
            // In double quotes, a backslash before any other character is literal.
            Some(after) if !is_quoted || matches!(after, "$" | "`" | "\"" | "\\") => text.push_str(after),
            _ => text.push_str(it),
        },
        _ => return false,
    }
    true
}

/// Whether an unquoted piece contains a pattern, or a `~`, which may stand for the home directory.
fn is_expanded(piece: &WordPieceWithSource) -> bool {
    match &piece.piece {
        WordPiece::Text(it) => {
            let has_braces = it.contains('{') && (it.contains(',') || it.contains(".."));
            it.contains(['*', '?', '[']) || has_braces || it.contains('~')
        }
        _ => false,
    }
}

fn is_reserved(word: &str) -> bool {
    matches!(word, "if" | "then" | "elif" | "else" | "while" | "until" | "do" | "!" | "{" | "time")
}

/// Whether the command begins only after this word, because the word is an assignment or a reserved word.
fn is_before_command(word: &str) -> bool {
    let is_name = |it: &str| {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        !it.is_empty() && it.chars().all(is_part) && !it.starts_with(|c: char| c.is_ascii_digit())
    };
    is_reserved(word) || word.split_once('=').is_some_and(|(name, _)| is_name(name.trim_end_matches('+')))
}

/// Whether a word of a runner may name a directory. Any other word is taken for a task.
fn names_directory(command: &[String], nth: usize) -> bool {
    let word = &command[nth];
    let is_option = |it: &str| DIRECTORY_OPTIONS.contains(&it) || is_grouped(it, 'C') && it.ends_with('C');
    let is_after_option = nth > 0 && is_option(&command[nth - 1]);
    word.contains('/')
        || word.starts_with('.')
        || word.starts_with('-')
        || word.contains('=')
        || is_after_option
}

/// Whether a word is a group of short options, such as `-sC`, that contains `option`.
fn is_grouped(word: &str, option: char) -> bool {
    word.strip_prefix('-').is_some_and(|it| !it.starts_with('-') && it.contains(option))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, words: &[&str]) {
        let read = read(line);
        assert_eq!(read.unknown, None, "{line}");
        let found: Vec<_> = read.words.iter().map(|it| it.text.as_str()).collect();
        assert_eq!(found, words, "{line}");
    }

    #[test]
    fn words_are_those_of_a_shell() {
        check("", &[]);
        check("./c.sh", &["./c.sh"]);
        check("\"./c.sh\"", &["./c.sh"]);
        check("'./c.sh' a", &["./c.sh", "a"]);
        check("./c\".\"'s'h", &["./c.sh"]);
        check("./c.sh; true", &["./c.sh", "true"]);
        check("./c.sh&&true", &["./c.sh", "true"]);
        check("./c.sh||true&", &["./c.sh", "true"]);
        check("./c.sh|cat", &["./c.sh", "cat"]);
        check("./no\\ space.sh", &["./no space.sh"]);
        check("./c\\.sh", &["./c.sh"]);
        check("\"./a\\b\\$c\"", &["./a\\b$c"]);
        check("./c.\\\nsh", &["./c.sh"]);
        check("(./c.sh)", &["./c.sh"]);
        check("{ ./c.sh; }", &["{", "./c.sh", "}"]);
        check("! ./c.sh", &["!", "./c.sh"]);
        check("if ./a; then ./b; else ./c; fi", &["if", "./a", "then", "./b", "else", "./c", "fi"]);
        check("f() { ./c.sh; }; f", &["f", "{", "./c.sh", "}"]);
        check("./c.sh\n./d.sh", &["./c.sh", "./d.sh"]);
        check("./c.sh # ./d.sh", &["./c.sh"]);
        check("a#b", &["a#b"]);
        check("X=./c.sh make", &["X=./c.sh", "make"]);
        check(". ./env.sh", &["./env.sh"]);
        check("cat <./file", &["cat", "./file"]);
        check("cat<./file", &["cat", "./file"]);
        check("./a.sh >log 2>&1", &["./a.sh", "2"]);
        check("echo '$x `y` *'", &["echo", "$x `y` *"]);
        check("awk '{print $1}' f", &["awk", "{print $1}", "f"]);
        check("test -f made && ./c.sh", &["./c.sh"]);
        check("if [ -f made ]; then ./c.sh; fi", &["if", "then", "./c.sh", "fi"]);
        check("sh -c './c.sh a'", &["sh", "-c", "./c.sh a", "./c.sh", "a"]);
        check("agent {prompt}", &["agent", "{prompt}"]);
        check("flock l '\"./a b\" c'", &["flock", "l", "\"./a b\" c", "./a b", "c"]);
        check("env -vS './c.sh a'", &["env", "-vS", "./c.sh a", "./c.sh", "a"]);
    }

    #[test]
    fn a_value_in_a_word_of_short_options_is_a_name() {
        let has = |word: &str, name: &str| {
            let word = Word { text: word.to_owned(), role: Role::Any };
            word.names().contains(&name)
        };
        for (word, name) in [
            ("-Ctools", "tools"),
            ("-sCtools", "tools"),
            ("-sfmk.mk", "mk.mk"),
            ("-qc./c.sh", "./c.sh"),
            ("-vS./c.sh", "./c.sh"),
        ] {
            assert!(has(word, name), "{word}");
        }
        assert!(!has("--prefix", "fix"));
    }

    #[test]
    fn what_is_known_only_when_it_runs_is_unknown() {
        for line in [
            "$X",
            "\"$X\"/c.sh",
            "./$(echo c).sh",
            "./`echo c`.sh",
            "\"$(cat x)\"",
            "./*.sh",
            "./?.sh",
            "./[c].sh",
            "./{c,d}.sh",
            "~/c.sh",
            "sh -c \"$X\"",
            "sh -c '$X'",
            "sh -c 'sh -c \"./\\$X\"'",
            "eval ./c.sh",
            "eval './c'.sh",
            "cat <<END\n./c.sh\nEND",
            "sh <<< ./c.sh",
            "echo ./c.sh | sh",
            "cat x | /bin/bash -s",
            "cat x |python3",
            "ls | xargs sh",
            "find . -name c.sh -exec {} ';'",
            "fd c.sh --exec-batch sh",
            "fd c.sh --exec=sh",
            "alias c=./c.sh; c",
            "trap ./c.sh EXIT",
            "$'./c.sh'",
            "$\"./c.sh\"",
            "echo $((1+1))",
            "test -f $X",
            "'unclosed",
            "\"unclosed",
            "./c\u{a0}x.sh",
            "./c\rx.sh",
            "cat <(./c.sh)",
            "flock lock -c 'sh c*.sh'",
            "script -qc 'sh c*.sh' /dev/null",
            "env -S'./c*.sh a'",
        ] {
            assert!(read(line).unknown.is_some(), "{line}: {:?}", read(line));
        }
        let deep = format!("{}./c.sh{}", "(".repeat(100_000), ")".repeat(100_000));
        assert!(read(&deep).unknown.is_some());
        assert!(read(&"(".repeat(MAX_NESTED + 1)).unknown.is_some());
        read(&"(".repeat(MAX_NESTED));
        read(&"$(".repeat(MAX_NESTED));
        read(&"${x:-".repeat(MAX_NESTED));
        read(&"\"$(".repeat(MAX_NESTED));
    }

    #[test]
    fn a_word_of_a_runner_is_a_task() {
        let role = |line: &str, text: &str| {
            let line = read(line);
            line.words.iter().find(|it| it.text == text).map(|it| it.role)
        };
        assert_eq!(role("make build", "build"), Some(Role::File));
        assert_eq!(role("make -C build", "build"), Some(Role::Any));
        assert_eq!(role("make -sC build", "build"), Some(Role::Any));
        assert_eq!(role("make build/x", "build/x"), Some(Role::Any));
        assert_eq!(role("npm --prefix web test", "web"), Some(Role::Any));
        assert_eq!(role("npm --prefix web test", "test"), Some(Role::File));
        assert_eq!(role("pytest tests", "tests"), Some(Role::Any));
        assert_eq!(role("cd web && npm test", "web"), Some(Role::Base));
    }

    proptest::proptest! {
        #[test]
        fn any_line_is_read(line in "[a-c ./$`'\"\\\\(){}|&;<>!#=~*?\\[\\]\n-]{0,60}") {
            read(&line);
        }
    }
}
