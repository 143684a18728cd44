//! All times of the daemon, in one table.

use std::time::Duration;

// Saves.

/// A plan is published once it has been quiet for this long, so that a save in several steps is seen whole.
pub(crate) const SETTLE: Duration = Duration::from_millis(40);

/// A plan that changes all the time is published this long after the first unpublished change.
pub(crate) const SETTLE_LIMIT: Duration = Duration::from_millis(400);

/// Plans that planwatch itself changed are indexed after a pause of this length: indexing at once would slow down the
/// command and the one that follows it. A request for current data does not wait for this.
pub(crate) const OWN_SETTLE: Duration = Duration::from_millis(20);

/// The longest delay of indexing while commands follow each other. A plan is then indexed once before its changes are
/// published, so this equals [`SETTLE_LIMIT`].
pub(crate) const OWN_SETTLE_LIMIT: Duration = SETTLE_LIMIT;

/// A file that looks half-written, or is gone, is checked again after this; an editor needs less time for a save.
pub(crate) const RECHECK: Duration = Duration::from_millis(300);

/// The longest time between a command's write and its log entry. After this the command counts as stopped, and the
/// change as an outside edit.
pub(crate) const WRITER_LIMIT: Duration = Duration::from_secs(2);

/// The shortest time between two early notices about the same plan: one save causes several events.
pub(crate) const NOTICE_INTERVAL: Duration = Duration::from_millis(5);

// What is watched.

/// The interval of polling, used where the system reports no events.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// The longest pause within one deletion of many files.
pub(crate) const DELETION_PAUSE: Duration = Duration::from_millis(200);

/// If deletions do not stop, indexing resumes after this.
pub(crate) const DELETION_LIMIT: Duration = Duration::from_secs(2);

// Requests.

/// A cookie whose event takes longer counts as lost. Commands wait as long for an answer.
pub(crate) const COOKIE_TIMEOUT: Duration = Duration::from_secs(1);

/// How long other threads of this process wait for the event loop. Then they read the files themselves.
pub(crate) const LOOP_TIMEOUT: Duration = Duration::from_secs(1);

/// The time limit of a connection for sending a request and for taking an answer.
pub(crate) const CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the daemon, when it ends, waits for a client to take its last answer.
pub(crate) const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// The delay between an answer and the trim: until then, other threads may still be freeing the data of the answer.
pub(crate) const TRIM_DELAY: Duration = Duration::from_secs(1);

// Other machines.

/// The interval at which the claims at the registry are listed and renewed.
pub(crate) const REMOTE_INTERVAL: Duration = Duration::from_secs(30);

/// The delay of a listing that a notification of the registry causes. A claim elsewhere is seen within a second.
pub(crate) const REMOTE_PAUSE: Duration = Duration::from_millis(200);

/// The longest interval, before jitter, while requests to the registry fail.
pub(crate) const REMOTE_LIMIT: Duration = Duration::from_secs(10 * 60);
