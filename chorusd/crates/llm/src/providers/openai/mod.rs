//! The chat completions API of OpenAI and compatible servers: <https://platform.openai.com/docs/api-reference/chat>.

mod chunk;
mod model_list;
mod reply_parser;
mod request;

use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};

use super::super::error::{CallError, ErrorClass};
use super::super::request::ModelRequest;
use super::super::transport::HttpRequest;
use super::{ErrorContext, ModelPage, ProviderProtocol, ReplyParser, RequestTarget, sensitive_header};

/// `kind` of the provider blocks that a message stores.
const BLOCK_KIND: &str = "openai";

/// The protocol.
pub(super) struct Openai;

impl ProviderProtocol for Openai {
    fn build_request(&self, to: &RequestTarget<'_>, request: &ModelRequest) -> Result<HttpRequest, CallError> {
        let body = request::build_body(to.provider, to.model, request)
            .map_err(|e| CallError::new(ErrorClass::BadRequest, format!("cannot send the conversation: {e}")))?;
        Ok(HttpRequest { path: "/chat/completions".into(), headers: headers(to)?, body: Some(body) })
    }

    fn reply_parser(&self, to: &RequestTarget<'_>) -> Box<dyn ReplyParser> {
        Box::new(reply_parser::CompletionParser::new(ErrorContext::new(to)))
    }

    fn build_list_request(&self, to: &RequestTarget<'_>, _: Option<&str>) -> Result<HttpRequest, CallError> {
        Ok(HttpRequest { path: "/models".into(), headers: headers(to)?, body: None })
    }

    fn build_embedding_request(&self, to: &RequestTarget<'_>, body: Vec<u8>) -> Result<Option<HttpRequest>, CallError> {
        Ok(Some(HttpRequest { path: "/embeddings".into(), headers: headers(to)?, body: Some(body) }))
    }

    fn parse_list(&self, body: &[u8]) -> Result<ModelPage, String> {
        model_list::parse_models(body)
    }
}

fn headers(to: &RequestTarget<'_>) -> Result<Vec<(HeaderName, HeaderValue)>, CallError> {
    let bearer = |key: &chorus_base::Secret| sensitive_header(&format!("Bearer {}", key.expose()));
    to.key.map(|key| Ok((AUTHORIZATION, bearer(key)?))).into_iter().collect()
}
