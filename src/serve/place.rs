//! Where a daemon's socket is, and who may be at its other end: nobody but the same user.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// What the environment says of places for sockets.
#[derive(Debug, Clone)]
pub struct Homes {
    /// `XDG_RUNTIME_DIR`.
    pub runtime: Option<PathBuf>,
    /// The directory for temporary files.
    pub temporary: PathBuf,
}

/// The longest path that fits a socket's address on every system; macOS has 104 bytes with the last one zero.
const LONGEST: usize = 103;

/// Returns where the socket of a plans directory is: in `.planwatch`, or where that is too long in a place for sockets.
pub(super) fn socket(root: &Path, homes: &Homes) -> PathBuf {
    let own = root.join(".planwatch/daemon.sock");
    let fits = |path: &Path| path.as_os_str().len() <= LONGEST;
    if fits(&own) {
        return own;
    }
    let name = format!("{}.sock", &blake3::hash(root.as_os_str().as_bytes()).to_hex()[..24]);
    let runtime = homes.runtime.as_ref().map(|it| it.join("planwatch").join(&name));
    let temporary =
        || homes.temporary.join(format!("planwatch-{}", rustix::process::getuid().as_raw())).join(&name);
    runtime.filter(|it| fits(it)).unwrap_or_else(temporary)
}

/// Makes the directory of a socket that is not in `.planwatch`, and refuses one that is not this user's alone.
pub(super) fn prepare(socket: &Path) -> io::Result<()> {
    let Some(dir) = socket.parent().filter(|it| !it.ends_with(".planwatch")) else { return Ok(()) };
    match std::fs::DirBuilder::new().mode(0o700).create(dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => check(dir),
    }
}

/// Refuses a directory in which somebody else could have put a socket.
pub(super) fn check(dir: &Path) -> io::Result<()> {
    let found = dir.symlink_metadata()?;
    let is_ours =
        found.is_dir() && found.uid() == rustix::process::getuid().as_raw() && found.mode() & 0o077 == 0;
    if is_ours { Ok(()) } else { Err(io::ErrorKind::PermissionDenied.into()) }
}

/// Returns whether the other end of a connection is a process of this user.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn is_same_user(stream: impl AsFd) -> bool {
    let peer = rustix::net::sockopt::socket_peercred(stream);
    peer.is_ok_and(|it| it.uid == rustix::process::getuid())
}

/// Whether the other end of a connection was closed, as when its process is dead; what it sent stays to be read.
pub(super) fn has_gone(stream: &UnixStream) -> bool {
    use rustix::net::RecvFlags;

    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    rustix::net::recv(stream, &mut [0_u8; 1], flags).is_ok_and(|(_, len)| len == 0)
}

/// Returns the process at the other end of a connection, where the system tells.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn peer(stream: impl AsFd) -> Option<u32> {
    let peer = rustix::net::sockopt::socket_peercred(stream).ok()?;
    u32::try_from(peer.pid.as_raw_nonzero().get()).ok()
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn peer(_stream: impl AsFd) -> Option<u32> {
    None
}

/// Elsewhere the socket's own mode keeps others out.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn is_same_user(_stream: impl AsFd) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_place(root: &str, runtime: Option<&str>, expected: &str) {
        let homes = Homes { runtime: runtime.map(PathBuf::from), temporary: "/tmp".into() };
        let found = socket(Path::new(root), &homes);
        assert!(found.to_string_lossy().starts_with(expected), "{}", found.display());
        assert!(found.as_os_str().len() <= LONGEST);
    }

    #[test]
    fn a_long_path_goes_elsewhere() {
        let long = format!("/{}", "x".repeat(100));
        check_place("/plans", Some("/run/user/7"), "/plans/.planwatch/daemon.sock");
        check_place(&long, Some("/run/user/7"), "/run/user/7/planwatch/");
        check_place(&long, None, "/tmp/planwatch-");
        check_place(&long, Some(&long), "/tmp/planwatch-");
    }

    #[test]
    fn only_a_directory_of_ones_own_is_trusted() {
        use std::os::unix::fs::PermissionsExt;
        let place = tempfile::tempdir().unwrap();
        let socket = place.path().join("own/it.sock");
        prepare(&socket).unwrap();
        prepare(&socket).unwrap();
        let dir = place.path().join("own");
        std::fs::set_permissions(&dir, PermissionsExt::from_mode(0o755)).unwrap();
        assert!(prepare(&socket).is_err());
        std::os::unix::fs::symlink(place.path(), place.path().join("link")).unwrap();
        assert!(prepare(&place.path().join("link/it.sock")).is_err());
    }
}
