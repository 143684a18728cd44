//! `token`: the secret for requests over HTTP, on a line of its own.

use planwatch::ops::token;
use serde_json::json;

use crate::args::setup::Token;
use crate::context::Session;
use crate::failure::Failure;

pub(crate) fn run(session: &Session, _: &Token) -> Result<u8, Failure> {
    session.output.check_fields("token")?;
    let plans = session.plans_dir(&session.workspace()?)?;
    let found = token::token(&session.look_again(&plans)?.plans)?;
    let Some(token) = found else {
        let failure = Failure::failed("not-found", "these plans have no token yet");
        return Err(failure.with_hint("planwatch watch --detach --http").with_exit(3));
    };
    if session.output.is_json() {
        session.output.json("token", json!({"token": token}))?;
    } else {
        session.output.text(&format!("{token}\n"))?;
    }
    Ok(0)
}
