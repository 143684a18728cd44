//! The Model Context Protocol: planwatch's verbs as tools for agents, over stdio and HTTP, in both eras of the protocol.
//!
//! A call is a request to the engine, made in a thread of its own; nothing is kept between two calls but the key that
//! seals questions. `tool` has what a tool is, the other modules have the tools. Clients are told what a tool did; what
//! it refused is told as its result, so that the agent can act on it. Only a call of no tool is an error of the protocol.

mod claim;
mod know;
mod named;
mod person;
mod read;
mod result;
mod schema;
mod tool;
mod write;

use std::io;
use std::sync::{Arc, OnceLock};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, Implementation, ListToolsResult, PaginatedRequestParams,
    RequestStateCodec, ServerCapabilities, ServerConfig,
};
use rmcp::service::{RequestContext, RoleServer, ServerInitializeError};
use rmcp::{ErrorData, ServerHandler, ServiceExt};
use serde_json::Value;

use crate::engine::context::Context;
use crate::engine::error::Error;
use crate::plan::words::nearest;
use crate::serve::contexts::Contexts;
use crate::serve::mcp::person::{Asked, Question, Said};
use crate::serve::mcp::result::Refusal;
use crate::serve::mcp::schema::Object;
use crate::serve::mcp::tool::{Call, Run, Tool};

pub use tool::Toolset;

/// The name that clients know the server by.
const NAME: &str = "planwatch";

/// What clients tell their model of the server; some cut it after 2 kB.
const INSTRUCTIONS: &str = include_str!("instructions.md");

/// The longest name of a client that becomes a `by`.
const LONGEST_NAME: usize = 64;

/// What a server offers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    pub tools: Toolset,
    /// Nothing is written.
    pub is_read_only: bool,
}

/// The server; cheap to clone, as each connection over HTTP has one of its own.
#[derive(Clone)]
pub struct Planwatch {
    inner: Arc<Inner>,
}

struct Inner {
    contexts: Contexts,
    /// As `contexts`, but makes the plans directory if there is none.
    to_make: Option<Contexts>,
    tools: Vec<Tool>,
    seal: OnceLock<RequestStateCodec>,
    /// Calls of one client are made in the order in which they came; none: in any order.
    lane: Option<tokio::sync::Mutex<()>>,
}

impl Planwatch {
    pub fn new(contexts: Contexts, options: Options) -> Self {
        let tools = tool::tools(options.tools, options.is_read_only);
        let inner = Inner { contexts, to_make: None, tools, seal: OnceLock::new(), lane: None };
        Self { inner: Arc::new(inner) }
    }

    /// With surroundings for whoever makes the first plan of a directory.
    #[must_use]
    pub fn with_maker(self, to_make: Contexts) -> Self {
        self.changed(|it| it.to_make = Some(to_make))
    }

    /// With answers in the order of the calls.
    #[must_use]
    fn in_order(self) -> Self {
        self.changed(|it| it.lane = Some(tokio::sync::Mutex::new(())))
    }

    fn changed(mut self, change: impl FnOnce(&mut Inner)) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.inner) {
            change(inner);
        }
        self
    }

    fn find(&self, name: &str) -> Result<usize, ErrorData> {
        let tools = &self.inner.tools;
        tools.iter().position(|it| it.name == name).ok_or_else(|| {
            let near =
                nearest(name, tools.iter().map(|it| it.name)).map(|it| format!("; did you mean `{it}`?"));
            ErrorData::invalid_params(format!("there is no tool `{name}`{}", near.unwrap_or_default()), None)
        })
    }

    /// Does something with the engine, in a thread that may wait.
    async fn work<T: Send + 'static>(
        &self,
        nth: usize,
        by: Option<String>,
        work: impl FnOnce(&Inner, &Call) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<Result<T, Refusal>, ErrorData> {
        let _turn = match &self.inner.lane {
            Some(lane) => Some(lane.lock().await),
            None => None,
        };
        let inner = Arc::clone(&self.inner);
        let done = tokio::task::spawn_blocking(move || {
            let call = inner.call(nth, by)?;
            work(&inner, &call)
        });
        done.await.map_err(|_| ErrorData::internal_error("planwatch failed; nothing more is known", None))
    }

    /// Asks the person, and does what was asked for if they say yes.
    async fn ask(
        &self,
        nth: usize,
        request: &CallToolRequestParams,
        rc: &RequestContext<RoleServer>,
        by: Option<String>,
    ) -> Result<CallToolResponse, ErrorData> {
        let given = request.arguments.clone().unwrap_or_default();
        let questioned =
            self.work(nth, by.clone(), move |inner, call| inner.question(nth, call, given)).await?;
        let (question, seal) = match questioned {
            Ok(asked) => asked,
            Err(refusal) => return Ok(refusal.into_result().into()),
        };
        match person::ask(&question, &seal, request, rc).await? {
            Asked::Answer(answer) => Ok(*answer),
            Asked::Said(Said::No) => Ok(result::answer(person::declined()).into()),
            Asked::Said(Said::Yes { note }) => {
                let done = self.work(nth, by, move |_, call| (question.act)(call, note)).await?;
                Ok(answered(done))
            }
        }
    }
}

fn answered(done: Result<Value, Refusal>) -> CallToolResponse {
    match done {
        Ok(object) => result::answer(object).into(),
        Err(refusal) => refusal.into_result().into(),
    }
}

impl Inner {
    /// The surroundings of a call by a client of this name.
    fn call(&self, nth: usize, by: Option<String>) -> Result<Call, Refusal> {
        let context = match ((self.contexts)(), &self.to_make) {
            (Err(Error::NoPlansDir), Some(to_make)) if self.tools.get(nth).is_some_and(Tool::makes_plans) => {
                to_make()?
            }
            (context, _) => context?,
        };
        let person = context.by.clone();
        let by = by.unwrap_or_else(|| person.clone());
        Ok(Call { context: Context { by, ..context }, person })
    }

    /// What a tool that asks wants to know.
    fn question(
        &self,
        nth: usize,
        call: &Call,
        given: Object,
    ) -> Result<(Question, RequestStateCodec), Refusal> {
        let Some(Tool { run: Run::Asks(ask), .. }) = self.tools.get(nth) else { return Err(no_tool()) };
        Ok((ask(call, given)?, self.seal(call)?))
    }

    /// The key lives as long as the process: what was asked before is asked again.
    fn seal(&self, call: &Call) -> Result<RequestStateCodec, Refusal> {
        if let Some(seal) = self.seal.get() {
            return Ok(seal.clone());
        }
        let mut key = [0; 32];
        call.context.plans.random(&mut key).map_err(Error::Disk)?;
        let seal = RequestStateCodec::try_new(key).map_err(|error| {
            Refusal::new("bug", format!("no question can be sealed: {error}"), "tell the person")
        })?;
        Ok(self.seal.get_or_init(|| seal).clone())
    }
}

fn no_tool() -> Refusal {
    Refusal::new("bug", "the tool cannot be called so", "use another one")
}

/// The client's name as it is recorded: one short line, or none.
fn name_of(rc: &RequestContext<RoleServer>) -> Option<String> {
    let name = rc.client_info()?.name;
    let line: String =
        name.chars().map(|it| if it.is_control() { ' ' } else { it }).take(LONGEST_NAME).collect();
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    (!line.is_empty()).then_some(line)
}

impl ServerHandler for Planwatch {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        let info = Implementation::new(NAME, env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities).with_server_info(info).with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.inner.tools.iter().map(Tool::told).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        rc: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let nth = self.find(&request.name)?;
        let by = name_of(&rc);
        if matches!(self.inner.tools.get(nth), Some(Tool { run: Run::Asks(_), .. })) {
            return self.ask(nth, &request, &rc, by).await;
        }
        let given = request.arguments.unwrap_or_default();
        let done = self.work(nth, by, move |inner, call| match inner.tools.get(nth) {
            Some(Tool { run: Run::Now(run), .. }) => run(call, given),
            _ => Err(no_tool()),
        });
        Ok(answered(done.await?))
    }
}

/// Serves one client over standard input and output until it closes them; nothing else may be written there.
pub fn stdio(server: Planwatch) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let server = server.in_order();
    let served = runtime.block_on(async {
        match server.serve(rmcp::transport::stdio()).await {
            Ok(running) => running.waiting().await.map(drop).map_err(io::Error::other),
            // Who closes before a first word wants nothing.
            Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(io::Error::other(error)),
        }
    });
    // A thread that still waits for input must not hold up the end.
    runtime.shutdown_background();
    served
}

#[cfg(test)]
mod tests;
