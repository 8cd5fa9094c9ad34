//! One connection: answers the requests of its client.

#![expect(
    deprecated,
    reason = "older revisions have subscriptions and log levels of their own kind"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::request::Parts;
use quipu_core::engine::{NewAttachment, NewSession, Principal, SessionToken};
use quipu_core::model::{Actor, KeyId, WorkspaceId};
use quipu_core::{Error, ErrorKind};
use quipu_knowledge::Knowledge;
use quipu_service::credential::Credential;
use quipu_service::pool::PoolError;
use quipu_service::{Author, DraftedSession};
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

use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use super::access::{Grant, Identity};
use super::answer::refused;
use super::arguments::Arguments;
use super::catalog;
use super::changes::{End, Follower, Watched};
use super::log::{Level, Log};
use super::stdio::Reach;
use super::tools::{self, Asked, Call, Progress};
use super::{Mcp, completion, instructions, malformed, prompts, resources, sessions};

/// One connection, or one request of a client that needs no connection.
#[derive(Debug)]
pub(super) struct Handler {
    mcp: Mcp,
    door: Door,
    state: Arc<State>,
    /// Cancelled when the connection or the server ends.
    closing: CancellationToken,
}

impl Drop for Handler {
    fn drop(&mut self) {
        self.closing.cancel();
    }
}

/// How the client is connected.
#[derive(Clone, Debug)]
pub(super) enum Door {
    /// It started this process.
    Stdio(Reach),
    /// Through an HTTP server; each request carries a key or a token.
    Http,
}

#[derive(Debug, Default)]
struct State {
    /// The session of the connection, once it has begun.
    begun: OnceCell<Arc<DraftedSession>>,
    log: Log,
    watched: Watched,
    /// Whether a task follows the changes for this client.
    is_following: AtomicBool,
}

impl Handler {
    pub(super) fn new(mcp: Mcp, door: Door) -> Self {
        let closing = mcp.0.service.stop().child_token();
        Self { mcp, door, state: Arc::default(), closing }
    }

    /// Returns who sends a request. Over HTTP, that is the principal of this request's own
    /// credential: what it grants may have changed since the connection began.
    async fn identity(
        &self,
        extensions: &Extensions,
        named: Option<&Implementation>,
    ) -> Result<Identity, ErrorData> {
        let (workspace, grant) = match &self.door {
            Door::Stdio(Reach::Everything(workspace)) => (*workspace, Grant::Everything),
            Door::Stdio(Reach::Attached(workspace, stores)) => {
                let begun = self.session(*workspace, None, stores, named).await?;
                (*workspace, Grant::Session(Box::new(begun.session().clone())))
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
        Ok(Identity { workspace, grant, settings: self.mcp.settings().clone() })
    }

    /// Returns the session of this connection, which begins now if there is none. It is recorded
    /// when it first changes something.
    async fn session(
        &self,
        workspace: WorkspaceId,
        key: Option<KeyId>,
        stores: &[NewAttachment],
        named: Option<&Implementation>,
    ) -> Result<&Arc<DraftedSession>, ErrorData> {
        let draft = async || {
            let title = sessions::title(named);
            let titled = NewSession::titled(&title, stores.to_vec(), SessionToken::None);
            let new = NewSession { key, ..titled };
            let draft = move |engine: &Knowledge| engine.draft_session(workspace, &new);
            let drafted = self.mcp.pool().read(draft).await.map_err(interrupted)?;
            let session = drafted.map_err(|error| protocol(&error))?;
            Ok(Arc::new(DraftedSession::new(session)))
        };
        self.state.begun.get_or_try_init(draft).await
    }

    /// Captures a request, to be answered when there is an engine for it.
    async fn asked(
        &self,
        context: &RequestContext<RoleServer>,
        named: Option<&Implementation>,
        progress: Progress,
    ) -> Result<Arc<Asked>, ErrorData> {
        sessions::require_short_names(named)?;
        let identity = self.identity(&context.extensions, named).await?;
        let author = match (&self.door, &identity.grant) {
            (Door::Http, Grant::Session(session)) => Some(Actor::Session(session.id).into()),
            _ => self.state.begun.get().cloned().map(Author::Drafted),
        };
        Ok(Arc::new(Asked {
            identity,
            mcp: self.mcp.clone(),
            author,
            title: sessions::title(named),
            cancelled: context.ct.clone(),
            progress,
        }))
    }

    /// Answers a request that only reads.
    async fn ask<T: Send + 'static>(
        &self,
        context: &RequestContext<RoleServer>,
        work: impl Fn(&Call) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, ErrorData> {
        let named = context.client_info();
        let asked = self.asked(context, named.as_ref(), Progress::default()).await?;
        let run = move |engine: &Knowledge| work(&asked.call(engine));
        let answer = self.mcp.pool().read(run).await.map_err(interrupted)?;
        answer.map_err(|error| protocol(&error))
    }

    /// Follows the changes on behalf of a client.
    async fn follower(
        &self,
        extensions: &Extensions,
        named: Option<&Implementation>,
    ) -> Result<Follower, ErrorData> {
        let identity = self.identity(extensions, named).await?;
        let credential = match self.door {
            Door::Stdio(_) => None,
            Door::Http => Some(carried::<Credential>(extensions)?.clone()),
        };
        Ok(Follower::new(&self.mcp.0.service, identity, credential).await)
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
        let named = Some(&request.client_info);
        sessions::require_short_names(named)?;
        context.peer.set_peer_info(request.clone());
        let identity = self.identity(&context.extensions, named).await?;
        match identity.grant {
            Grant::Everything => {
                self.session(identity.workspace, None, &[], named).await?;
            }
            Grant::Key(key) => {
                self.session(identity.workspace, Some(key.id), &[], named).await?;
            }
            Grant::Session(_) => {}
        }
        tracing::info!(client = sessions::title(named), "client connected");
        let asked = self.asked(&context, named, Progress::default()).await?;
        let instruct = move |engine: &Knowledge| instructions::text(&asked.call(engine).client);
        let text = self.mcp.pool().read(instruct).await.map_err(interrupted)?;
        let mut info = self.negotiate_initialize(&request)?;
        info.instructions = Some(text.map_err(|error| protocol(&error))?);
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
        if self.state.is_following.swap(true, Ordering::Relaxed) {
            return;
        }
        let Ok(follower) = self.follower(&context.extensions, None).await else {
            self.state.is_following.store(false, Ordering::Relaxed);
            return;
        };
        let (watched, closing) = (self.state.watched.clone(), self.closing.clone());
        let connections = self.mcp.0.connections.clone();
        tokio::spawn(async move {
            let end = tokio::select! {
                end = follower.notify_peer(&context.peer, &watched) => end,
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
        let identity = self.identity(&context.extensions, named.as_ref()).await?;
        let tools = catalog::offered(&identity);
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
        let (named, progress) = (context.client_info(), Progress::new(&context));
        let asked = self.asked(&context, named.as_ref(), progress).await?;
        let name = request.name;
        if !catalog::offered(&asked.identity).any(|tool| tool.name == name) {
            return Err(ErrorData::invalid_params(format!("unknown tool: {name}"), None));
        }
        let arguments = Arguments::new(request.arguments);
        // Reporting progress blocks, and must happen once per step. A read may run first on this
        // worker and again on another thread; a write runs once, on a thread that may block.
        let writes = tools::writes(&name, &arguments) || asked.progress.is_wanted();
        let tool = name.clone();
        let run = move |engine: &Knowledge| tools::run(&asked.call(engine), &tool, &arguments);
        let pool = self.mcp.pool();
        let ran = if writes { pool.write(run).await } else { pool.read(run).await };
        let result = ran.map_err(interrupted)?;
        let (level, end) = match &result {
            Ok(_) => (Level::Debug, "done".to_owned()),
            Err(error) => (Level::Info, error.message().to_owned()),
        };
        self.state.log.send(&context, level, &format!("{name}: {end}")).await;
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
        let follower = self.follower(&request.extensions, named.as_ref()).await?;
        tokio::select! {
            ended = follower.notify_listener(context.sink()) => ended.map_err(|error| protocol(&error)),
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

/// Returns what the HTTP endpoint attached to a request.
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

/// Converts an error of the engine into one of the protocol.
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

fn interrupted(error: PoolError) -> ErrorData {
    let message = match error {
        PoolError::Overloaded => format!("{error}; try again in a moment"),
        PoolError::Panicked => error.to_string(),
    };
    ErrorData::internal_error(message, None)
}
