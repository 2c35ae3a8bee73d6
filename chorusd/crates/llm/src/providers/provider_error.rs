//! Parses error responses in all their forms, and classifies them. Compatible servers do not agree on a form: fields
//! are null or missing, errors are strings, lists or strings with JSON in them, and the status may be that of a proxy.
//! Therefore phrases about the request are checked first, then codes, then phrases about the account, then the status.

use serde_json::{Map, Value};

use super::super::error::ErrorClass;
use super::error_phrases;

/// An error in a server's own words.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ProviderError {
    pub message: String,
    /// The values of `code`, `type` and `status` that are present.
    codes: Vec<String>,
}

impl ProviderError {
    /// Parses the body of an error response, or of a response that turns out to be an error; `None` if it describes no
    /// error.
    #[must_use]
    pub(super) fn parse(body: &[u8]) -> Option<Self> {
        Self::from_body(serde_json::from_slice(body).ok()?)
    }

    fn from_body(body: Value) -> Option<Self> {
        match body {
            // Gemini's endpoint.
            Value::Array(mut all) if !all.is_empty() => Self::from_body(all.swap_remove(0)),
            Value::Object(mut map) => match map.remove("error").filter(|error| !error.is_null()) {
                Some(error) => Some(Self::from_value(error)),
                None => ["message", "detail", "errors", "error_msg"]
                    .iter()
                    .any(|key| map.get(*key).is_some_and(|said| !said.is_null()))
                    .then(|| Self::from_value(Value::Object(map))),
            },
            _ => None,
        }
    }

    /// Converts the `error` of a body, an event or a chunk.
    #[must_use]
    pub(super) fn from_value(error: Value) -> Self {
        match error {
            Value::String(message) => Self { message, codes: Vec::new() },
            Value::Object(map) => {
                let codes = ["code", "type", "status"].into_iter().filter_map(|key| code_text(map.get(key)?));
                Self { message: message_text(&map), codes: codes.collect() }
            }
            other => Self { message: other.to_string(), codes: Vec::new() },
        }
    }

    /// Classifies the error; `status` is `None` in the middle of a stream.
    #[must_use]
    pub(super) fn class(&self, status: Option<u16>) -> ErrorClass {
        let told = || self.codes.iter().find_map(|code| code.parse().ok());
        let status = status.or_else(told).filter(|status| (400..600).contains(status));
        let of_codes = || self.codes.iter().find_map(|code| class_of_code(code));
        error_phrases::class_of_request_error(status.unwrap_or(400), &self.message)
            .or_else(of_codes)
            .or_else(|| error_phrases::class_of_account_error(status.unwrap_or(400), &self.message))
            .or_else(|| status.map(error_phrases::class_of_status))
            .unwrap_or_else(|| {
                let invalid = self.codes.iter().any(|code| code == "invalid_request_error");
                if invalid { ErrorClass::BadRequest } else { ErrorClass::Server }
            })
    }
}

fn code_text(code: &Value) -> Option<String> {
    match code {
        Value::String(code) => Some(code.clone()),
        Value::Number(code) => Some(code.to_string()),
        _ => None,
    }
}

/// The message of an error. A router adds the message of the server behind it to its own.
fn message_text(map: &Map<String, Value>) -> String {
    let own = ["message", "detail", "errors", "error_msg"].into_iter().find_map(|key| map.get(key).map(value_text));
    let passed_on = map.get("metadata").and_then(|about| about.get("raw")).map(value_text);
    [own, passed_on].into_iter().flatten().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(": ")
}

fn value_text(said: &Value) -> String {
    match said {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Classes of codes: <https://platform.openai.com/docs/guides/error-codes>, <https://docs.anthropic.com/en/api/errors>.
/// Codes that some servers send for any failure, such as `api_error`, are ignored.
fn class_of_code(code: &str) -> Option<ErrorClass> {
    Some(match code {
        "invalid_api_key" | "authentication_error" => ErrorClass::Auth,
        "permission_error" => ErrorClass::Denied,
        "insufficient_quota" | "billing_hard_limit_reached" | "billing_not_active" | "billing_error" => {
            ErrorClass::SpendCap
        }
        "context_length_exceeded" | "exceed_context_size_error" | "context_exceeded" | "request_too_large" => {
            ErrorClass::ContextTooLong
        }
        "model_not_found" | "not_found_error" => ErrorClass::NotFound,
        "rate_limit_exceeded" | "rate_limit_error" => ErrorClass::RateLimited,
        "overloaded_error" | "server_overloaded" | "slow_down" => ErrorClass::Overloaded,
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
