//! The one-time codes and the sessions of signed-in people. They are only in memory, so they end with the server.
//!
//! The secret of a session is a random value that is independent of the API token. So the cookie in the browser gives
//! access only to the pages.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::serve::ipc::protocol::Opener;

/// How long a code can be exchanged for a session.
const CODE_LIFE: Duration = Duration::from_secs(60);

/// The largest number of codes, and of sessions. If there are this many, a new session ends the oldest one, and a new code
/// is refused.
const MOST: usize = 256;

/// The largest number of notices of a session. The oldest ones are dropped.
const MOST_NOTICES: usize = 16;

/// The browser session of a person.
#[derive(Debug, Clone)]
pub(super) struct Session {
    pub(super) opener: Opener,
    /// The token that each form of this session has to contain.
    pub(super) page_token: String,
    key: [u8; 32],
}

/// A message about an action. It is stored for the next page, because a browser without script loads a page after each
/// action.
#[derive(Debug, Clone)]
pub(super) struct Notice {
    pub(super) text: String,
    /// The id of the change, if it can be undone.
    pub(super) undo: Option<String>,
}

#[derive(Debug)]
struct Kept {
    session: Session,
    /// The session's number. Sessions are numbered in the order in which they begin, so the oldest has the smallest number.
    nth: u64,
    notices: BTreeMap<u64, Notice>,
}

#[derive(Debug, Default)]
struct State {
    codes: HashMap<[u8; 32], (Opener, Instant)>,
    /// The key is the hash of the cookie's value.
    sessions: HashMap<[u8; 32], Kept>,
    n_begun: u64,
}

/// All codes and sessions of a server; clones share them.
#[derive(Debug, Clone, Default)]
pub struct Sessions(Arc<Mutex<State>>);

/// The result of exchanging a code.
#[derive(Debug)]
pub(super) enum Exchanged {
    /// The value of the cookie.
    Session(String),
    /// The code was used before, is older than a minute, or was never made, or the system gave no random bytes for the
    /// session.
    Invalid,
}

fn random<const N: usize>() -> Option<String> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).ok()?;
    Some(bytes.iter().map(|it| format!("{it:02x}")).collect())
}

fn key(secret: &str) -> [u8; 32] {
    *blake3::hash(secret.as_bytes()).as_bytes()
}

impl Sessions {
    fn state(&self) -> MutexGuard<'_, State> {
        // No statement leaves the state half-changed, so a poisoned lock is usable.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a code for this person: 128 random bits, for one use within a minute. `None` if there are too many codes, or if
    /// the system gives no random bytes.
    pub fn code(&self, opener: Opener) -> Option<String> {
        let code = random::<16>()?;
        let mut state = self.state();
        state.codes.retain(|_, (_, at)| at.elapsed() < CODE_LIFE);
        if state.codes.len() >= MOST {
            return None;
        }
        state.codes.insert(key(&code), (opener, Instant::now()));
        Some(code)
    }

    pub(super) fn exchange(&self, code: &str) -> Exchanged {
        let found = self.state().codes.remove(&key(code));
        let live = found.filter(|(_, at)| at.elapsed() < CODE_LIFE);
        live.and_then(|(opener, _)| self.begin(opener)).map_or(Exchanged::Invalid, Exchanged::Session)
    }

    /// Begins a session, and returns the value of its cookie. `None` if the system gives no random bytes.
    pub(super) fn begin(&self, opener: Opener) -> Option<String> {
        let (value, page_token) = (random::<32>()?, random::<16>()?);
        let mut state = self.state();
        if state.sessions.len() >= MOST {
            let oldest = state.sessions.iter().min_by_key(|it| it.1.nth).map(|it| *it.0);
            oldest.and_then(|it| state.sessions.remove(&it));
        }
        state.n_begun += 1;
        let nth = state.n_begun;
        let session = Session { opener, page_token, key: key(&value) };
        state.sessions.insert(session.key, Kept { session, nth, notices: BTreeMap::new() });
        Some(value)
    }

    pub(super) fn find(&self, value: &str) -> Option<Session> {
        self.state().sessions.get(&key(value)).map(|it| it.session.clone())
    }

    pub(super) fn end(&self, session: &Session) {
        self.state().sessions.remove(&session.key);
    }

    /// Stores a notice for the next page, and returns the notice's number. Returns 0 if the session has ended.
    pub(super) fn note(&self, session: &Session, notice: Notice) -> u64 {
        let mut state = self.state();
        let Some(kept) = state.sessions.get_mut(&session.key) else { return 0 };
        let nth = kept.notices.last_key_value().map_or(1, |it| it.0 + 1);
        kept.notices.insert(nth, notice);
        if kept.notices.len() > MOST_NOTICES {
            kept.notices.pop_first();
        }
        nth
    }

    pub(super) fn noticed(&self, session: &Session, nth: u64) -> Option<Notice> {
        self.state().sessions.get(&session.key)?.notices.get(&nth).cloned()
    }
}

impl Session {
    /// Whether `token` is the token of this session's pages. The comparison takes constant time.
    pub(super) fn is_of_page(&self, token: &str) -> bool {
        blake3::hash(token.as_bytes()) == blake3::hash(self.page_token.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ann() -> Opener {
        Opener { by: "ann".to_owned(), is_read_only: false, is_person: true }
    }

    #[test]
    fn a_code_is_used_once() {
        let sessions = Sessions::default();
        let code = sessions.code(ann()).unwrap();
        assert_eq!(code.len(), 32);
        let Exchanged::Session(value) = sessions.exchange(&code) else { panic!("it is new") };
        assert_eq!(sessions.find(&value).unwrap().opener.by, "ann");
        assert!(matches!(sessions.exchange(&code), Exchanged::Invalid));
        assert!(matches!(sessions.exchange(""), Exchanged::Invalid));
        assert!(sessions.find(&code).is_none() && sessions.find("").is_none());
    }

    #[test]
    fn an_old_code_is_invalid() {
        let sessions = Sessions::default();
        let code = sessions.code(ann()).unwrap();
        let earlier = Instant::now().checked_sub(CODE_LIFE).unwrap();
        sessions.state().codes.values_mut().for_each(|it| it.1 = earlier);
        assert!(matches!(sessions.exchange(&code), Exchanged::Invalid));
    }

    #[test]
    fn the_oldest_session_gives_way() {
        let sessions = Sessions::default();
        let all: Vec<_> = (0..=MOST).map(|_| sessions.begin(ann()).unwrap()).collect();
        assert!(sessions.find(&all[0]).is_none());
        assert!(all[1..].iter().all(|it| sessions.find(it).is_some()));
    }

    #[test]
    fn a_session_has_its_own_page_token_and_notices() {
        let sessions = Sessions::default();
        let [one, other] = [(); 2].map(|()| sessions.find(&sessions.begin(ann()).unwrap()).unwrap());
        assert!(one.is_of_page(&one.page_token) && !one.is_of_page(&other.page_token));
        assert!(!one.is_of_page(""));
        let nth = sessions.note(&one, Notice { text: "done".to_owned(), undo: None });
        assert_eq!(sessions.noticed(&one, nth).unwrap().text, "done");
        assert!(sessions.noticed(&other, nth).is_none());
        sessions.end(&one);
        assert!(sessions.noticed(&one, nth).is_none());
    }
}
