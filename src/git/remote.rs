//! Calls that contact a remote: fetching and pushing single refs.
//!
//! No call here prompts on a terminal, except through ssh if the user has configured it (`core.sshCommand`, `ssh.variant` or
//! `GIT_SSH_COMMAND`). A call ends if the remote is silent for [`SILENCE`]. A remote may be configured with one URL for
//! fetching and another one for pushing, which may lead to two servers. So all calls use the URL for pushing.
//!
//! # Pushes
//! Each ref is pushed with `--force-with-lease` and its old value, so it changes only if it still has that value. A `+`
//! before a refspec, or `--force`, would disable this check, and two concurrent pushes would both succeed. The user's
//! settings are overridden if they would push more (tags, submodules), require a signature that the remote does not
//! support, or run hooks.

use std::time::Duration;

use super::call::{Call, Output};
use super::error::GitError;
use super::oid::Oid;
use super::push_report::{NO_ANSWER, PushedRef, RemoteFault, fault_of, read_push};
use super::repository::Git;

/// How long a remote may be silent.
pub const SILENCE: Duration = Duration::from_secs(10);

/// The seconds of silence after which git's HTTP client gives up. By default, it waits forever.
const HTTP_SILENCE: &str = "8";

/// The command for ssh, unless the user has configured `core.sshCommand` or `ssh.variant`.
///
/// When a call ends because of [`SILENCE`], only git is ended, not its ssh. So ssh also ends by itself if the server is
/// silent for 10 seconds.
const SSH: &str =
    "ssh -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=5 -o ServerAliveCountMax=2";

/// One ref to be pushed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefChange {
    /// The full name at the remote.
    pub name: String,
    /// The value that the ref must have before the push; `None` if it must not exist.
    pub old: Option<Oid>,
    /// The value after the push; `None` deletes the ref.
    pub new: Option<Oid>,
}

/// Why a call that contacts a remote failed.
#[derive(Debug)]
pub enum RemoteError {
    /// The remote did not respond. It may have carried out a push.
    Silent(String),
    /// The remote refused the request.
    Refused(String),
    /// The remote has no such ref.
    NoRef,
    /// An error on this machine.
    Git(GitError),
}

impl From<GitError> for RemoteError {
    fn from(error: GitError) -> Self {
        match error {
            GitError::TimedOut { limit, .. } => Self::Silent(format!("{NO_ANSWER} {} s", limit.as_secs())),
            other => Self::Git(other),
        }
    }
}

impl Git {
    /// The URL for pushing to a remote of this clone's configuration. `None` if there is no such remote, or if the URL is
    /// empty or begins with `-`.
    pub fn push_url(&self, remote: &str) -> Result<Option<String>, GitError> {
        // `remote` may come from a file of the repository. Only a name is accepted, because a URL or a path would bypass
        // this clone's configuration.
        if !is_remote_name(remote) {
            return Ok(None);
        }
        let Output { code, stdout, .. } = self.call(&["remote", "get-url", "--push"]).arg(remote).output()?;
        let url = String::from_utf8_lossy(&stdout).lines().next().unwrap_or_default().to_owned();
        Ok(Some(url).filter(|it| code == 0 && !it.is_empty() && !it.starts_with('-')))
    }

    /// Fetches refs into this clone, and removes the local copies of refs that the remote no longer has.
    pub fn fetch_refs(&self, url: &str, refspecs: &[String]) -> Result<(), RemoteError> {
        let words = [
            "fetch",
            "--no-write-fetch-head",
            "--prune",
            "--no-tags",
            "--no-recurse-submodules",
            "--progress",
            "--no-auto-gc",
            "--",
        ];
        let call = self.remote_call(&words, url)?.arg(url);
        let Output { code, stderr, .. } = refspecs.iter().fold(call, Call::arg).output()?;
        match code {
            0 => Ok(()),
            _ => Err(error_of(&stderr)),
        }
    }

    /// Fetches the named objects, for a partial clone that lacks them.
    pub fn fetch_objects(&self, url: &str, oids: &[Oid]) -> Result<(), RemoteError> {
        let words = [
            "fetch",
            "--no-write-fetch-head",
            "--no-tags",
            "--no-recurse-submodules",
            "--progress",
            "--no-auto-gc",
            "--no-filter",
            "--",
        ];
        let call = self.remote_call(&words, url)?.arg(url).oids(oids);
        let Output { code, stderr, .. } = call.output()?;
        if code == 0 { Ok(()) } else { Err(error_of(&stderr)) }
    }

    /// Pushes refs, each with `--force-with-lease`. Returns a result for each ref that git reported.
    pub fn push_refs(
        &self,
        url: &str,
        changes: &[RefChange],
        is_atomic: bool,
    ) -> Result<Vec<PushedRef>, RemoteError> {
        let mut words = vec!["push", "--no-verify", "--porcelain", "--progress"];
        words.extend(is_atomic.then_some("--atomic"));
        let mut call = self.remote_call(&words, url)?;
        for change in changes {
            let old = change.old.as_ref().map_or("", Oid::as_str);
            call = call.arg(format!("--force-with-lease={}:{old}", change.name));
        }
        call = call.arg("--").arg(url);
        for change in changes {
            let new = change.new.as_ref().map_or("", Oid::as_str);
            call = call.arg(format!("{new}:{}", change.name));
        }
        let Output { stdout, stderr, .. } = call.output()?;
        let pushed = read_push(&stdout);
        if pushed.is_empty() && !changes.is_empty() {
            return Err(error_of(&stderr));
        }
        Ok(pushed)
    }

    /// Whether the remote has these refs. `names` are full names; the results are in the same order.
    pub fn remote_has(&self, url: &str, names: &[String]) -> Result<Vec<bool>, RemoteError> {
        let call = self.remote_call(&["ls-remote", "--refs", "--"], url)?.arg(url);
        let Output { code, stdout, stderr } = names.iter().fold(call, Call::arg).output()?;
        if code != 0 {
            return Err(error_of(&stderr));
        }
        let text = String::from_utf8_lossy(&stdout);
        let there: Vec<_> = text.lines().filter_map(|it| it.split_once('\t').map(|it| it.1)).collect();
        Ok(names.iter().map(|it| there.contains(&it.as_str())).collect())
    }

    /// Stores bytes as a blob, unfiltered.
    pub fn write_bytes(&self, bytes: &[u8]) -> Result<Oid, GitError> {
        let oid = self.call(&["hash-object", "-w", "--stdin"]).input(bytes).line()?;
        Oid::read(oid.as_bytes()).ok_or_else(|| GitError::unexpected("hash-object", oid))
    }

    /// Stores a text as the message of a commit without files and parents. The same text makes the same commit.
    pub fn write_empty_commit(&self, text: &str) -> Result<Oid, GitError> {
        let tree = self.call(&["hash-object", "-w", "-t", "tree", "--stdin"]).line()?;
        let tree = Oid::read(tree.as_bytes()).ok_or_else(|| GitError::unexpected("hash-object", tree))?;
        let commit = format!(
            "tree {tree}\nauthor planwatch <planwatch@localhost> 0 +0000\ncommitter planwatch \
             <planwatch@localhost> 0 +0000\n\n{text}"
        );
        let oid = self.call(&["hash-object", "-w", "-t", "commit", "--stdin"]).input(commit).line()?;
        Oid::read(oid.as_bytes()).ok_or_else(|| GitError::unexpected("hash-object", oid))
    }

    /// A call that may contact the remote. To keep git before 2.45 from fetching missing objects of a partial clone,
    /// [`Self::call`] disables all protocols. Here, this would also disable the call itself, so the protocols stay enabled.
    /// The only objects that are pushed are those that planwatch has written, so git need not fetch them first.
    fn remote_call(&self, words: &[&str], url: &str) -> Result<Call, GitError> {
        let mut call = Call::new(&self.root, words).limit(SILENCE).limit_silence();
        let settings = [
            ("push.followTags", "false"),
            ("push.recurseSubmodules", "no"),
            ("push.gpgSign", "if-asked"),
            ("push.negotiate", "false"),
            ("submodule.recurse", "false"),
            ("http.lowSpeedLimit", "1"),
            ("http.lowSpeedTime", HTTP_SILENCE),
            ("core.askPass", ""),
            ("gc.auto", "0"),
            ("maintenance.auto", "false"),
            ("fetch.writeCommitGraph", "false"),
        ];
        for (key, value) in settings {
            call = call.config(key, value);
        }
        for (name, value) in [
            ("GIT_ASKPASS", ""),
            ("SSH_ASKPASS", ""),
            ("SSH_ASKPASS_REQUIRE", "never"),
            ("GCM_INTERACTIVE", "never"),
        ] {
            call = call.variable(name, value);
        }
        if is_ssh(url) && self.config("core.sshCommand")?.is_none() && self.config("ssh.variant")?.is_none() {
            call = call.config("core.sshCommand", SSH);
        }
        Ok(call)
    }
}

fn error_of(stderr: &str) -> RemoteError {
    match fault_of(stderr) {
        RemoteFault::Silent(text) => RemoteError::Silent(text),
        RemoteFault::Refused(text) => RemoteError::Refused(text),
        RemoteFault::NoRef => RemoteError::NoRef,
    }
}

/// Whether a text has the form of a remote's name. A URL or a path with `/` does not.
pub fn is_remote_name(text: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    !text.is_empty() && !text.starts_with(['-', '.']) && text.chars().all(is_part)
}

/// Whether git uses ssh for a URL. The short form `host:path` is recognized, too.
fn is_ssh(url: &str) -> bool {
    match url.split_once("://") {
        Some((scheme, _)) => scheme.contains("ssh"),
        None => url.split_once(':').is_some_and(|(host, _)| !host.contains('/') && !url.contains("::")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_not_the_name_of_a_remote() {
        for good in ["origin", "up-stream", "a.b_c", "größe"] {
            assert!(is_remote_name(good), "{good}");
        }
        for bad in ["", "-o", "../x", "/srv/x", "host:x", "ssh://x", "ext::sh -c true", ".", "a b"] {
            assert!(!is_remote_name(bad), "{bad}");
        }
    }

    #[test]
    fn ssh_is_found_in_both_forms() {
        for ssh in ["ssh://host/x", "git+ssh://host/x", "git@host:x", "host:x/y"] {
            assert!(is_ssh(ssh), "{ssh}");
        }
        for other in ["/srv/x", "file:///srv/x", "https://host:1/x", "../a:b/c", "ext::ssh x"] {
            assert!(!is_ssh(other), "{other}");
        }
    }
}
