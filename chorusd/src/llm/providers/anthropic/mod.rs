//! Anthropic's Messages API: <https://docs.anthropic.com/en/api/messages>.

mod list;
mod reader;
mod request;

use reqwest::header::{HeaderName, HeaderValue};

use super::super::error::{CallError, Class};
use super::super::request::Request;
use super::super::transport::Ask;
use super::{Named, Page, Reader, To, Translate, secret};

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
