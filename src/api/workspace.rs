//! Finds the plans directory and the configuration, searching upwards from the working directory.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use crate::api::config::{CONFIG_FILE, Config};
use crate::api::error::Error;
use crate::disk::{Disk, DiskError, FILE_LIMIT, FileKind, Origin, Reach};
use crate::plan::problem::Problem;

/// Where to look. All paths are absolute.
#[derive(Debug, Clone, Default)]
pub struct WorkspaceRequest {
    pub start: PathBuf,
    /// `--plans`.
    pub plans: Option<PathBuf>,
    /// `PLANS_DIR`.
    pub env: Option<PathBuf>,
    /// The home directory. The search upwards ends at this directory, or earlier at the root of a repository.
    pub home: Option<PathBuf>,
}

#[derive(Debug, Clone)]
pub struct Workspace {
    pub plans_dir: Option<PathBuf>,
    /// Where `new` makes the plans directory, if there is none.
    pub would_be: PathBuf,
    /// The root of the repository that contains the start of the search.
    pub repository: Option<PathBuf>,
    pub config: Config,
    /// What is wrong with the configuration. The path of each problem is [`CONFIG_FILE`].
    pub problems: Vec<Problem>,
}

/// The name of a plans directory, if nothing is configured.
const PLANS: &str = "plans";

/// Finds the plans directory. It is named by `--plans`, by `PLANS_DIR`, or by `plans_dir` in the nearest configuration, in
/// this order. If none of them is given, the nearest directory `plans` is used.
///
/// The search upwards ends at the repository's root or at the home directory, whichever comes first. It is an error if
/// the directory of `--plans` or `PLANS_DIR` does not exist.
pub fn find(disk: &Arc<dyn Disk>, request: &WorkspaceRequest) -> Result<Workspace, Error> {
    let above = ancestors(&**disk, request);
    let repository = above.last().filter(|it| is_repository(&**disk, it)).cloned();
    let (config, problems, config_dir) = config(&**disk, &above, repository.as_deref())?;
    let base = repository.clone().unwrap_or_else(|| request.start.clone());
    let configured = configured(&**disk, &config, config_dir.as_deref())?;
    let would_be = configured.clone().unwrap_or_else(|| base.join(PLANS));
    let named = request.plans.clone().or_else(|| request.env.clone());
    let plans_dir = match named {
        Some(path) if is_dir(&**disk, &path) => Some(path),
        Some(path) => {
            return Err(Error::NotFound {
                what: "plans directory",
                name: path.display().to_string(),
                nearest: None,
            });
        }
        None => match configured {
            Some(path) => Some(path).filter(|it| is_dir(&**disk, it)),
            None => {
                let found = above.iter().map(|it| it.join(PLANS)).find(|it| is_dir(&**disk, it));
                check_link(&**disk, found.as_deref(), repository.as_deref())?;
                found
            }
        },
    };
    Ok(Workspace { plans_dir, would_be, repository, config, problems })
}

/// The error if there is no plans directory. If something else has its name, the error says so.
pub fn missing(disk: &dyn Disk, workspace: &Workspace) -> Error {
    let path = &workspace.would_be;
    let what = match disk.lstat(path).map(|it| it.kind) {
        Err(_) | Ok(FileKind::Dir) => return Error::NoPlansDir,
        Ok(FileKind::Symlink) => "a symbolic link that leads to no directory",
        Ok(FileKind::File | FileKind::Other) => "not a directory",
    };
    Error::PlansDirTaken { path: path.clone(), what }
}

/// Makes the plans directory that is missing, and returns it.
pub fn make(disk: &Arc<dyn Disk>, workspace: &Workspace) -> Result<PathBuf, Error> {
    if let error @ Error::PlansDirTaken { .. } = missing(&**disk, workspace) {
        return Err(error);
    }
    check_place(&**disk, workspace)?;
    crate::disk::make_plans_dir(&**disk, &workspace.would_be)?;
    Ok(workspace.would_be.clone())
}

/// Refuses to make the plans directory in a bare repository, which contains only git's own files.
pub fn check_place(disk: &dyn Disk, workspace: &Workspace) -> Result<(), Error> {
    let is_there = |path: PathBuf, kind| disk.lstat(&path).is_ok_and(|it| it.kind == kind);
    let is_bare = |it: &Path| {
        is_there(it.join("HEAD"), FileKind::File)
            && ["objects", "refs"].iter().all(|name| is_there(it.join(name), FileKind::Dir))
    };
    // A working tree can be inside a bare repository. Plans can be created in that working tree.
    let within = workspace.would_be.ancestors().skip(1).take_while(|it| !is_repository(disk, it));
    match within.into_iter().find(|it| is_bare(it)) {
        None => Ok(()),
        Some(bare) => Err(Error::Failed {
            code: "bare-repository",
            message: format!("`{}` is a bare git repository, which has no working tree", bare.display()),
            hint: "work in a clone or a working tree of it, or name another directory: planwatch --plans DIR"
                .to_owned(),
        }),
    }
}

/// The directories that are searched, from the start of the search upwards.
fn ancestors(disk: &dyn Disk, request: &WorkspaceRequest) -> Vec<PathBuf> {
    let mut above = Vec::new();
    for directory in request.start.ancestors() {
        above.push(directory.to_path_buf());
        if is_repository(disk, directory) || request.home.as_deref() == Some(directory) {
            break;
        }
    }
    above
}

fn is_repository(disk: &dyn Disk, directory: &Path) -> bool {
    disk.lstat(&directory.join(".git")).is_ok()
}

fn is_dir(disk: &dyn Disk, path: &Path) -> bool {
    disk.canonical(path).and_then(|it| disk.lstat(&it)).is_ok_and(|it| it.kind == FileKind::Dir)
}

type Configured = (Config, Vec<Problem>, Option<PathBuf>);

fn config(disk: &dyn Disk, above: &[PathBuf], repository: Option<&Path>) -> Result<Configured, Error> {
    for directory in above {
        let path = directory.join(CONFIG_FILE);
        if disk.lstat(&path).is_err() {
            continue;
        }
        // The report of a problem quotes a line of the file. A link that came with the repository must not make the report
        // quote a file outside of the repository.
        let reach = Reach::of(disk, repository.unwrap_or(directory), None);
        let bytes = match reach.read(&path, Origin::Elsewhere, FILE_LIMIT) {
            Ok(bytes) => bytes,
            Err(DiskError::OutsideRepository { .. }) => {
                let message = format!("{CONFIG_FILE} is a symbolic link that leads out of the repository");
                return Err(refused(message, "replace it with a file"));
            }
            Err(DiskError::NotFound { .. }) => continue,
            // The defaults are not used instead, because the file could name another plans directory.
            Err(error) => return Err(error.into()),
        };
        let text = String::from_utf8_lossy(&bytes);
        let (config, problems) = Config::read(CONFIG_FILE, &text);
        return Ok((config, problems, Some(directory.clone())));
    }
    Ok((Config::default(), Vec::new(), None))
}

/// Refuses a plans directory that was found through a link out of the repository, because the link may have come with the
/// repository. A directory that the user named may be anywhere.
fn check_link(disk: &dyn Disk, found: Option<&Path>, repository: Option<&Path>) -> Result<(), Error> {
    let (Some(found), Some(repository)) = (found, repository) else { return Ok(()) };
    match Reach::of(disk, repository, None).find(found, Origin::Elsewhere) {
        Err(DiskError::OutsideRepository { .. }) => {
            let message = format!("`{PLANS}` is a symbolic link that leads out of the repository");
            Err(refused(message, "name the directory: planwatch --plans DIR, or PLANS_DIR"))
        }
        _ => Ok(()),
    }
}

fn refused(message: String, hint: &str) -> Error {
    Error::Failed { code: "configuration", message, hint: hint.to_owned() }
}

/// Resolves `plans_dir`. It must be inside the directory of `planwatch.toml`, because that file may come from an untrusted
/// source. Symbolic links in `plans_dir` must not lead out of that directory either.
fn configured(disk: &dyn Disk, config: &Config, directory: Option<&Path>) -> Result<Option<PathBuf>, Error> {
    let (Some(name), Some(directory)) = (&config.plans_dir, directory) else { return Ok(None) };
    let is_inside =
        Path::new(name).components().all(|it| matches!(it, Component::Normal(_) | Component::CurDir));
    let reach = Reach::of(disk, directory, None);
    let is_outside = || {
        let found = reach.find(Path::new(name), Origin::Elsewhere);
        matches!(found, Err(DiskError::OutsideRepository { .. } | DiskError::Secret { .. }))
    };
    if !is_inside || name.is_empty() || is_outside() {
        let message = format!("`plans_dir = \"{name}\"` cannot be the plans directory");
        return Err(refused(
            message,
            "name a directory below that of planwatch.toml, outside `.git` and `.planwatch`",
        ));
    }
    Ok(Some(directory.join(name)))
}
