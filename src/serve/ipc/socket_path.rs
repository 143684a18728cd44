//! The location of the daemon's socket, and the check that its other end belongs to the same user.

use std::fmt;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use crate::disk::PlansDir;

/// The directories for a socket whose path in the state directory would be too long.
#[derive(Debug, Clone)]
pub struct SocketDirs {
    /// `XDG_RUNTIME_DIR`.
    pub runtime: Option<PathBuf>,
    /// `/tmp`, except in tests.
    pub temporary: PathBuf,
}

/// The maximum length of a socket's path that every system allows, in bytes. macOS allows 104 bytes including the final
/// zero.
const LONGEST: usize = 103;

/// Why a socket directory is not used: another user could have put a socket into it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Untrusted {
    directory: PathBuf,
    why: &'static str,
}

impl fmt::Display for Untrusted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { directory, why } = self;
        write!(f, "the directory for sockets `{}` is not used, because it {why}", directory.display())
    }
}

impl Untrusted {
    /// What the user can do about it.
    pub fn hint(&self) -> String {
        format!("remove `{}`, or set XDG_RUNTIME_DIR to a directory of your own", self.directory.display())
    }
}

/// Returns the socket's path: in the state directory, or in one of the directories for sockets if that path is too long.
pub(crate) fn socket(state: &Path, socket_dirs: &SocketDirs) -> PathBuf {
    let own = state.join("daemon.sock");
    let fits = |path: &Path| path.as_os_str().len() <= LONGEST;
    if fits(&own) {
        return own;
    }
    let name = format!("{}.sock", &blake3::hash(state.as_os_str().as_bytes()).to_hex()[..24]);
    let runtime = socket_dirs.runtime.as_ref().map(|it| it.join("planwatch").join(&name));
    let temporary = || {
        socket_dirs.temporary.join(format!("planwatch-{}", rustix::process::getuid().as_raw())).join(&name)
    };
    runtime.filter(|it| fits(it)).unwrap_or_else(temporary)
}

/// Why the socket of a plans directory cannot be used; `None` if it can.
pub fn untrusted(plans: &PlansDir, socket_dirs: &SocketDirs) -> Option<Untrusted> {
    let state = plans.state_dir();
    check(&socket(&state, socket_dirs), &state).err()
}

/// Creates and checks the socket's directory, unless it is the state directory.
pub(crate) fn prepare(socket: &Path, state: &Path) -> io::Result<()> {
    let Some(dir) = socket.parent().filter(|it| *it != state) else { return Ok(()) };
    match std::fs::DirBuilder::new().mode(0o700).create(dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => {
            check(socket, state).map_err(|it| io::Error::new(io::ErrorKind::PermissionDenied, it.to_string()))
        }
    }
}

/// Rejects a directory in which another user could have put a socket. A missing directory is fine.
pub(crate) fn check(socket: &Path, state: &Path) -> Result<(), Untrusted> {
    let Some(dir) = socket.parent().filter(|it| *it != state) else { return Ok(()) };
    let why = match dir.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(_) => "cannot be examined",
        Ok(it) if it.is_symlink() => "is a symbolic link",
        Ok(it) if !it.is_dir() => "is not a directory",
        Ok(it) if it.uid() != rustix::process::getuid().as_raw() => "belongs to another user",
        Ok(it) if it.mode() & 0o077 != 0 => "has permissions for other users",
        Ok(_) => return Ok(()),
    };
    Err(Untrusted { directory: dir.to_path_buf(), why })
}

/// Returns whether the other end of a connection is a process of this user.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn is_same_user(stream: impl AsFd) -> bool {
    let peer = rustix::net::sockopt::socket_peercred(stream);
    peer.is_ok_and(|it| it.uid == rustix::process::getuid())
}

/// Whether the other end has closed the connection, for example because its process died. Unread data stays.
pub(crate) fn has_gone(stream: &UnixStream) -> bool {
    use rustix::net::RecvFlags;

    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    rustix::net::recv(stream, &mut [0_u8; 1], flags).is_ok_and(|(_, len)| len == 0)
}

/// Returns the id of the process at the other end, if the system reports it.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn peer(stream: impl AsFd) -> Option<u32> {
    let peer = rustix::net::sockopt::socket_peercred(stream).ok()?;
    u32::try_from(peer.pid.as_raw_nonzero().get()).ok()
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn peer(_stream: impl AsFd) -> Option<u32> {
    None
}

/// On other systems, the file mode of the socket (0600) excludes other users.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn is_same_user(_stream: impl AsFd) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_place(state: &str, runtime: Option<&str>, expected: &str) {
        let socket_dirs = SocketDirs { runtime: runtime.map(PathBuf::from), temporary: "/tmp".into() };
        let found = socket(Path::new(state), &socket_dirs);
        assert!(found.to_string_lossy().starts_with(expected), "{}", found.display());
        assert!(found.as_os_str().len() <= LONGEST);
    }

    #[test]
    fn a_long_path_uses_another_directory() {
        let long = format!("/{}", "x".repeat(100));
        check_place("/plans/.planwatch", Some("/run/user/7"), "/plans/.planwatch/daemon.sock");
        check_place(&long, Some("/run/user/7"), "/run/user/7/planwatch/");
        check_place(&long, None, "/tmp/planwatch-");
        check_place(&long, Some(&long), "/tmp/planwatch-");
    }

    #[test]
    fn only_an_own_private_directory_is_trusted() {
        use std::os::unix::fs::{PermissionsExt, chown, symlink};
        let place = tempfile::tempdir().unwrap();
        let (dir, state) = (place.path().join("own"), place.path().join("state"));
        let socket = dir.join("it.sock");
        let why = |socket: &Path| check(socket, &state).err().map(|it| it.why);
        let is_refused = |socket: &Path, expected| {
            assert_eq!(why(socket), Some(expected));
            assert!(prepare(socket, &state).is_err(), "{expected}");
        };
        assert_eq!(why(&socket), None, "a missing directory is fine");
        prepare(&socket, &state).unwrap();
        prepare(&socket, &state).unwrap();
        assert_eq!(dir.metadata().unwrap().mode() & 0o777, 0o700);
        for mode in [0o755, 0o701, 0o777] {
            std::fs::set_permissions(&dir, PermissionsExt::from_mode(mode)).unwrap();
            is_refused(&socket, "has permissions for other users");
        }
        // `check` does not examine the state directory itself. The file `stamp` in it proves that planwatch created it.
        assert_eq!(check(&socket, &dir).err(), None);
        symlink(&dir, place.path().join("link")).unwrap();
        is_refused(&place.path().join("link/it.sock"), "is a symbolic link");
        std::fs::File::create(place.path().join("file")).unwrap();
        is_refused(&place.path().join("file/it.sock"), "is not a directory");
        // Only root can change the owner of a directory. If the test does not run as root, it uses `/`, which belongs to
        // root.
        let theirs = if rustix::process::getuid().is_root() {
            let theirs = place.path().join("theirs");
            std::fs::DirBuilder::new().mode(0o700).create(&theirs).unwrap();
            chown(&theirs, Some(65_534), None).unwrap();
            theirs
        } else {
            PathBuf::from("/")
        };
        is_refused(&theirs.join("it.sock"), "belongs to another user");
    }
}
