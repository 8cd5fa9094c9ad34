//! One connection: what the client asks, answered.

#![expect(
    deprecated,
    reason = "older revisions have subscriptions and log levels of their own kind"
)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::request::Parts;
use quipu_core::engine::{NewSession, Principal, TokenWish};
use quipu_core::model::Session;
use quipu_core::{Error, ErrorKind};
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, CustomRequest,
    CustomResult, DiscoverResult, ErrorCode, ErrorData, Extensions, GetPromptRequestParams,
    GetPromptResponse, Implementation, InitializeRequestParams, InitializeResult,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse,
    ServerCapabilities, ServerConfig, SetLevelRequestParams, SubscribeRequestParams,
    SubscriptionFilter, Tool, UnsubscribeRequestParams,
};
use rmcp::service::{NotificationContext, RequestContext, RoleServer, SubscriptionContext};
use rmcp::transport::common::http_header::HEADER_SESSION_ID;
use rmcp::transport::streamable_http_server::session::SessionId;

use tokio_util::sync::CancellationToken;

use super::access::{Client, Grant};
use super::answer::refused;
use super::arguments::Arguments;
use super::catalog;
use super::changes::{End, Follower, Watched};
use super::http::Secret;
use super::log::{Level, Log};
use super::stdio::Reach;
use super::tools::{self, Call, Progress};
use super::{Mcp, completion, instructions, malformed, prompts, resources, sessions};

/// One connection, or one request of a client that needs no connection.
#[derive(Debug)]
pub(crate) struct Handler {
    mcp: Mcp,
    door: Door,
    state: Arc<State>,
    /// Cancelled when the connection is over, or the server.
    closing: CancellationToken,
}

impl Drop for Handler {
    fn drop(&mut self) {
        self.closing.cancel();
    }
}

/// How the client comes in.
#[derive(Clone, Debug)]
pub(super) enum Door {
    /// It started this process.
    Stdio(Reach),
    /// It has a key or a token, which each of its requests carries.
    Http,
}

#[derive(Debug, Default)]
struct State {
    /// The session that `initialize` began.
    begun: Mutex<Option<Session>>,
    log: Log,
    watched: Watched,
    /// Whether the client is told of changes already.
    is_told: AtomicBool,
}

impl Handler {
    pub(super) fn new(mcp: Mcp, door: Door) -> Self {
        let closing = mcp.0.stop.child_token();
        Self { mcp, door, state: Arc::default(), closing }
    }

    /// Finds out who asks. Over HTTP that is whoever stands behind the key of this very request.
    fn client(
        &self,
        extensions: &Extensions,
        named: Option<&Implementation>,
    ) -> Result<Client, ErrorData> {
        let (workspace, grant) = match &self.door {
            Door::Stdio(Reach::Everything(workspace)) => (*workspace, Grant::Everything),
            Door::Stdio(Reach::Attached(workspace, _)) => {
                let session = self
                    .session(|| self.begin(extensions, named))
                    .map_err(|error| protocol(&error))?;
                (*workspace, Grant::Session(Box::new(session)))
            }
            Door::Http => {
                let principal = carried::<Principal>(extensions)?;
                let workspace = match principal {
                    Principal::Key(key) => key.workspace,
                    Principal::Session(session) => session.workspace,
                };
                (workspace, principal.clone().into())
            }
        };
        let engine = self.mcp.engine().clone();
        Ok(Client { engine, workspace, grant, settings: self.mcp.settings().clone() })
    }

    /// Returns the session of this connection, and begins one if there is none.
    fn session(&self, begin: impl FnOnce() -> Result<Session, Error>) -> Result<Session, Error> {
        let mut begun = lock(&self.state.begun);
        if let Some(begun) = &*begun {
            return Ok(begun.clone());
        }
        let new = begin()?;
        Ok(begun.insert(new).clone())
    }

    /// Begins the session of a connection.
    fn begin(
        &self,
        extensions: &Extensions,
        named: Option<&Implementation>,
    ) -> Result<Session, Error> {
        let title = sessions::title(named);
        let engine = self.mcp.engine();
        let (workspace, attachments) = match &self.door {
            Door::Stdio(Reach::Everything(workspace)) => (*workspace, Vec::new()),
            Door::Stdio(Reach::Attached(workspace, stores)) => (*workspace, stores.clone()),
            Door::Http => {
                let parts = extensions.get::<Parts>();
                match parts.and_then(|parts| parts.extensions.get::<Principal>()) {
                    Some(Principal::Key(key)) => (key.workspace, Vec::new()),
                    Some(Principal::Session(session)) => return Ok(session.clone()),
                    None => {
                        return Err(Error::new(ErrorKind::AccessDenied, "there is no credential"));
                    }
                }
            }
        };
        let new = NewSession::titled(&title, attachments, TokenWish::None);
        Ok(engine.create_session(workspace, &new)?.0)
    }

    /// Prepares a call of a tool.
    fn call(&self, context: &RequestContext<RoleServer>) -> Result<Call, ErrorData> {
        let named = context.client_info();
        Ok(Call {
            client: self.client(&context.extensions, named.as_ref())?,
            mcp: self.mcp.clone(),
            session: lock(&self.state.begun).as_ref().map(|session| session.id),
            title: sessions::title(named.as_ref()),
            cancelled: context.ct.clone(),
            progress: Progress::new(context),
        })
    }

    /// Runs what a client asks where waiting for the disk harms nobody.
    async fn ask<T: Send + 'static>(
        &self,
        context: &RequestContext<RoleServer>,
        work: impl FnOnce(&Call) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, ErrorData> {
        let call = self.call(context)?;
        blocking(move || work(&call)).await?.map_err(|error| protocol(&error))
    }

    /// Watches for changes on behalf of a client.
    fn follower(
        &self,
        extensions: &Extensions,
        named: Option<&Implementation>,
    ) -> Result<Follower, ErrorData> {
        let client = self.client(extensions, named)?;
        let secret = match self.door {
            Door::Stdio(_) => None,
            Door::Http => Some(carried::<Secret>(extensions)?.clone()),
        };
        Ok(self.mcp.0.feed.follower(client, secret))
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_completions()
            .enable_logging()
            .enable_prompts()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_resources_list_changed()
            .enable_tools()
            .build();
        let about = Implementation::new("quipu", env!("CARGO_PKG_VERSION")).with_title("Quipu");
        let mut info = ServerConfig::new(capabilities).with_server_info(about);
        info.protocol_version = ProtocolVersion::LATEST_WITH_INITIALIZE;
        info
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        let named = Some(&request.client_info);
        let session = self
            .session(|| self.begin(&context.extensions, named))
            .map_err(|error| protocol(&error))?;
        tracing::info!(client = session.title, session = %session.id, "a client has come");
        let client = self.client(&context.extensions, named)?;
        let mut info = self.negotiate_initialize(&request)?;
        info.instructions = Some(instructions::text(&client).map_err(|error| protocol(&error))?);
        Ok(info)
    }

    async fn discover(
        &self,
        context: RequestContext<RoleServer>,
    ) -> Result<DiscoverResult, ErrorData> {
        let text = self.ask(&context, |call| instructions::text(&call.client)).await?;
        let mut info = self.get_info();
        info.instructions = Some(text);
        let versions = self.supported_protocol_versions().into_owned();
        Ok(DiscoverResult::from_server_info(versions, info))
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        if self.state.is_told.swap(true, Ordering::Relaxed) {
            return;
        }
        let Ok(follower) = self.follower(&context.extensions, None) else {
            self.state.is_told.store(false, Ordering::Relaxed);
            return;
        };
        let (watched, closing) = (self.state.watched.clone(), self.closing.clone());
        let connections = self.mcp.0.connections.clone();
        tokio::spawn(async move {
            let end = tokio::select! {
                end = follower.tell_peer(&context.peer, &watched) => end,
                () = closing.cancelled() => End::Over,
            };
            if let (End::Refused, Some(id)) = (end, connection(&context.extensions)) {
                connections.close(&id).await;
            }
        });
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let named = context.client_info();
        let client = self.client(&context.extensions, named.as_ref())?;
        let tools = catalog::offered(&client);
        Ok(ListToolsResult::with_all_items(tools.cloned().collect()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        catalog::tool(name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let call = self.call(&context)?;
        let name = request.name;
        if !catalog::offered(&call.client).any(|tool| tool.name == name) {
            return Err(ErrorData::invalid_params(format!("unknown tool: {name}"), None));
        }
        let arguments = Arguments::new(request.arguments);
        let tool = name.clone();
        let result = blocking(move || tools::run(&call, &tool, &arguments)).await?;
        let (level, end) = match &result {
            Ok(_) => (Level::Debug, "done".to_owned()),
            Err(error) => (Level::Info, error.message().to_owned()),
        };
        self.state.log.tell(&context, level, &format!("{name}: {end}")).await;
        Ok(result.unwrap_or_else(|error| refused(&error)).into())
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(prompts::all()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let arguments = Arguments::new(request.arguments);
        let name = request.name;
        let prompt = self.ask(&context, move |call| prompts::get(call, &name, &arguments)).await?;
        Ok(prompt.into())
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let cursor = request.and_then(|request| request.cursor);
        self.ask(&context, move |call| resources::list(&call.client, cursor.as_deref())).await
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let read = self.ask(&context, move |call| resources::read(&call.client, &request.uri));
        Ok(read.await?.into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        self.ask(&context, move |call| completion::complete(&call.client, &request)).await
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let mut accepted = requested.clone();
        if let Some(urls) = &mut accepted.resource_subscriptions {
            urls.retain(|url| resources::may_be(url));
        }
        Some(accepted)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let request = context.request_context();
        let named = request.client_info();
        let follower = self.follower(&request.extensions, named.as_ref())?;
        tokio::select! {
            told = follower.tell_listener(context.sink()) => told.map_err(|error| protocol(&error)),
            () = context.cancelled() => Ok(()),
            () = self.closing.cancelled() => Ok(()),
        }
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let watched = self.state.watched.clone();
        self.ask(&context, move |call| watched.add(&call.client, &request.uri)).await
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.state.watched.remove(&request.uri);
        Ok(())
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.state.log.set_level(request.level);
        Ok(())
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let CustomRequest { method, params, .. } = request;
        let unknown = || ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method.clone(), None);
        Err(malformed::reason(&method, params.as_ref()).unwrap_or_else(unknown))
    }
}

/// Returns what the request over HTTP was given by whoever let it in.
fn carried<T: Clone + Send + Sync + 'static>(extensions: &Extensions) -> Result<&T, ErrorData> {
    let parts = extensions.get::<Parts>();
    let carried = parts.and_then(|parts| parts.extensions.get::<T>());
    carried.ok_or_else(|| invalid("the request carries no credential"))
}

/// Returns the connection that a request over HTTP belongs to.
fn connection(extensions: &Extensions) -> Option<SessionId> {
    let id = extensions.get::<Parts>()?.headers.get(HEADER_SESSION_ID)?;
    Some(id.to_str().ok()?.into())
}

/// Writes an error of the engine as one of the protocol.
fn protocol(error: &Error) -> ErrorData {
    let message = match error.hint() {
        Some(hint) => format!("{}; {hint}", error.message()),
        None => error.message().to_owned(),
    };
    match error.kind() {
        ErrorKind::NotFound => ErrorData::resource_not_found(message, None),
        ErrorKind::StorageFull
        | ErrorKind::StorageBusy
        | ErrorKind::StorageUnavailable
        | ErrorKind::StorageUnusable
        | ErrorKind::EraseIncomplete => ErrorData::internal_error(message, None),
        ErrorKind::InvalidInput
        | ErrorKind::Ambiguous
        | ErrorKind::PathConflict { .. }
        | ErrorKind::PreconditionFailed
        | ErrorKind::StoreArchived
        | ErrorKind::ContentTooLarge
        | ErrorKind::LimitReached
        | ErrorKind::SecretRefused
        | ErrorKind::HeadNotRedactable
        | ErrorKind::AccessDenied => ErrorData::invalid_params(message, None),
    }
}

fn invalid(message: &'static str) -> ErrorData {
    ErrorData::invalid_request(message, None)
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ErrorData> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => Ok(done),
        Err(error) => {
            tracing::error!(%error, "a request failed inside");
            Err(ErrorData::internal_error("an internal error occurred", None))
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
