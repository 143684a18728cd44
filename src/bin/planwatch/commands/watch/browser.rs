//! `browser`: the pages of the plans in a browser, served by the process that watches.

use std::net::{SocketAddr, TcpListener};

use planwatch::api::address::DEFAULT;
use planwatch::ops::show::{self, ShowReport, ShowRequest};
use planwatch::serve::Opener;
use serde_json::json;

use super::{answering, detached};
use crate::args::setup::{Browser, Watch};
use crate::context::{self, Session};
use crate::failure::Failure;

pub(crate) fn run(session: &Session, args: &Browser) -> Result<u8, Failure> {
    session.output.check_fields("url opened")?;
    let plans = session.plans_dir(&session.workspace()?)?;
    let path = args.plan.as_deref().map(|it| path_of(session, it)).transpose()?;
    let context = session.look_again(&plans)?;
    let running = answering(&context.plans)?.filter(|(_, status)| status.http.is_some() || !status.gives_way);
    let found = match running {
        Some(found) => Some(found),
        None => {
            let http = Some(address(session)?.to_string());
            let watch = Watch { http, detach: true, ..Watch::default() };
            detached::begin(session, &plans, &watch)?;
            answering(&context.plans)?
        }
    };
    let (mut client, status) =
        found.ok_or_else(|| Failure::failed("no-daemon", "the daemon has ended").with_exit(8))?;
    let Some(http) = status.http else {
        let message = format!("process {} watches these plans, and does not answer over HTTP", status.pid);
        let hint = "end it first: planwatch watch --stop";
        return Err(Failure::failed("locked", message).with_hint(hint).with_exit(4));
    };
    let is_person = context.here.claim.is_none() && context.here.step.is_none();
    let opener = Opener { by: context.by, is_read_only: args.read_only, is_person };
    let code = client.code(opener).ok_or_else(|| {
        let why = "it is busy, has too many unused codes, or is of another release";
        let message = format!("process {} gave no sign-in code: {why}", status.pid);
        let hint = "try again in a minute, or end it: planwatch watch --stop";
        Failure::failed("no-daemon", message).with_hint(hint).with_exit(8)
    })?;
    let to = path.map(|it| format!("&to={it}")).unwrap_or_default();
    open_or_print(session, args, &http, &format!("/login?code={code}{to}"))
}

/// Opens the address in a browser, or prints it if `--print` is given, there is no screen, or no browser can be
/// started.
fn open_or_print(session: &Session, args: &Browser, http: &str, path: &str) -> Result<u8, Failure> {
    let url = format!("{}{path}", reachable(http));
    let has_opened = !args.print && context::has_screen() && open::that_detached(&url).is_ok();
    if session.output.is_json() {
        session.output.json("browser", json!({"url": url, "opened": has_opened}))?;
    } else if has_opened {
        // Only the server's address is printed, because the browser uses up the one-time code in the whole address.
        session.output.report(&format!("opened {}\n", reachable(http)))?;
    } else {
        session.output.text(&format!("{url}\n"))?;
        session.output.stderr_line("open this address within a minute; it can be used once");
        if !args.print && context::is_remote() {
            let port = http.rsplit(':').next().unwrap_or_default();
            session.output.stderr_line(&format!("from another machine: ssh -L {port}:127.0.0.1:{port} HOST"));
        }
    }
    Ok(0)
}

/// The address for use on this machine, even if the server listens on all of the machine's addresses.
fn reachable(http: &str) -> String {
    http.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")
}

/// The path of the page of a plan or a step. For a decision or an insight, the path of the page of all decisions.
fn path_of(session: &Session, typed: &str) -> Result<String, Failure> {
    let request = ShowRequest { id: typed.to_owned(), ..ShowRequest::default() };
    let id = match show::show(&session.context()?, &request)? {
        ShowReport::Step(it) => ("step", it.step.id),
        ShowReport::Plan(it) => ("plan", it.plan.id),
        ShowReport::Graph { plan, .. } => ("plan", plan),
        ShowReport::Decision(_) | ShowReport::Insight(_) => return Ok("/decisions".to_owned()),
    };
    Ok(planwatch::serve::web::path(id.0, &id.1))
}

/// The configured address if it is a loopback address, otherwise the default address. If its port is taken, the system
/// chooses another port.
fn address(session: &Session) -> Result<SocketAddr, Failure> {
    let configured = session.workspace()?.config.http_address.filter(|it| it.ip().is_loopback());
    let address = configured.unwrap_or(DEFAULT);
    Ok(if TcpListener::bind(address).is_ok() { address } else { SocketAddr::new(address.ip(), 0) })
}
