//! git's `user.name`, read from its configuration files; no process is started.
//!
//! Reads the repository's file and the user's two files. Included files are not read, because includes can be
//! conditional.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// At most this many bytes of a file are read.
const LIMIT: u64 = 1 << 20;

/// Returns the repository's `user.name`, else the user's own.
pub(super) fn name(
    home: Option<&Path>,
    config_home: Option<&Path>,
    repository: Option<&Path>,
) -> Option<String> {
    let own = repository.and_then(common_dir).map(|it| it.join("config"));
    let home_config = home.map(|it| it.join(".gitconfig"));
    let config_home = config_home.map(Path::to_path_buf).or_else(|| home.map(|it| it.join(".config")));
    let other = config_home.map(|it| it.join("git/config"));
    [own, home_config, other].into_iter().flatten().find_map(|it| user_name(&read(&it)?))
}

/// The git directory that all working trees of a repository share.
fn common_dir(repository: &Path) -> Option<PathBuf> {
    let git = repository.join(".git");
    if git.is_dir() {
        return Some(git);
    }
    let pointer = read(&git)?;
    let git = repository.join(pointer.strip_prefix("gitdir:")?.trim());
    let common = read(&git.join("commondir")).map(|it| git.join(it.trim()));
    Some(common.unwrap_or(git))
}

/// The text of a regular file. Other files are not read, because reading a FIFO could block. `None` if the file was not
/// read or is not UTF-8.
fn read(path: &Path) -> Option<String> {
    if !path.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    File::open(path).ok()?.take(LIMIT).read_to_string(&mut text).ok()?;
    Some(text)
}

/// The last `name` of a `[user]` section.
fn user_name(config: &str) -> Option<String> {
    let mut is_user = false;
    let mut name = None;
    for line in config.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[') {
            let section = section.split(']').next().unwrap_or_default();
            is_user = section.trim().eq_ignore_ascii_case("user");
        } else if let Some((key, value)) = line.split_once('=').filter(|_| is_user)
            && key.trim().eq_ignore_ascii_case("name")
        {
            name = Some(unquoted(value.trim()));
        }
    }
    name.filter(|it| !it.is_empty())
}

/// Removes from a value its quotes, the backslashes of its escapes, and the comment after it.
fn unquoted(value: &str) -> String {
    let mut plain = String::new();
    let mut is_quoted = false;
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => is_quoted = !is_quoted,
            '\\' => plain.extend(chars.next()),
            '#' | ';' if !is_quoted => break,
            other => plain.push(other),
        }
    }
    plain.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(config: &str, expected: Option<&str>) {
        assert_eq!(user_name(config).as_deref(), expected, "{config}");
    }

    #[test]
    fn the_name_of_the_user_section_is_found() {
        check("[user]\n\tname = Ann Example\n\temail = a@b\n", Some("Ann Example"));
        check("[core]\n\tname = no\n[User]\n\tNAME=Ann # really\n", Some("Ann"));
        check("[user]\n\tname = \"Ann # \\\"A\\\"\" ; x\n", Some("Ann # \"A\""));
        check("[user \"other\"]\n\tname = no\n", None);
        check("[user]\n\tname =\n", None);
        check("", None);
    }

    #[test]
    fn a_repository_goes_before_the_home_directory() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::io::Write::write_all(&mut File::create(path).unwrap(), text.as_bytes()).unwrap();
        };
        write("home/.gitconfig", "[user]\nname = Home\n");
        write("repo/.git/config", "[user]\nname = Repo\n");
        write("tree/.git", "gitdir: ../repo/.git/worktrees/tree\n");
        write("repo/.git/worktrees/tree/commondir", "../..\n");
        let (home, at) = (dir.path().join("home"), |name: &str| dir.path().join(name));
        assert_eq!(name(Some(&home), None, None).as_deref(), Some("Home"));
        assert_eq!(name(Some(&home), None, Some(&at("repo"))).as_deref(), Some("Repo"));
        assert_eq!(name(Some(&home), None, Some(&at("tree"))).as_deref(), Some("Repo"));
        assert_eq!(name(None, None, None), None);
    }
}
