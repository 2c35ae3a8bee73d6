//! Chat completions, as OpenAI and everybody who is compatible has them:
//! <https://platform.openai.com/docs/api-reference/chat>.

mod list;
mod parts;
mod reader;
mod request;

use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::Value;

use super::super::error::{CallError, Class};
use super::super::request::Request;
use super::super::transport::Ask;
use super::{Named, Page, Reader, To, Translate, phrases, secret};

/// The kind of the blocks that a message keeps.
const KIND: &str = "openai";

/// The language.
pub struct Openai;

impl Translate for Openai {
    fn ask(&self, to: &To<'_>, request: &Request) -> Result<Ask, CallError> {
        let body = request::body(to.provider, to.model, request)
            .map_err(|e| CallError::new(Class::BadRequest, format!("the conversation cannot be sent: {e}")))?;
        Ok(Ask { path: "/chat/completions".into(), headers: headers(to)?, body: Some(body) })
    }

    fn reader(&self, to: &To<'_>) -> Box<dyn Reader> {
        Box::new(reader::Completion::new(Named::of(to)))
    }

    fn refusal(&self, status: u16, body: &[u8]) -> (Option<Class>, Option<String>) {
        match serde_json::from_slice::<Refusal>(body) {
            Ok(refusal) => {
                let fault = refusal.fault();
                (Some(fault.class(Some(status))), Some(fault.message))
            }
            Err(_) => {
                let said = String::from_utf8_lossy(body).into_owned();
                (phrases::of_words(status, &said), Some(said).filter(|said| !said.is_empty()))
            }
        }
    }

    fn ask_list(&self, to: &To<'_>, _: Option<&str>) -> Result<Ask, CallError> {
        Ok(Ask { path: "/models".into(), headers: headers(to)?, body: None })
    }

    fn listed(&self, body: &[u8]) -> Result<Page, String> {
        list::read(body)
    }
}

fn headers(to: &To<'_>) -> Result<Vec<(HeaderName, HeaderValue)>, CallError> {
    let bearer = |key: &crate::config::Secret| secret(&format!("Bearer {}", key.expose()));
    to.key.map(|key| Ok((AUTHORIZATION, bearer(key)?))).into_iter().collect()
}

/// The body of a refusal: an object in most servers, a text in some (Ollama), the message beside it in others (vLLM).
#[derive(Debug, Deserialize)]
struct Refusal {
    #[serde(default)]
    error: Option<Value>,
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    code: Option<Value>,
    #[serde(default, rename = "type")]
    kind: Option<String>,
}

/// What a server says went wrong.
#[derive(Debug, Default)]
struct Fault {
    message: String,
    /// `code` and `type`, whichever there are.
    codes: Vec<String>,
}

impl Refusal {
    fn fault(self) -> Fault {
        let code = |code: Value| match code {
            Value::String(code) => Some(code),
            Value::Number(code) => Some(code.to_string()),
            _ => None,
        };
        match self.error {
            Some(error) => Fault::of(error),
            None => Fault {
                message: self.message.unwrap_or_default(),
                codes: self.code.and_then(code).into_iter().chain(self.kind).collect(),
            },
        }
    }
}

impl Fault {
    /// From the `error` of a body or of a chunk.
    fn of(error: Value) -> Self {
        match error {
            Value::String(message) => Self { message, codes: Vec::new() },
            Value::Object(map) => {
                let codes = ["code", "type"].into_iter().filter_map(|key| map.get(key));
                let text = |code: &Value| code.as_str().map_or_else(|| code.to_string(), str::to_owned);
                Self {
                    message: map.get("message").and_then(Value::as_str).unwrap_or_default().to_owned(),
                    codes: codes.filter(|code| !code.is_null()).map(text).collect(),
                }
            }
            other => Self { message: other.to_string(), codes: Vec::new() },
        }
    }

    /// <https://platform.openai.com/docs/guides/error-codes>. In mid-stream there is no status.
    fn class(&self, status: Option<u16>) -> Class {
        let of_code = self.codes.iter().find_map(|code| match &**code {
            "invalid_api_key" | "authentication_error" => Some(Class::Auth),
            "insufficient_quota" | "billing_hard_limit_reached" | "billing_not_active" => Some(Class::SpendCap),
            "context_length_exceeded" | "exceed_context_size_error" | "string_above_max_length" => {
                Some(Class::ContextTooLong)
            }
            "model_not_found" => Some(Class::NotFound),
            "rate_limit_exceeded" | "rate_limit_error" => Some(Class::RateLimited),
            "overloaded_error" | "server_overloaded" | "slow_down" => Some(Class::Overloaded),
            _ => None,
        });
        let said = status.or_else(|| self.codes.iter().find_map(|code| code.parse().ok()));
        of_code.or_else(|| phrases::of_words(said.unwrap_or(400), &self.message)).unwrap_or_else(|| {
            said.filter(|status| (400..600).contains(status)).map_or(Class::Server, phrases::of_status)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_have_their_class() {
        for (status, body, due) in [
            (
                401,
                r#"{"error":{"message":"Incorrect API key","type":"invalid_request_error","code":"invalid_api_key"}}"#,
                Class::Auth,
            ),
            (
                429,
                r#"{"error":{"message":"You exceeded","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}"#,
                Class::SpendCap,
            ),
            (
                429,
                r#"{"error":{"message":"Rate limit reached","type":"requests","code":"rate_limit_exceeded"}}"#,
                Class::RateLimited,
            ),
            (
                400,
                r#"{"error":{"message":"This model's maximum context length is 8192 tokens","code":"context_length_exceeded"}}"#,
                Class::ContextTooLong,
            ),
            (
                400,
                r#"{"object":"error","message":"This model's maximum context length is 4096","type":"BadRequestError","code":400}"#,
                Class::ContextTooLong,
            ),
            (404, r#"{"error":"model \"x\" not found, try pulling it first"}"#, Class::NotFound),
            (404, r#"{"error":{"message":"The model does not exist","code":"model_not_found"}}"#, Class::NotFound),
            (
                500,
                r#"{"error":{"code":500,"message":"the request exceeds the available context size","type":"server_error"}}"#,
                Class::ContextTooLong,
            ),
            (502, r#"{"error":{"code":502,"message":"upstream"}}"#, Class::Server),
            (503, r#"{"error":{"message":"Loading model","type":"unavailable_error","code":503}}"#, Class::Overloaded),
            (402, r#"{"error":{"code":402,"message":"Insufficient credits"}}"#, Class::SpendCap),
            (400, r#"{"error":{"message":"bad tool"}}"#, Class::BadRequest),
        ] {
            assert_eq!(Openai.refusal(status, body.as_bytes()).0, Some(due), "{body}");
        }
        assert_eq!(Openai.refusal(502, b"<html>").0, None);
        assert_eq!(Fault::of(serde_json::json!({"code": 429, "message": "busy"})).class(None), Class::RateLimited);
    }
}
