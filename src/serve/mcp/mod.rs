//! The Model Context Protocol: planwatch's verbs as tools for agents, over stdio and HTTP, in old and new versions of the
//! protocol.
//!
//! A call runs an operation in a blocking thread. The state that lasts between calls is the key that seals confirmation
//! requests, the subscriptions, and the thread that renews claims. `tool` defines tools, `toolset` lists them. If a call
//! is refused, the refusal is its result, so that the agent can react. The call of an unknown tool is a protocol error.

mod claim;
mod compat;
mod draft;
mod drain;
mod elicitation;
mod http;
mod knowledge;
mod lines;
mod lookup;
mod message;
mod opening;
mod prompts;
mod read;
mod renewal;
mod resources;
mod result;
mod schema;
mod stdio;
mod subscriptions;
mod tool;
mod toolset;
mod unread;
mod write;

use std::sync::{Arc, OnceLock};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, CustomRequest,
    CustomResult, GetPromptRequestParams, GetPromptResponse, Implementation, InitializeRequestParams,
    InitializeResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, RequestStateCodec,
    ServerCapabilities, ServerConfig, SubscribeRequestMethod, SubscribeRequestParams, SubscriptionFilter,
    UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, RoleServer, SubscriptionContext};
use rmcp::{ErrorData, ServerHandler};
use serde_json::{Value, json};

use crate::api::context::Context;
use crate::api::error::Error;
use crate::plan::words::nearest;
use crate::serve::daemon::context_factory::ContextFactory;
use crate::serve::daemon::feed::Feed;
use crate::serve::ipc::socket_path::SocketDirs;
use crate::serve::mcp::elicitation::{Elicited, Reply};
use crate::serve::mcp::renewal::Renewal;
use crate::serve::mcp::result::Refusal;
use crate::serve::mcp::stdio::Line;
use crate::serve::mcp::subscriptions::{Beginnings, Followed, Source, Watching};
use crate::serve::mcp::tool::{Call, Tool, Turn, Without};

#[cfg(test)]
pub(super) use compat::WORDS as COMPAT_WORDS;
pub use http::service;
pub use stdio::stdio;
pub use toolset::Toolset;

/// The server's name for clients.
const NAME: &str = "planwatch";

/// The instructions for the client's model. Some clients truncate them after 2 kB.
const INSTRUCTIONS: &str = include_str!("instructions.md");
const EXECUTOR: &str = include_str!("executor.md");
const READ_ONLY: &str = include_str!("read_only.md");

/// The maximum number of characters of a client's name that are recorded as `by`.
const LONGEST_NAME: usize = 64;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    pub tools: Toolset,
    /// Whether the server offers only tools that change nothing.
    pub is_read_only: bool,
}

/// The server. Clones share its state; each request over HTTP uses a clone.
#[derive(Clone)]
pub struct Planwatch {
    inner: Arc<Inner>,
}

struct Inner {
    contexts: ContextFactory,
    /// Like `contexts`, but makes the plans directory if there is none.
    to_make: Option<ContextFactory>,
    /// Like `contexts`, but finds no plans if there is no plans directory.
    to_look: Option<ContextFactory>,
    tools: Vec<Arc<Tool>>,
    instructions: &'static str,
    seal: OnceLock<RequestStateCodec>,
    /// Makes calls run one after another, if the client uses standard input and output. If `None`, calls run in any order.
    lane: Option<Lane>,
    /// The source of live updates.
    source: Source,
    beginnings: Beginnings,
    followed: Arc<Followed>,
    is_read_only: bool,
    /// `None` if the daemon renews the claims, or if this server makes no claims.
    renewal: Option<Renewal>,
}

/// Makes calls run in the order of arrival, until a write to the client fails.
struct Lane {
    turn: tokio::sync::Mutex<()>,
    line: Arc<Line>,
}

impl Planwatch {
    pub fn new(contexts: ContextFactory, options: Options) -> Self {
        let tools = toolset::tools(options.tools, options.is_read_only).into_iter().map(Arc::new).collect();
        let instructions = instructions(options);
        let inner = Inner {
            contexts,
            to_make: None,
            to_look: None,
            tools,
            instructions,
            seal: OnceLock::new(),
            lane: None,
            source: Source::None,
            beginnings: Beginnings::default(),
            followed: Arc::default(),
            is_read_only: options.is_read_only,
            renewal: None,
        };
        Self { inner: Arc::new(inner) }
    }

    /// Adds the contexts for creating the first plan of a directory.
    #[must_use]
    pub fn with_maker(self, to_make: ContextFactory) -> Self {
        self.changed(|it| it.to_make = Some(to_make))
    }

    /// Adds the contexts in which calls find no plans while there is no plans directory.
    #[must_use]
    pub fn with_viewer(self, to_look: ContextFactory) -> Self {
        self.changed(|it| it.to_look = Some(to_look))
    }

    /// Adds live updates from this process's own watcher.
    #[must_use]
    pub fn with_feed(self, feed: Feed) -> Self {
        self.changed(|it| it.source = Source::Feed(feed))
    }

    /// Adds live updates: from the first subscription on, the server follows another process that watches the plans, or
    /// watches them in this process.
    #[must_use]
    pub fn with_following(self, homes: SocketDirs) -> Self {
        self.changed(|it| {
            it.source = Source::Thread(Arc::new(Watching::new(Arc::clone(&it.contexts), homes)));
        })
    }

    /// Makes calls run in the order of arrival, until a write to the client fails. The server also renews claims, unless it
    /// is read-only.
    #[must_use]
    fn in_order(self, line: Arc<Line>) -> Self {
        self.changed(|it| {
            it.lane = Some(Lane { turn: tokio::sync::Mutex::new(()), line });
            it.renewal = (!it.is_read_only).then(Renewal::default);
        })
    }

    /// Whether a call is running. Always false if there is no [`Lane`].
    fn is_at_work(&self) -> bool {
        self.inner.lane.as_ref().is_some_and(|it| it.turn.try_lock().is_err())
    }

    /// Waits until the current call has ended. If a write to the client has failed, no further call starts.
    async fn finish(&self) {
        if let Some(lane) = &self.inner.lane {
            drop(lane.turn.lock().await);
        }
    }

    fn changed(mut self, change: impl FnOnce(&mut Inner)) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.inner) {
            change(inner);
        }
        self
    }

    fn find(&self, name: &str) -> Result<Arc<Tool>, ErrorData> {
        let tools = &self.inner.tools;
        tools.iter().find(|it| it.name == name).cloned().ok_or_else(|| {
            let near =
                nearest(name, tools.iter().map(|it| it.name)).map(|it| format!("; did you mean `{it}`?"));
            ErrorData::invalid_params(
                format!("there is no tool `{}`{}", short(name), near.unwrap_or_default()),
                None,
            )
        })
    }

    /// Runs an operation on a blocking thread.
    async fn work<T: Send + 'static>(
        &self,
        without: Without,
        by: Option<String>,
        work: impl FnOnce(&Inner, &Call) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<Result<T, Refusal>, ErrorData> {
        let _turn = match &self.inner.lane {
            Some(lane) => Some(lane.turn.lock().await),
            None => None,
        };
        if self.inner.lane.as_ref().is_some_and(|it| it.line.is_broken()) {
            return Err(ErrorData::internal_error("the client does not read the answer", None));
        }
        let inner = Arc::clone(&self.inner);
        let done = tokio::task::spawn_blocking(move || {
            let call = inner.call(without, by)?;
            work(&inner, &call)
        });
        done.await.map_err(|_| ErrorData::internal_error("planwatch failed unexpectedly", None))
    }
}

/// The instructions for a toolset. They name only tools of that set.
fn instructions(of: Options) -> &'static str {
    match of.tools {
        _ if of.is_read_only => READ_ONLY,
        Toolset::All => INSTRUCTIONS,
        Toolset::Executor => EXECUTOR,
        Toolset::Compat => compat::INSTRUCTIONS,
    }
}

impl Inner {
    /// The response to a call. Parts of hints that name tools which this server does not have are removed.
    fn answered(&self, done: Result<Value, Refusal>) -> CallToolResponse {
        static ALL: OnceLock<Vec<&'static str>> = OnceLock::new();
        let all = ALL.get_or_init(|| {
            let sets = [Toolset::All, Toolset::Compat].map(|it| toolset::tools(it, false));
            sets.iter().flatten().map(|it| it.name).collect()
        });
        let has = |name: &str| self.tools.iter().any(|it| it.name == name);
        match done {
            Ok(object) => result::answer(result::within(object, all, &has)).into(),
            Err(refusal) => refusal.within(all, &has).into_result().into(),
        }
    }

    /// The instructions for the client's model. They name the plans directory, because the client can run in another
    /// directory.
    fn instructions(&self) -> String {
        match (self.contexts)() {
            Ok(context) => {
                format!(
                    "{}\nThe plans directory is `{}`.\n",
                    self.instructions,
                    context.plans.root().display()
                )
            }
            Err(_) => self.instructions.to_owned(),
        }
    }

    /// The context of a call. `by` is the client's name.
    fn call(&self, without: Without, by: Option<String>) -> Result<Call, Refusal> {
        let instead = match without {
            Without::Makes => self.to_make.as_ref(),
            Without::Looks => self.to_look.as_ref(),
            Without::Refuses => None,
        };
        let (context, contexts) = match ((self.contexts)(), instead) {
            (Err(Error::NoPlansDir), Some(instead)) => (instead()?, instead),
            (context, _) => (context?, &self.contexts),
        };
        if let Some(renewal) = &self.renewal {
            renewal.look(&context, contexts);
        }
        let (person, renews) = (context.by.clone(), self.renewal.is_some());
        let by = by.unwrap_or_else(|| person.clone());
        Ok(Call { context: Context { by, ..context }, contexts: Arc::clone(contexts), person, renews })
    }

    /// The key that seals confirmation requests. It exists only in this process, so open questions are asked again after a
    /// restart.
    fn seal(&self, call: &Call) -> Result<RequestStateCodec, Refusal> {
        if let Some(seal) = self.seal.get() {
            return Ok(seal.clone());
        }
        let mut key = [0; 32];
        call.context.plans.random(&mut key).map_err(Error::Disk)?;
        let seal = RequestStateCodec::try_new(key).map_err(|error| {
            Refusal::new("bug", format!("the confirmation cannot be sealed: {error}"), "tell the person")
        })?;
        Ok(self.seal.get_or_init(|| seal).clone())
    }
}

/// An unknown name, shortened for messages.
fn short(name: &str) -> String {
    const LONG: usize = 60;
    result::cut(name, LONG).map_or_else(|| name.to_owned(), |it| format!("{it}…"))
}

/// The client's name as it is recorded: one short line, or none.
fn name_of(rc: &RequestContext<RoleServer>) -> Option<String> {
    let info = rc.client_info()?;
    // Over HTTP, a client of an older protocol sends its name only in an earlier request. In this case `info` has the
    // library's own name.
    if info == Implementation::from_build_env() {
        return None;
    }
    let name = info.name;
    let line: String =
        name.chars().map(|it| if it.is_control() { ' ' } else { it }).take(LONGEST_NAME).collect();
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    (!line.is_empty()).then_some(line)
}

impl ServerHandler for Planwatch {
    fn get_info(&self) -> ServerConfig {
        let mut capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_prompts()
            .enable_completions()
            .enable_resources()
            .build();
        if let Some(resources) = &mut capabilities.resources {
            let can_follow = self.inner.source.is_there();
            resources.subscribe = can_follow.then_some(true);
            resources.list_changed = can_follow.then_some(true);
        }
        let info = Implementation::new(NAME, env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities).with_server_info(info).with_instructions(self.inner.instructions())
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        rc: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        rc.peer.set_peer_info(request.clone());
        let mut result = self.negotiate_initialize(&request)?;
        // Over HTTP nothing can be sent to a client of an older protocol once its request is answered.
        if self.inner.lane.is_none()
            && let Some(resources) = &mut result.capabilities.resources
        {
            (resources.subscribe, resources.list_changed) = (None, None);
        }
        Ok(result)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.inner.tools.iter().map(|it| it.listed()).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        rc: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let tool = self.find(&request.name)?;
        let by = name_of(&rc);
        let given = request.arguments.clone().unwrap_or_default();
        let without = (tool.without_plans)(&given);
        let turn = self.work(without, by.clone(), move |inner, call| match tool.run(call, given)? {
            Turn::Done(done) => Ok(Ok(done)),
            Turn::Asks(question) => Ok(Err((question, inner.seal(call)?))),
        });
        let (question, seal) = match turn.await? {
            Ok(Ok(done)) => return Ok(self.inner.answered(Ok(done))),
            Ok(Err(asks)) => asks,
            Err(refusal) => return Ok(self.inner.answered(Err(refusal))),
        };
        match elicitation::ask(&question, &seal, &request, &rc).await? {
            Elicited::Answer(answer) => Ok(*answer),
            Elicited::Reply(Reply::No) => Ok(self.inner.answered(Ok(elicitation::declined()))),
            Elicited::Reply(Reply::Yes { note }) => {
                let done = self.work(without, by, move |_, call| {
                    let done = (question.act)(call, note).map_err(|it| it.with_kept(&call.context.kept));
                    done.map(|mut done| {
                        call.context.kept.put_into(&mut done);
                        done
                    })
                });
                Ok(self.inner.answered(done.await?))
            }
        }
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(prompts::list()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        Ok(prompts::get(&request)?.into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let known = request.context.and_then(|it| it.arguments).unwrap_or_default();
        let found = self.work(Without::Looks, None, move |_, call| {
            let plan = known.get("plan").map(String::as_str);
            prompts::complete(call, &request.argument.name, &request.argument.value, plan)
        });
        // If the operation fails, the response has no completions.
        Ok(found.await?.map(CompleteResult::new).unwrap_or_default())
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let cursor = request.and_then(|it| it.cursor);
        let listed = self
            .work(Without::Looks, None, move |_, call| Ok(resources::list(&call.context, cursor.as_deref())));
        // If no context can be made, for example because there is no plans directory, the list is empty.
        listed.await?.unwrap_or_else(|_| Ok(ListResourcesResult::default()))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri.clone();
        let read = self.work(Without::Looks, None, move |_, call| Ok(resources::read(&call.context, &uri)));
        Ok(read.await?.map_err(|it| it.of_resource(&request.uri))??.into())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        rc: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        // Over HTTP nothing can be sent to a client of an older protocol once its request is answered.
        if self.inner.lane.is_none() {
            return Err(ErrorData::method_not_found::<SubscribeRequestMethod>());
        }
        if !resources::is_uri(&request.uri) {
            let data = json!({"uri": request.uri});
            return Err(ErrorData::invalid_params("there is no such resource", Some(data)));
        }
        self.inner.followed.add(&self.inner.source, &self.inner.contexts, rc.peer, request.uri).await
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.inner.followed.remove(&request.uri).await;
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        self.inner.beginnings.accept(&self.inner.source, &self.inner.contexts, requested)
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Err(unread::error(request))
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        subscriptions::listen(&self.inner.beginnings, &self.inner.contexts, subscription).await
    }
}

/// The names of the tools in a set. `set` is the set's name on the command line. If `None`, the tools of all sets.
#[cfg(test)]
pub(super) fn tool_names(set: Option<&str>) -> Vec<&'static str> {
    let sets: &[(Toolset, bool)] = match set {
        None => &[(Toolset::All, false), (Toolset::Compat, false)],
        Some("executor") => &[(Toolset::Executor, false)],
        Some("compat") => &[(Toolset::Compat, false)],
        Some("read-only") => &[(Toolset::All, true)],
        Some(_) => &[(Toolset::All, false)],
    };
    sets.iter().flat_map(|(of, is_read_only)| toolset::tools(*of, *is_read_only)).map(|it| it.name).collect()
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod vendors;
