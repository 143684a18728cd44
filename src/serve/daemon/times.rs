//! The daemon's delays and time limits.

use std::time::Duration;

// Saves.

/// A plan's changes are published once it has been quiet for this long, so that no event describes half of a save.
pub(crate) const SETTLE: Duration = Duration::from_millis(40);

/// If a plan changes all the time, its changes are published this long after the first unpublished one.
pub(crate) const SETTLE_LIMIT: Duration = Duration::from_millis(400);

/// How long the daemon waits before it indexes a plan that planwatch itself changed. Indexing at once would slow down
/// the command that changed it and the next command. A request for current data does not wait for this delay.
pub(crate) const OWN_SETTLE: Duration = Duration::from_millis(20);

/// The longest delay of indexing while commands change plans all the time. It equals [`SETTLE_LIMIT`], so that a plan is
/// indexed only once, right before its changes are published.
pub(crate) const OWN_SETTLE_LIMIT: Duration = SETTLE_LIMIT;

/// The delay of the second check of a file that looks half-written or is missing. An editor saves faster than this.
pub(crate) const RECHECK: Duration = Duration::from_millis(300);

/// How long a change waits for its entry in the write log while a command holds the lock. After this time the change
/// counts as an outside edit.
pub(crate) const WRITER_LIMIT: Duration = Duration::from_secs(2);

/// The shortest time between two notices that the same plan is dirty. One save causes several events.
pub(crate) const NOTICE_INTERVAL: Duration = Duration::from_millis(5);

// What is watched.

/// The interval of polling, used where events of the file system are missing or incomplete.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// The longest pause within one deletion of many files.
pub(crate) const DELETION_PAUSE: Duration = Duration::from_millis(200);

/// Indexing resumes after this time, even if deletions continue.
pub(crate) const DELETION_LIMIT: Duration = Duration::from_secs(2);

// Requests.

/// How long the daemon waits for the event of a cookie before the cookie counts as lost. Commands wait equally long for
/// an answer.
pub(crate) const COOKIE_TIMEOUT: Duration = Duration::from_secs(1);

/// How long other threads of this process wait for the event loop. Then they read the files themselves.
pub(crate) const LOOP_TIMEOUT: Duration = Duration::from_secs(1);

/// How long a client may take to send a request, and how long it may take to receive an answer.
pub(crate) const CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);

/// The delay before the daemon accepts connections again after an error, such as too many open files.
pub(crate) const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// How long an ending daemon waits for a client to receive the last answer.
pub(crate) const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// The delay between an answer and the return of free memory to the system (`malloc.rs`). Right after the answer, other
/// threads may still be freeing its data.
pub(crate) const TRIM_DELAY: Duration = Duration::from_secs(1);

// Other machines.

/// The interval at which the claims at the registry are listed and renewed.
pub(crate) const REMOTE_INTERVAL: Duration = Duration::from_secs(30);

/// The delay between a notification of the registry and the listing that it causes. It is short enough that a claim of
/// another machine is seen within a second.
pub(crate) const REMOTE_PAUSE: Duration = Duration::from_millis(200);

/// The longest interval, before jitter, while requests to the registry fail.
pub(crate) const REMOTE_LIMIT: Duration = Duration::from_secs(10 * 60);
