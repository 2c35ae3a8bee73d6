//! The protocols of the providers. They only translate: a request into bytes, stream events into a reply, an error
//! response into its class.

mod anthropic;
mod error_phrases;
pub(super) mod images;
mod openai;
mod provider_error;
mod thinking_tags;
mod tool_call_ids;
mod tool_calls;

use chorus_base::Secret;
use chorus_config::{CallLimits, KeySource, Provider, ProviderKind};
use chorus_proto::Usage;
use reqwest::header::{HeaderMap, HeaderValue, LOCATION};

use super::error::{CallError, ErrorClass};
use super::model_catalog::ModelInfo;
use super::reply::Reply;
use super::request::ModelRequest;
use super::sse::Event;
use super::stream_event::StreamEvent;
use super::transport::HttpRequest;
pub(crate) use error_phrases::refuses_structured_output;
use provider_error::ProviderError;

/// Target of a request.
#[derive(Debug)]
pub struct RequestTarget<'a> {
    pub provider: &'a Provider,
    pub key: Option<&'a Secret>,
    pub model: &'a str,
    /// True if the request has images.
    pub images: bool,
}

/// The target as error messages need it.
#[derive(Debug, Clone)]
pub(crate) struct ErrorContext {
    pub provider: String,
    model: String,
    kind: ProviderKind,
    key: Option<Secret>,
    images: bool,
}

impl ErrorContext {
    pub(crate) fn new(to: &RequestTarget<'_>) -> Self {
        let RequestTarget { provider, key, model, images } = to;
        Self {
            provider: provider.name.clone(),
            model: (*model).to_owned(),
            kind: provider.kind,
            key: key.cloned(),
            images: *images,
        }
    }

    /// Builds the error of a class, with a message and a hint. The key is removed from the provider's own words.
    pub(crate) fn error(&self, class: ErrorClass, status: Option<u16>, said: Option<&str>) -> CallError {
        let Self { provider, model, kind, key, images } = self;
        // Some servers use the same phrases for other content that they cannot parse.
        let class = if class == ErrorClass::NoImages && !images { ErrorClass::BadRequest } else { class };
        let clean = |said: &str| key.as_ref().map_or_else(|| said.to_owned(), |key| key.scrub(said));
        let said = said.map(|said| format!(": {}", error_phrases::one_line(&clean(said)))).unwrap_or_default();
        let status = status.map(|status| format!(" (HTTP {status})")).unwrap_or_default();
        let what = match class {
            ErrorClass::Auth if key.is_none() => format!("{provider} requires an API key, but none is configured"),
            ErrorClass::Auth => format!("{provider} rejected the API key"),
            ErrorClass::Denied => format!("{provider} does not permit this"),
            ErrorClass::RateLimited => format!("{provider}: rate limit reached"),
            ErrorClass::Loading => format!("{provider} is loading the model"),
            ErrorClass::Overloaded => format!("{provider} is overloaded"),
            ErrorClass::Server => format!("{provider} failed"),
            ErrorClass::SpendCap => format!("the account at {provider} reached its limit"),
            ErrorClass::ContextTooLong => format!("the conversation is too long for {provider}/{model}"),
            ErrorClass::AnswerTooLong => format!("{provider}/{model} has a lower output limit than requested"),
            ErrorClass::NoImages => format!("{provider}/{model} does not accept images"),
            ErrorClass::NotFound if model.is_empty() => format!("{provider} does not have this address"),
            ErrorClass::NotFound => format!("{provider} does not know the requested model ({model:?})"),
            _ => format!("{provider} rejected the request"),
        };
        let error = CallError::new(class, format!("{what}{status}{said}"));
        let hint = match (class, key) {
            (ErrorClass::Auth | ErrorClass::Denied, None) => {
                Some(error_phrases::missing_key_hint(provider, kind.default_key_variable()))
            }
            // A request without a model is one for the list of models.
            (ErrorClass::NotFound, _) if model.is_empty() => {
                Some(format!("check `base_url` and `kind` of [providers.{provider}] in config.toml"))
            }
            _ => error_phrases::hint(class, provider),
        };
        match hint {
            Some(hint) => error.hint(hint),
            None => error,
        }
    }

    /// The error for an event that cannot be parsed.
    pub(crate) fn malformed_error(&self, why: &serde_json::Error) -> CallError {
        CallError::new(ErrorClass::Malformed, format!("{} sent an invalid event: {why}", self.provider))
            .hint("try again; if it happens again, check `kind` and `base_url` in config.toml")
    }
}

/// Result of parsing an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParseStep {
    /// The event is a part of the reply.
    More,
    /// A keep-alive without content.
    Ping,
    /// The event is the last one.
    End,
}

/// Protocol of a kind of provider.
pub trait ProviderProtocol: Send + Sync {
    /// Builds the request of a call.
    ///
    /// # Errors
    /// Fails if the protocol cannot express the request, or if the key cannot be sent.
    fn build_request(&self, to: &RequestTarget<'_>, request: &ModelRequest) -> Result<HttpRequest, CallError>;

    /// Creates the parser of a reply.
    fn reply_parser(&self, to: &RequestTarget<'_>) -> Box<dyn ReplyParser>;

    /// Builds the request for the list of models, or for its page after `after`.
    fn build_list_request(&self, to: &RequestTarget<'_>, after: Option<&str>) -> Result<HttpRequest, CallError>;

    /// Parses a page of the list.
    fn parse_list(&self, body: &[u8]) -> Result<ModelPage, String>;

    /// Builds the request for the vectors of texts from its body; `None` if there is no endpoint for it.
    ///
    /// # Errors
    /// Fails if the key cannot be sent.
    fn build_embedding_request(
        &self,
        _to: &RequestTarget<'_>,
        _body: Vec<u8>,
    ) -> Result<Option<HttpRequest>, CallError> {
        Ok(None)
    }

    /// Returns whether providers of this kind count tokens on request.
    fn can_count(&self) -> bool {
        false
    }

    /// Builds the request that counts the tokens of `request`; `None` if there is no endpoint for it.
    ///
    /// # Errors
    /// As [`ProviderProtocol::build_request`].
    fn build_count_request(
        &self,
        _to: &RequestTarget<'_>,
        _request: &ModelRequest,
    ) -> Result<Option<HttpRequest>, CallError> {
        Ok(None)
    }

    /// Parses the response to that.
    fn parse_count(&self, _body: &[u8]) -> Option<u64> {
        None
    }
}

/// Parser of one reply.
pub trait ReplyParser: Send {
    /// Parses an event; pushes stream events that can be shown immediately to `out`.
    ///
    /// # Errors
    /// An error that the provider reports, or an event that cannot be parsed.
    fn push_event(&mut self, event: &Event, out: &mut Vec<StreamEvent>) -> Result<ParseStep, CallError>;

    /// Parses a complete reply, sent although a stream was requested.
    fn push_body(&mut self, body: &[u8], out: &mut Vec<StreamEvent>) -> Result<(), CallError>;

    /// Returns whether the reply is complete if the stream ends here without an end event.
    fn is_complete(&self) -> bool;

    /// The text so far.
    fn text(&self) -> &str;

    /// Approximate number of bytes that the parser holds.
    fn held_bytes(&self) -> usize;

    /// The tokens that were counted so far.
    fn usage(&self) -> Usage;

    /// Returns the complete reply.
    fn finish(&mut self) -> Result<Reply, CallError>;
}

/// A page of a list of models.
#[derive(Debug, Default, PartialEq)]
pub struct ModelPage {
    pub models: Vec<ModelInfo>,
    /// Start of the next page.
    pub next: Option<String>,
}

/// Returns the protocol of a kind of provider.
pub fn protocol(kind: ProviderKind) -> &'static dyn ProviderProtocol {
    match kind {
        ProviderKind::Anthropic => &anthropic::Anthropic,
        ProviderKind::Openai => &openai::Openai,
    }
}

/// Parses the events of a reply with one of the protocols, for tests without a server.
pub fn read_events(kind: ProviderKind, events: &[Event]) -> Result<Reply, CallError> {
    let base_url = String::new();
    let limits = CallLimits::default();
    let provider =
        Provider { name: "test".into(), kind, base_url, key: KeySource::None, limits, max_output_tokens: None };
    let mut reader =
        protocol(kind).reply_parser(&RequestTarget { provider: &provider, key: None, model: "test", images: false });
    let mut out = Vec::new();
    for event in events {
        if reader.push_event(event, &mut out)? == ParseStep::End {
            break;
        }
    }
    reader.finish()
}

/// Converts a response with a status other than 2xx to an error.
pub(crate) fn refusal_error(to: &RequestTarget<'_>, status: u16, headers: &HeaderMap, body: &[u8]) -> CallError {
    let name = &to.provider.name;
    if (300..400).contains(&status) {
        let place = headers.get(LOCATION).and_then(|place| place.to_str().ok()).unwrap_or("another place");
        return CallError::new(
            ErrorClass::BadRequest,
            format!("{name} redirects to {}", error_phrases::one_line(place)),
        )
        .hint("redirects are not followed: set the final address in `base_url`");
    }
    let fault = ProviderError::parse(body)
        .unwrap_or_else(|| ProviderError::from_value(String::from_utf8_lossy(body).into_owned().into()));
    let no_second_try = headers.get("x-should-retry").is_some_and(|value| value == "false");
    let class = match fault.class(Some(status)) {
        ErrorClass::Server | ErrorClass::Overloaded if no_second_try => ErrorClass::BadRequest,
        class => class,
    };
    ErrorContext::new(to).error(class, Some(status), Some(&*fault.message).filter(|said| !said.is_empty()))
}

/// Approximate overhead in bytes of a small item, in addition to its contents.
const ITEM_OVERHEAD_BYTES: usize = 64;

/// Makes a header value with a secret, which header dumps do not show.
fn sensitive_header(text: &str) -> Result<HeaderValue, CallError> {
    let mut value = HeaderValue::from_str(text)
        .map_err(|_| CallError::new(ErrorClass::Auth, "the API key contains a character that cannot be sent"))?;
    value.set_sensitive(true);
    Ok(value)
}
