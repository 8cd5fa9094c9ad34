//! Answers: JSON bodies, and failures in the envelope of the contract.

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use quipu_core::{Error, ErrorKind};
use quipu_service::pool::PoolError;
use serde::Serialize;
use serde_json::{Map, Value};

use super::choices;

/// The initial capacity, which fits most bodies without reallocation.
const BODY_SIZE_BYTES: usize = 4096;

/// What a handler returns.
pub(super) type Answer = Result<Response, Failure>;

/// Returns a body with status 200.
pub(super) fn json(body: &impl Serialize) -> Response {
    with_status(StatusCode::OK, body)
}

fn with_status(status: StatusCode, body: &impl Serialize) -> Response {
    let mut bytes = Vec::with_capacity(BODY_SIZE_BYTES);
    serde_json::to_writer(&mut bytes, body).expect("our shapes can be written as JSON");
    let mut response = Response::new(Body::from(bytes));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

/// Why a request failed. It becomes a response when its request id is known, in
/// [`Failure::respond`].
#[derive(Clone, Debug)]
pub(super) struct Failure {
    pub(super) status: StatusCode,
    pub(super) error_type: &'static str,
    message: String,
    fields: Map<String, Value>,
    headers: Vec<(HeaderName, HeaderValue)>,
    /// The underlying error, for the log only: it may name paths of the host.
    pub(super) cause: Option<String>,
}

impl Failure {
    pub(super) fn new(
        status: StatusCode,
        error_type: &'static str,
        message: impl Into<String>,
    ) -> Self {
        Self {
            status,
            error_type,
            message: message.into(),
            fields: Map::new(),
            headers: Vec::new(),
            cause: None,
        }
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request_error", message)
    }

    pub(super) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found_error", message)
    }

    pub(super) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "permission_error", message)
    }

    pub(super) fn unauthenticated(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "authentication_error", message)
    }

    #[must_use]
    pub(super) fn with_header(mut self, name: &'static str, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.push((HeaderName::from_static(name), value));
        }
        self
    }

    pub(super) fn message(&self) -> &str {
        &self.message
    }

    /// Returns the envelope.
    pub(super) fn body(&self, request_id: &str) -> Value {
        let mut error = Map::new();
        error.insert("type".to_owned(), self.error_type.into());
        error.insert("message".to_owned(), self.message.clone().into());
        error.extend(self.fields.clone());
        serde_json::json!({"type": "error", "error": error, "request_id": request_id})
    }

    /// Returns the response with its envelope.
    pub(super) fn respond(self, request_id: &str) -> Response {
        let mut response = with_status(self.status, &self.body(request_id));
        response.headers_mut().extend(self.headers.into_iter().map(|(n, v)| (Some(n), v)));
        response
    }
}

impl IntoResponse for Failure {
    /// Carries the failure outward to where the request id is known.
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl From<PoolError> for Failure {
    fn from(error: PoolError) -> Self {
        let message = error.to_string();
        match error {
            PoolError::Overloaded => {
                let overloaded = Self::new(choices::OVERLOADED, "overloaded_error", message);
                overloaded.with_header("retry-after", choices::RETRY_AFTER_SECONDS)
            }
            PoolError::Panicked => {
                let status = StatusCode::INTERNAL_SERVER_ERROR;
                let mut failure = Self::new(status, "api_error", message);
                failure.cause = Some("a handler panicked".to_owned());
                failure
            }
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let (status, error_type) = choices::status(error.kind());
        let message = match error.hint() {
            Some(hint) => format!("{}; {hint}", error.message()),
            None => error.message().to_owned(),
        };
        let mut failure = Self::new(status, error_type, message);
        failure.cause = std::error::Error::source(&error).map(ToString::to_string);
        if let ErrorKind::PathConflict { memory, path } = error.kind() {
            failure.fields.insert("conflicting_memory_id".to_owned(), memory.to_string().into());
            failure.fields.insert("conflicting_path".to_owned(), path.to_string().into());
        }
        if choices::forbids_retry(error.kind()) {
            failure = failure.with_header("x-should-retry", "false");
        }
        failure
    }
}
