//! `[sync]` in `planwatch.toml`: where claims are shared with other machines.
//!
//! The file comes with the repository. Therefore `remote` can only be the name of a remote in this clone's own git
//! configuration, never a URL or a path. `claims` can be the URL of a database, but without a password.

use crate::git::is_remote_name;
use crate::plan::problem::Code;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyncConfig {
    /// A random id. Clones with the same id use the same registry.
    pub id: String,
    /// The name of a remote in git's configuration.
    pub remote: String,
    pub claims: ClaimsAt,
    /// The branch on which finished work arrives, without `refs/heads/`.
    pub branch: Option<String>,
}

/// The login for a database of claims, from the environment.
#[derive(Debug, Clone, Default)]
pub struct DatabaseLogin {
    /// `PLANWATCH_CLAIMS_URL`, which can contain a password and takes precedence over the URL in `planwatch.toml`.
    pub url: Option<String>,
    /// `PGPASSWORD`.
    pub password: Option<String>,
    /// `PGPASSFILE`, or `~/.pgpass` if that variable is not set.
    pub password_file: Option<std::path::PathBuf>,
}

/// Where the claims are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimsAt {
    Refs(Namespace),
    /// The URL of a database.
    Url(String),
}

/// A namespace of refs in which claims can be stored. Some git hosts do not allow all namespaces. [`Self::Own`] is
/// preferred, because in the others the claims are visible as tags or branches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Namespace {
    Own,
    Tags,
    Branches,
}

impl Namespace {
    pub const ALL: [Self; 3] = [Self::Own, Self::Tags, Self::Branches];

    /// The prefix of the names of all refs in this namespace.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Own => "refs/planwatch/",
            Self::Tags => "refs/tags/planwatch-claims/",
            Self::Branches => "refs/heads/planwatch-claims/",
        }
    }

    pub fn read(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.prefix() == text || it.prefix().trim_end_matches('/') == text)
    }
}

/// A mistake: its code, its key, what is wrong, and a hint.
pub(super) type Mistake = (Code, String, String, String);

const KEYS: [&str; 4] = ["id", "remote", "claims", "branch"];

impl SyncConfig {
    /// Reads the table. If there is any mistake, no configuration is returned, because claims must not be stored in an
    /// unintended place.
    pub(super) fn read(table: &toml::Table) -> Result<Self, Vec<Mistake>> {
        let mut mistakes = Vec::new();
        for key in table.keys().filter(|it| !KEYS.contains(&it.as_str())) {
            let message = format!("the key `{key}` of `sync` is not known");
            mistakes.push((
                Code::UnknownKey,
                key.clone(),
                message,
                format!("known keys: {}", KEYS.join(", ")),
            ));
        }
        let mut text = |key: &'static str, is_good: &dyn Fn(&str) -> bool, hint: &str| {
            let read = table.get(key).map(|it| it.as_str().filter(|it| is_good(it)).map(str::to_owned));
            if read == Some(None) || read.is_none() && key != "branch" {
                let message = match read {
                    None => format!("`sync` has no `{key}`"),
                    Some(_) => format!("`{key}` of `sync` cannot be used"),
                };
                mistakes.push((Code::WrongType, key.to_owned(), message, hint.to_owned()));
            }
            read.flatten()
        };
        let id = text("id", &is_id, "`planwatch sync init` writes it");
        let remote =
            text("remote", &is_remote_name, "name one of this clone's remotes; `git remote` lists them");
        let claims = text("claims", &|it| claims(it).is_some(), "`planwatch sync init` writes it");
        let branch = text("branch", &is_branch, "name a branch, as in \"main\"");
        match (id, remote, claims.and_then(|it| self::claims(&it)), mistakes.is_empty()) {
            (Some(id), Some(remote), Some(claims), true) => Ok(Self { id, remote, claims, branch }),
            _ => Err(mistakes),
        }
    }

    /// Like [`Self::read`], for a table that comes from the remote.
    pub(crate) fn checked(table: &toml::Table) -> Option<Self> {
        Self::read(table).ok()
    }

    /// Where claims are stored, as a text for people. For a database it is `postgres`, without the URL.
    pub fn claims_text(&self) -> String {
        match &self.claims {
            ClaimsAt::Refs(namespace) => namespace.prefix().to_owned(),
            ClaimsAt::Url(_) => "postgres".to_owned(),
        }
    }

    /// The lines that `sync init` writes.
    pub fn to_toml(&self) -> String {
        let claims = match &self.claims {
            ClaimsAt::Refs(namespace) => namespace.prefix(),
            ClaimsAt::Url(url) => url,
        };
        let text = |it: &str| serde_json::Value::from(it).to_string();
        let head = format!(
            "[sync]
id = {}
remote = {}
claims = {}
",
            text(&self.id),
            text(&self.remote),
            text(claims)
        );
        let branch = self.branch.as_ref().map(|it| {
            format!(
                "branch = {}
",
                text(it)
            )
        });
        head + &branch.unwrap_or_default()
    }
}

fn claims(text: &str) -> Option<ClaimsAt> {
    let refs = Namespace::read(text).map(ClaimsAt::Refs);
    refs.or_else(|| is_database(text).then(|| ClaimsAt::Url(text.to_owned())))
}

/// Whether a text is the URL of a database and contains no password. A file of the repository must not contain a password.
pub fn is_database(text: &str) -> bool {
    let Some(rest) = ["postgres://", "postgresql://"].iter().find_map(|it| text.strip_prefix(it)) else {
        return false;
    };
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let user = place.rsplit_once('@').map_or("", |it| it.0);
    let names_password = query.split('&').any(|it| it.to_ascii_lowercase().starts_with("pass"));
    !user.contains(':') && !names_password && !text.contains(char::is_control)
}

fn is_id(text: &str) -> bool {
    (8..=64).contains(&text.len()) && text.bytes().all(|it| it.is_ascii_alphanumeric())
}

/// Whether a text can be the name of a branch. Git checks the other rules for such names.
pub fn is_branch(text: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | '+' | '#' | '=' | ',');
    let has = |it: &str| text.contains(it);
    !text.is_empty()
        && text.len() <= 200
        && text.chars().all(is_part)
        && !text.starts_with(['-', '/', '.'])
        && !text.ends_with(['/', '.'])
        && !has("..")
        && !has("//")
        && !has("/.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<SyncConfig, Vec<String>> {
        let table = toml::from_str(text).unwrap();
        SyncConfig::read(&table).map_err(|all| all.into_iter().map(|it| it.1).collect())
    }

    #[test]
    fn what_is_written_is_read() {
        for namespace in Namespace::ALL {
            let config = SyncConfig {
                id: "0123456789abcdef".to_owned(),
                remote: "origin".to_owned(),
                claims: ClaimsAt::Refs(namespace),
                branch: Some("release/1.x".to_owned()),
            };
            let written = config.to_toml();
            let lines = written.strip_prefix("[sync]\n").unwrap();
            assert_eq!(read(lines), Ok(config));
        }
    }

    #[test]
    fn a_file_of_the_repository_cannot_name_a_server() {
        let lines = |remote: &str, claims: &str, branch: &str| {
            format!("id = \"0123456789\"\nremote = {remote:?}\nclaims = {claims:?}\nbranch = {branch:?}")
        };
        assert!(read(&lines("origin", "refs/planwatch", "main")).is_ok());
        assert!(
            read(&lines("origin", "postgres://ann@db.example.org/plans?sslmode=require", "main")).is_ok()
        );
        for remote in ["/srv/x", "../x", "https://x.org/r", "ext::sh", "-u", "", "host:x"] {
            assert_eq!(
                read(&lines(remote, "refs/planwatch/", "main")),
                Err(vec!["remote".to_owned()]),
                "{remote}"
            );
        }
        for claims in [
            "refs/heads/",
            "refs/",
            "",
            "https://x.org",
            "postgres://ann:secret@db.example.org/plans",
            "postgres://ann@work:secret@db.example.org/plans",
            "postgres://db.example.org/plans?sslmode=require&password=secret",
        ] {
            assert_eq!(read(&lines("origin", claims, "main")), Err(vec!["claims".to_owned()]), "{claims}");
        }
        for branch in ["", "-x", "a b", "a..b", "a:b", "*", "+x:y", "/x", "x/"] {
            assert_eq!(
                read(&lines("origin", "refs/planwatch/", branch)),
                Err(vec!["branch".to_owned()]),
                "{branch}"
            );
        }
        assert_eq!(read("remote = \"origin\""), Err(vec!["id".to_owned(), "claims".to_owned()]));
        assert_eq!(
            read("id = 7\nremote = \"o\"\nclaims = \"refs/planwatch/\"\nurl = \"x\"").unwrap_err(),
            ["url", "id"]
        );
    }
}
