//! What git reports of a push, and what its errors mean.

/// The result for one ref.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushedRef {
    /// The full name at the remote.
    pub name: String,
    pub result: PushResult,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PushResult {
    /// The ref was created (`*`), replaced (`+` or a blank) or deleted (`-`).
    Done,
    /// The ref had the wanted value already (`=`). This happens, too, if an earlier push succeeded but its response was
    /// lost.
    UpToDate,
    /// The ref's value differs from the one that `--force-with-lease` names.
    Stale,
    /// Another push may have changed the ref at the same moment. A second try shows whether it did.
    Contended,
    /// Another ref of the same atomic push could not be changed.
    NotTried,
    /// The remote did not report a result.
    Unknown,
    /// The remote does not allow the change.
    Refused(String),
}

/// Reads the output of `push --porcelain`. Lines that are not about a ref are ignored.
pub(super) fn read_push(stdout: &[u8]) -> Vec<PushedRef> {
    let text = String::from_utf8_lossy(stdout);
    text.lines().filter_map(read_line).collect()
}

fn read_line(line: &str) -> Option<PushedRef> {
    let mut fields = line.splitn(3, '\t');
    let (flag, refs, summary) = (fields.next()?, fields.next()?, fields.next()?);
    let name = refs.rsplit_once(':')?.1.to_owned();
    let result = match flag {
        "*" | "+" | "-" | " " => PushResult::Done,
        "=" => PushResult::UpToDate,
        "!" => rejected(summary),
        _ => return None,
    };
    name.starts_with("refs/").then_some(PushedRef { name, result })
}

fn rejected(summary: &str) -> PushResult {
    let reason = summary.split_once('(').map_or(summary, |it| it.1).trim_end_matches(')');
    let has = |words: &[&str]| words.iter().any(|it| reason.contains(it));
    if summary.starts_with("[remote failure]") {
        return PushResult::Unknown;
    }
    if has(&["stale info"]) {
        return PushResult::Stale;
    }
    if has(&["atomic push failed", "atomic transaction failed", "transaction failed"]) {
        return PushResult::NotTried;
    }
    if has(&[
        "cannot lock ref",
        "failed to update ref",
        "already exists",
        "incorrect old value",
        "failed to lock",
    ]) || has(&["is at ", "unable to resolve reference", "failed to write"])
    {
        return PushResult::Contended;
    }
    PushResult::Refused(reason.to_owned())
}

/// What an error of git says about the remote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RemoteFault {
    /// The remote did not respond, or the connection broke.
    Silent(String),
    Refused(String),
    NoRef,
}

/// Parts of error messages of git, ssh and servers that mean a refusal. Any other error, except that of a missing ref,
/// counts as silence, and the call is tried again later.
const REFUSALS: [&str; 18] = [
    "Authentication failed",
    "could not read Username",
    "could not read Password",
    "terminal prompts disabled",
    "Permission denied",
    "access denied",
    "Access denied",
    "Host key verification failed",
    "hook declined",
    "hidden ref",
    "hash algorithm",
    "mismatched algorithms",
    "returned error: 401",
    "returned error: 403",
    "returned error: 404",
    "not enabled",
    "not allowed",
    "insufficient permission",
];

/// Parts of error messages that mean that the remote was not reached, or did not respond in time. An immediate second try
/// would only take the same time again.
const AWAY: [&str; 8] = [
    "Could not resolve",
    "Failed to connect",
    "Connection refused",
    "Connection timed out",
    "Operation timed out",
    "No route to host",
    "Network is unreachable",
    NO_ANSWER,
];

/// The beginning of the message for an exceeded time limit.
pub(super) const NO_ANSWER: &str = "there was no answer within";

/// Whether the connection may have broken after the request was carried out: the error contains none of the texts of
/// `AWAY`. Repeating the request shows whether it was carried out.
pub fn is_broken(silence: &str) -> bool {
    AWAY.iter().all(|it| !silence.contains(it))
}

/// Finds what the standard error of a fetch or a push says about the remote.
pub(super) fn fault_of(stderr: &str) -> RemoteFault {
    if stderr.contains("couldn't find remote ref") {
        return RemoteFault::NoRef;
    }
    let line = line_of(stderr);
    match REFUSALS.iter().any(|it| stderr.contains(it)) {
        true => RemoteFault::Refused(line),
        false => RemoteFault::Silent(line),
    }
}

/// Returns the most informative line: the first one that contains a text of `REFUSALS` or `AWAY`, else the first error,
/// else the last line.
fn line_of(stderr: &str) -> String {
    let lines = || stderr.split(['\n', '\r']).map(str::trim).filter(|it| !it.is_empty());
    let refusal = lines().find(|line| REFUSALS.iter().chain(&AWAY).any(|it| line.contains(it)));
    let error = || lines().find(|it| it.starts_with("fatal: ") || it.starts_with("error: "));
    let line = refusal.or_else(error).or_else(|| lines().next_back()).unwrap_or("git gave no reason");
    let line =
        line.trim_start_matches("remote: ").trim_start_matches("fatal: ").trim_start_matches("error: ");
    without_password(line).chars().filter(|it| !it.is_control()).take(300).collect()
}

/// Removes the user name and the password from a URL in an error.
fn without_password(line: &str) -> String {
    let Some((before, after)) = line.split_once("://") else { return line.to_owned() };
    let end = after.find(['/', ' ', '\'']).unwrap_or(after.len());
    match after[..end].rfind('@') {
        Some(at) => format!("{before}://{}", &after[at + 1..]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_of_a_push_is_read() {
        use PushResult::{Contended, Done, NotTried, Refused, Stale, Unknown, UpToDate};
        let table = [
            ("*\tabc:refs/planwatch/claims/p/q/1\t[new reference]", Done),
            ("+\tabc:refs/planwatch/claims/p/q/1\t1234567...89abcde (forced update)", Done),
            (" \tabc:refs/planwatch/claims/p/q/1\t1234567..89abcde", Done),
            ("-\t:refs/planwatch/claims/p/q/1\t[deleted]", Done),
            ("=\tabc:refs/planwatch/claims/p/q/1\t[up to date]", UpToDate),
            ("!\tabc:refs/planwatch/claims/p/q/1\t[rejected] (stale info)", Stale),
            ("!\tabc:refs/planwatch/claims/p/q/1\t[rejected] (atomic push failed)", NotTried),
            ("!\tabc:refs/planwatch/claims/p/q/1\t[remote rejected] (atomic transaction failed)", NotTried),
            ("!\tabc:refs/planwatch/claims/p/q/1\t[remote rejected] (reference already exists)", Contended),
            (
                "!\tabc:refs/planwatch/claims/p/q/1\t[remote rejected] (cannot lock ref 'x': is at 1 but expected 2)",
                Contended,
            ),
            ("!\tabc:refs/planwatch/claims/p/q/1\t[remote rejected] (failed to update ref)", Contended),
            (
                "!\tabc:refs/planwatch/claims/p/q/1\t[remote rejected] (pre-receive hook declined)",
                Refused("pre-receive hook declined".to_owned()),
            ),
            (
                "!\tabc:refs/planwatch/claims/p/q/1\t[remote rejected] (deny updating a hidden ref)",
                Refused("deny updating a hidden ref".to_owned()),
            ),
            (
                "!\tabc:refs/planwatch/claims/p/q/1\t[remote failure] (remote failed to report status)",
                Unknown,
            ),
        ];
        for (line, result) in table {
            let printed = format!("To /srv/x\n{line}\nDone\n");
            let name = "refs/planwatch/claims/p/q/1".to_owned();
            assert_eq!(read_push(printed.as_bytes()), [PushedRef { name, result }], "{line}");
        }
        for none in ["", "Done\n", "To x\n", "?\ta:refs/x\ty\n", "*\ta\tb\n", "*\ta:evil\tb\n"] {
            assert_eq!(read_push(none.as_bytes()), [], "{none}");
        }
    }

    #[test]
    fn a_missing_answer_and_a_refusal_are_distinguished() {
        let silent = [
            "ssh: connect to host x port 22: Connection timed out\nfatal: Could not read from remote repository.",
            "fatal: unable to access 'https://x/': Could not resolve host: x",
            "fatal: the remote end hung up unexpectedly",
            "error: RPC failed; HTTP 429 curl 22 The requested URL returned error: 429",
            "fatal: unable to access 'https://x/': The requested URL returned error: 503",
            "fatal: '/srv/x' does not appear to be a git repository\nfatal: Could not read from remote repository.",
            "",
        ];
        let is_away = |text: &str| match fault_of(text) {
            RemoteFault::Silent(line) => !is_broken(&line),
            _ => false,
        };
        assert_eq!(silent.map(is_away), [true, true, false, false, false, false, false]);
        for text in silent {
            assert!(matches!(fault_of(text), RemoteFault::Silent(_)), "{text}");
        }
        let refused = [
            "fatal: could not read Username for 'https://x': terminal prompts disabled",
            "remote: Invalid\nfatal: Authentication failed for 'https://x/'",
            "git@x: Permission denied (publickey).\nfatal: Could not read from remote repository.",
            "fatal: unable to access 'https://x/': The requested URL returned error: 403",
            "fatal: the receiving end does not support this repository's hash algorithm",
            "Host key verification failed.\nfatal: Could not read from remote repository.",
            "fatal: transport 'ext' not allowed",
        ];
        for text in refused {
            assert!(matches!(fault_of(text), RemoteFault::Refused(_)), "{text}");
        }
        assert_eq!(fault_of("fatal: couldn't find remote ref refs/heads/x"), RemoteFault::NoRef);
    }

    #[test]
    fn a_password_is_not_shown() {
        let text = "fatal: unable to access 'https://ann:secret@x.org/r': no";
        assert_eq!(fault_of(text), RemoteFault::Silent("unable to access 'https://x.org/r': no".to_owned()));
    }
}
