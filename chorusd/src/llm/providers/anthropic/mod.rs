//! Anthropic's Messages API: <https://docs.anthropic.com/en/api/messages>.

mod list;
mod reader;
mod request;

use reqwest::header::{HeaderName, HeaderValue};
use serde::Deserialize;

use super::super::error::{CallError, Class};
use super::super::request::Request;
use super::super::transport::Ask;
use super::{Named, Page, Reader, To, Translate, phrases, secret};

/// The kind of the blocks that a message keeps.
const KIND: &str = "anthropic";

/// The version of the API that is spoken.
const VERSION: &str = "2023-06-01";

/// The language.
pub struct Anthropic;

impl Translate for Anthropic {
    fn ask(&self, to: &To<'_>, request: &Request) -> Result<Ask, CallError> {
        let body = request::body(&to.provider.name, to.model, request)
            .map_err(|e| CallError::new(Class::BadRequest, format!("the conversation cannot be sent: {e}")))?;
        Ok(Ask { path: "/v1/messages".into(), headers: headers(to)?, body: Some(body) })
    }

    fn reader(&self, to: &To<'_>) -> Box<dyn Reader> {
        Box::new(reader::Messages::new(Named::of(to)))
    }

    fn refusal(&self, status: u16, body: &[u8]) -> (Option<Class>, Option<String>) {
        let Ok(Refusal { error }) = serde_json::from_slice(body) else {
            return (None, Some(String::from_utf8_lossy(body).into_owned()).filter(|said| !said.is_empty()));
        };
        (Some(class_of(&error, Some(status))), Some(error.message))
    }

    fn ask_list(&self, to: &To<'_>, after: Option<&str>) -> Result<Ask, CallError> {
        let after = after.map(|id| format!("&after_id={id}")).unwrap_or_default();
        Ok(Ask { path: format!("/v1/models?limit=1000{after}"), headers: headers(to)?, body: None })
    }

    fn listed(&self, body: &[u8]) -> Result<Page, String> {
        list::read(body)
    }
}

fn headers(to: &To<'_>) -> Result<Vec<(HeaderName, HeaderValue)>, CallError> {
    let mut headers = vec![(HeaderName::from_static("anthropic-version"), HeaderValue::from_static(VERSION))];
    if let Some(key) = to.key {
        headers.push((HeaderName::from_static("x-api-key"), secret(key.expose())?));
    }
    Ok(headers)
}

#[derive(Debug, Deserialize)]
struct Refusal {
    error: Fault,
}

/// The `error` of a body or an event.
#[derive(Debug, Deserialize)]
struct Fault {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    message: String,
}

/// <https://docs.anthropic.com/en/api/errors>. In mid-stream there is no status.
fn class_of(fault: &Fault, status: Option<u16>) -> Class {
    if let Some(class) = phrases::of_words(status.unwrap_or(400), &fault.message) {
        return class;
    }
    match &*fault.kind {
        "authentication_error" => Class::Auth,
        "billing_error" => Class::SpendCap,
        "permission_error" => Class::Denied,
        "not_found_error" => Class::NotFound,
        "request_too_large" => Class::ContextTooLong,
        "rate_limit_error" => Class::RateLimited,
        "overloaded_error" => Class::Overloaded,
        "api_error" | "timeout_error" => Class::Server,
        "invalid_request_error" => Class::BadRequest,
        _ => status.map_or(Class::Server, phrases::of_status),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_have_their_class() {
        let class = |status, kind: &str, message: &str| {
            let body = serde_json::json!({"type": "error", "error": {"type": kind, "message": message}}).to_string();
            Anthropic.refusal(status, body.as_bytes()).0.unwrap()
        };
        for (status, kind, message, due) in [
            (401, "authentication_error", "invalid x-api-key", Class::Auth),
            (403, "permission_error", "not allowed", Class::Denied),
            (404, "not_found_error", "model: claude-9", Class::NotFound),
            (413, "request_too_large", "Request exceeds the maximum size", Class::ContextTooLong),
            (400, "invalid_request_error", "prompt is too long: 1 > 0", Class::ContextTooLong),
            (400, "invalid_request_error", "max_tokens: required", Class::BadRequest),
            (400, "invalid_request_error", "Your credit balance is too low", Class::SpendCap),
            (402, "billing_error", "payment", Class::SpendCap),
            (429, "rate_limit_error", "slow down", Class::RateLimited),
            (500, "api_error", "oops", Class::Server),
            (529, "overloaded_error", "Overloaded", Class::Overloaded),
            (418, "new_error", "?", Class::BadRequest),
        ] {
            assert_eq!(class(status, kind, message), due, "{kind}: {message}");
        }
        let (class, said) = Anthropic.refusal(502, b"<html>Bad gateway</html>");
        assert_eq!((class, said.as_deref()), (None, Some("<html>Bad gateway</html>")));
    }
}
