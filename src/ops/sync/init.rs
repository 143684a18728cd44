//! `sync init`: finds out where a remote allows claims to be stored, and writes this place into `planwatch.toml`.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Value, json};

use crate::api::config::{CONFIG_FILE, Config};
use crate::api::context::{Context, Notice};
use crate::api::error::Error;
use crate::api::requests::Mode;
use crate::api::sync_config::{ClaimsAt, Namespace, SyncConfig, is_branch, is_database};
use crate::disk::{FileOp, ProjectReport};
use crate::git::{Git, Output, PushResult, RefChange, RemoteError};
use crate::store::registry::git_refs::GitRefs;
use crate::store::registry::{ClaimRegistry, Name};
use crate::store::sync::{Description, Sync, url_of};
use crate::store::transaction;
use crate::text::diff;

#[derive(Debug, Clone, Default)]
pub struct SyncInitRequest {
    /// `None`: the only remote, or else `origin`.
    pub remote: Option<String>,
    /// `None`: the remote's default branch, or else the branch that is checked out.
    pub branch: Option<String>,
    /// The URL of a PostgreSQL database for the claims, without a password. `None`: the claims are refs at the remote.
    pub database: Option<String>,
    pub mode: Mode,
}

#[derive(Debug, Clone, Serialize)]
pub struct SyncInitReport {
    pub dry_run: bool,
    /// `made`, `joined` (the remote has a registry already) or `unchanged`.
    pub did: &'static str,
    pub id: String,
    pub remote: String,
    pub claims_at: String,
    pub branch: Option<String>,
    /// The places that the remote does not allow, with the reasons. They were tried before `claims_at`.
    pub refused: Vec<RefusedPlace>,
    pub path: String,
    pub diff: String,
}

#[derive(Debug, Clone, Serialize)]
pub struct RefusedPlace {
    pub claims_at: String,
    pub why: String,
}

impl SyncInitReport {
    pub fn to_json(&self) -> Value {
        json!(self)
    }
}

/// Sets up shared claims for this repository, or checks the existing setup.
pub fn sync_init(context: &Context, request: &SyncInitRequest) -> Result<SyncInitReport, Error> {
    let git = Git::at(context.plans.root())?;
    if let Some(config) = &context.config.sync {
        return check_configured(context, request, config);
    }
    let remote = request.remote.clone().map_or_else(|| only_remote(&git), Ok)?;
    let url = url_of(&git, &remote)?;
    let database = request.database.as_deref().map(database).transpose()?;
    let is_joinable = database.is_none();
    let (config, refused, did) = match is_joinable.then(|| joined(&git, &remote, &url)).transpose()?.flatten()
    {
        Some(config) => (config, Vec::new(), "joined"),
        None => {
            let (claims, refused) = match (database, request.mode) {
                (Some(database), _) => (database, Vec::new()),
                (None, Mode::Write) => {
                    let (namespace, refused) = probe(context, &git, (&remote, &url))?;
                    (ClaimsAt::Refs(namespace), refused)
                }
                (None, Mode::DryRun) => (ClaimsAt::Refs(Namespace::Own), Vec::new()),
            };
            let branch =
                request.branch.clone().map_or_else(|| default_branch(&git, &remote), |it| Ok(Some(it)))?;
            if let Some(wrong) = branch.as_ref().filter(|it| !is_branch(it)) {
                return Err(Error::usage(
                    format!("`{wrong}` is not a branch"),
                    "give its name, as in `main`",
                ));
            }
            let config = SyncConfig { id: fresh_id(context)?, remote, claims, branch };
            (config, refused, "made")
        }
    };
    if request.mode == Mode::Write {
        let sync = Sync::configured(context, config.clone())?;
        sync.prepare()?;
        sync.name_registry()?;
    }
    let (path, diff) = write(context, &git, &config, request.mode)?;
    Ok(SyncInitReport {
        dry_run: request.mode == Mode::DryRun,
        did,
        id: config.id.clone(),
        remote: config.remote.clone(),
        claims_at: config.claims_text(),
        branch: config.branch,
        refused,
        path,
        diff,
    })
}

fn check_configured(
    context: &Context,
    request: &SyncInitRequest,
    config: &SyncConfig,
) -> Result<SyncInitReport, Error> {
    let differs = request.remote.as_ref().is_some_and(|it| *it != config.remote)
        || request.branch.is_some() && request.branch != config.branch
        || request.database.as_ref().is_some_and(|it| config.claims != ClaimsAt::Url(it.clone()));
    if differs {
        let message = "planwatch.toml has another remote, branch or database in [sync]";
        return Err(Error::conflict(
            "registry-differs",
            message,
            "edit [sync] in planwatch.toml, then run `planwatch sync init` again",
        ));
    }
    let sync = Sync::required(context)?;
    if request.mode == Mode::Write {
        sync.prepare()?;
    }
    if sync.look()?.is_unnamed && request.mode == Mode::Write {
        sync.name_registry()?;
    }
    Ok(SyncInitReport {
        dry_run: request.mode == Mode::DryRun,
        did: "unchanged",
        id: config.id.clone(),
        remote: config.remote.clone(),
        claims_at: config.claims_text(),
        branch: config.branch.clone(),
        refused: Vec::new(),
        path: CONFIG_FILE.to_owned(),
        diff: String::new(),
    })
}

fn database(url: &str) -> Result<ClaimsAt, Error> {
    if is_database(url) {
        return Ok(ClaimsAt::Url(url.to_owned()));
    }
    let message = "the URL of a database must begin with `postgres://` and must not contain a password";
    let hint = "set PLANWATCH_CLAIMS_URL to the URL with its password, or use PostgreSQL's password file";
    Err(Error::usage(message, hint))
}

fn only_remote(git: &Git) -> Result<String, Error> {
    let names = git.call(&["remote"]).line()?;
    let names: Vec<_> = names.lines().collect();
    match names.as_slice() {
        [only] => Ok((*only).to_owned()),
        names if names.contains(&"origin") => Ok("origin".to_owned()),
        [] => {
            let hint = "`git remote add origin URL` adds one";
            Err(Error::conflict("no-remote", "this clone has no remote", hint))
        }
        names => {
            let hint = format!("name one with --remote: {}", names.join(", "));
            Err(Error::usage("which remote?", hint))
        }
    }
}

/// The remote's default branch, or else the branch that is checked out.
fn default_branch(git: &Git, remote: &str) -> Result<Option<String>, Error> {
    let prefix = format!("refs/remotes/{remote}/");
    let Output { code, stdout, .. } =
        git.call(&["symbolic-ref", "--quiet"]).arg(format!("{prefix}HEAD")).output()?;
    let named = String::from_utf8_lossy(&stdout);
    if let Some(branch) = named.trim_end().strip_prefix(&prefix).filter(|_| code == 0) {
        return Ok(Some(branch.to_owned()));
    }
    Ok(git.head_branch()?.and_then(|it| it.strip_prefix("refs/heads/").map(str::to_owned)))
}

/// The configuration of the registry that the remote has already. `None`: the remote has no record that describes a
/// registry, or this record cannot be read.
fn joined(git: &Git, remote: &str, url: &str) -> Result<Option<SyncConfig>, Error> {
    for namespace in Namespace::ALL {
        let registry = GitRefs::new(git.clone(), url.to_owned(), namespace, None);
        let listed = registry.list().map_err(|it| Sync::error_at(remote, &it))?;
        let found = listed.into_iter().find(|it| it.name == Name::registry());
        let named = found.and_then(|it| serde_json::from_str::<Description>(&it.body?).ok());
        let Some(Description { id, claims, branch, .. }) = named else { continue };
        let table: toml::Table =
            [("id", Some(id)), ("remote", Some(remote.to_owned())), ("claims", Some(claims))]
                .into_iter()
                .chain([("branch", branch)])
                .filter_map(|(key, value)| Some((key.to_owned(), toml::Value::String(value?))))
                .collect();
        // The description comes from the remote, so it is checked like a configuration file of the repository.
        return SyncConfig::checked(&table).map(Some).ok_or_else(|| {
            let message = format!("the registry at `{remote}` cannot be used by this version of planwatch");
            Error::conflict("registry-differs", message, "update planwatch")
        });
    }
    Ok(None)
}

/// Tries one place after another, until the remote allows a ref to be created and deleted there.
fn probe(
    context: &Context,
    git: &Git,
    (remote, url): (&str, &str),
) -> Result<(Namespace, Vec<RefusedPlace>), Error> {
    let mut refused = Vec::new();
    let text = format!("planwatch probe {}\n", fresh_id(context)?);
    for namespace in Namespace::ALL {
        let oid = match namespace {
            Namespace::Branches => git.write_empty_commit(&text)?,
            _ => git.write_bytes(text.as_bytes())?,
        };
        let name = format!("{}probe-{}", namespace.prefix(), &fresh_id(context)?[..8]);
        let made = RefChange { name: name.clone(), old: None, new: Some(oid.clone()) };
        let why = match git.push_refs(url, &[made], false) {
            Ok(pushed) => match pushed.into_iter().next().map(|it| it.result) {
                Some(PushResult::Done) => {
                    let gone = RefChange { name, old: Some(oid), new: None };
                    // Some hosts allow a ref to be created, but not deleted; claims need both.
                    match git.push_refs(url, &[gone], false).ok().and_then(|it| it.into_iter().next()) {
                        Some(it) if it.result == PushResult::Done => return Ok((namespace, refused)),
                        _ => "refs cannot be deleted".to_owned(),
                    }
                }
                Some(PushResult::Refused(why)) => why,
                _ => "the ref could not be created".to_owned(),
            },
            Err(RemoteError::Refused(why)) => why,
            Err(RemoteError::Silent(why)) => {
                return Err(Error::conflict(
                    "remote-unreachable",
                    format!("the remote `{remote}` does not answer: {why}"),
                    "try again later",
                ));
            }
            Err(RemoteError::NoRef) => "the ref could not be created".to_owned(),
            Err(RemoteError::Git(error)) => return Err(error.into()),
        };
        refused.push(RefusedPlace { claims_at: namespace.prefix().to_owned(), why });
    }
    let last = refused.last().map(|it| it.why.clone()).unwrap_or_default();
    Err(Error::conflict(
        "remote-refused",
        format!(
            "the remote `{remote}` does not allow claims in any of the three places that were tried: {last}"
        ),
        "check your right to push; without it, claims are valid only on this machine",
    ))
}

fn fresh_id(context: &Context) -> Result<String, Error> {
    let mut bytes = [0; 16];
    context.plans.random(&mut bytes)?;
    Ok(format!("{:032x}", u128::from_le_bytes(bytes)))
}

/// Appends the section `[sync]` to the configuration file. Returns the file's path and the diff.
fn write(context: &Context, git: &Git, config: &SyncConfig, mode: Mode) -> Result<(String, String), Error> {
    let file = context.here.config_file.as_ref().and_then(|it| git.relative(it));
    let path = file.unwrap_or_else(|| PathBuf::from(CONFIG_FILE));
    let project = context.plans.project(&git.root)?;
    let before = project.read(Path::new(&path))?;
    let text = before.clone().map(String::from_utf8).transpose().map_err(|_| {
        let message = format!("`{}` is not UTF-8", path.display());
        Error::failed("not-utf8", message, "save it as UTF-8")
    })?;
    let after = appended(text.as_deref().unwrap_or_default(), &config.to_toml());
    let shown = path.display().to_string();
    let (read, problems) = Config::read(&shown, &after);
    if read.sync.as_ref() != Some(config) {
        let message = format!(
            "`{shown}` cannot be extended: {}",
            problems.first().map_or("", |it| it.message.as_str())
        );
        return Err(Error::failed("config-invalid", message, "correct the file first"));
    }
    let diff = diff::unified(&shown, before.as_deref(), Some(after.as_bytes()));
    if mode == Mode::Write {
        let op = match before {
            Some(before) => FileOp::Change { path, before, after: after.into_bytes() },
            None => FileOp::Create { path, bytes: after.into_bytes() },
        };
        let (at, mut report) = (context.now.to_string(), ProjectReport::default());
        let waiting = &mut || context.notify(Notice::WaitingForLock);
        let written = project.write(("sync init", &at), vec![op], waiting, &mut report);
        if let Some(recovered) = &report.recovered {
            context.notify(transaction::recovered(recovered));
        }
        report.kept.iter().for_each(|it| context.notify(transaction::kept(it)));
        written?;
    }
    Ok((shown, diff))
}

fn appended(text: &str, lines: &str) -> String {
    let eol = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let gap = match text {
        "" => "",
        text if text.ends_with('\n') => eol,
        _ => &[eol, eol].concat(),
    };
    format!("{text}{gap}{}", lines.replace('\n', eol))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_are_appended_in_the_style_of_the_file() {
        assert_eq!(appended("", "[sync]\n"), "[sync]\n");
        assert_eq!(appended("by = \"ann\"\n", "[sync]\n"), "by = \"ann\"\n\n[sync]\n");
        assert_eq!(appended("by = \"ann\"", "[sync]\n"), "by = \"ann\"\n\n[sync]\n");
        assert_eq!(appended("a = 1\r\n", "[sync]\nid\n"), "a = 1\r\n\r\n[sync]\r\nid\r\n");
    }
}
