//! Requests for known methods with parameters that do not match.

#![expect(
    deprecated,
    reason = "older revisions have subscriptions and log levels of their own kind"
)]

use rmcp::model::{
    CallToolRequestParams, CompleteRequestParams, ErrorData, GetPromptRequestParams,
    InitializeRequestParams, ReadResourceRequestParams, SetLevelRequestParams,
    SubscribeRequestParams, SubscriptionsListenRequestParams, UnsubscribeRequestParams,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Returns why such a request is invalid; `None` if there is no such method.
pub(super) fn reason(method: &str, params: Option<&Value>) -> Option<ErrorData> {
    let missing = || "params are missing".to_owned();
    let needed = |check: fn(&Value) -> String| params.map_or_else(missing, check);
    let reason = match method {
        "initialize" => needed(misfit::<InitializeRequestParams>),
        "tools/call" => needed(misfit::<CallToolRequestParams>),
        "prompts/get" => needed(misfit::<GetPromptRequestParams>),
        "resources/read" => needed(misfit::<ReadResourceRequestParams>),
        "resources/subscribe" => needed(misfit::<SubscribeRequestParams>),
        "resources/unsubscribe" => needed(misfit::<UnsubscribeRequestParams>),
        "subscriptions/listen" => needed(misfit::<SubscriptionsListenRequestParams>),
        "completion/complete" => needed(misfit::<CompleteRequestParams>),
        "logging/setLevel" => needed(misfit::<SetLevelRequestParams>),
        _ => return None,
    };
    let reason = if reason.is_empty() { "params are invalid" } else { &reason };
    Some(ErrorData::invalid_params(format!("{method}: {reason}"), None))
}

/// Returns what is wrong with the parameters; empty if nothing is.
fn misfit<T: DeserializeOwned>(params: &Value) -> String {
    if !params.is_object() {
        return "params must be an object".to_owned();
    }
    let arguments = params.get("arguments");
    if arguments.is_some_and(|arguments| !arguments.is_object() && !arguments.is_null()) {
        return "arguments must be an object".to_owned();
    }
    match serde_json::from_value::<T>(params.clone()) {
        Ok(_) => String::new(),
        Err(error) => error.to_string(),
    }
}
