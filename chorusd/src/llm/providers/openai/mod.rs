//! Chat completions, as OpenAI and everybody who is compatible has them:
//! <https://platform.openai.com/docs/api-reference/chat>.

mod list;
mod parts;
mod reader;
mod request;

use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};

use super::super::error::{CallError, Class};
use super::super::request::Request;
use super::super::transport::Ask;
use super::{Named, Page, Reader, To, Translate, secret};

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
