//! Anthropic's Messages API: <https://docs.anthropic.com/en/api/messages>.

mod model_list;
mod reply_parser;
mod request;

use reqwest::header::{HeaderName, HeaderValue};

use super::super::error::{CallError, ErrorClass};
use super::super::request::ModelRequest;
use super::super::transport::HttpRequest;
use super::{ErrorContext, ModelPage, ProviderProtocol, ReplyParser, RequestTarget, sensitive_header};

/// `kind` of the provider blocks that a message stores.
const BLOCK_KIND: &str = "anthropic";

/// Version of the API.
const API_VERSION: &str = "2023-06-01";

/// The protocol.
pub(super) struct Anthropic;

impl ProviderProtocol for Anthropic {
    fn build_request(&self, to: &RequestTarget<'_>, request: &ModelRequest) -> Result<HttpRequest, CallError> {
        let body = request::build_body(&to.provider.name, to.model, request)
            .map_err(|e| CallError::new(ErrorClass::BadRequest, format!("cannot send the conversation: {e}")))?;
        Ok(HttpRequest { path: "/v1/messages".into(), headers: headers(to)?, body: Some(body) })
    }

    fn can_count(&self) -> bool {
        true
    }

    fn build_count_request(
        &self,
        to: &RequestTarget<'_>,
        request: &ModelRequest,
    ) -> Result<Option<HttpRequest>, CallError> {
        let body = request::build_count_body(&to.provider.name, to.model, request)
            .map_err(|e| CallError::new(ErrorClass::BadRequest, format!("cannot send the conversation: {e}")))?;
        Ok(Some(HttpRequest { path: "/v1/messages/count_tokens".into(), headers: headers(to)?, body: Some(body) }))
    }

    fn parse_count(&self, body: &[u8]) -> Option<u64> {
        #[derive(serde::Deserialize)]
        struct Count {
            input_tokens: u64,
        }
        serde_json::from_slice::<Count>(body).ok().map(|count| count.input_tokens).filter(|tokens| *tokens > 0)
    }

    fn reply_parser(&self, to: &RequestTarget<'_>) -> Box<dyn ReplyParser> {
        Box::new(reply_parser::MessagesParser::new(ErrorContext::new(to)))
    }

    fn build_list_request(&self, to: &RequestTarget<'_>, after: Option<&str>) -> Result<HttpRequest, CallError> {
        let after = after.map(|id| format!("&after_id={id}")).unwrap_or_default();
        Ok(HttpRequest { path: format!("/v1/models?limit=1000{after}"), headers: headers(to)?, body: None })
    }

    fn parse_list(&self, body: &[u8]) -> Result<ModelPage, String> {
        model_list::parse_models(body)
    }
}

fn headers(to: &RequestTarget<'_>) -> Result<Vec<(HeaderName, HeaderValue)>, CallError> {
    let mut headers = vec![(HeaderName::from_static("anthropic-version"), HeaderValue::from_static(API_VERSION))];
    if let Some(key) = to.key {
        headers.push((HeaderName::from_static("x-api-key"), sensitive_header(key.expose())?));
    }
    Ok(headers)
}
