//! Each provider's language. What is here only translates: a request into bytes, events into the parts of a reply,
//! a refusal into its class.

mod anthropic;
mod calls;
pub(super) mod images;
mod labels;
mod openai;
mod phrases;
mod refusal;
mod think;

pub use phrases::refuses_form;

use chorus_proto::Usage;
use reqwest::header::{HeaderMap, HeaderValue, LOCATION};

use super::available::ModelInfo;
use super::error::{CallError, Class};
use super::output::Output;
use super::reply::Reply;
use super::request::Request;
use super::sse::Event;
use super::transport::Ask;
use refusal::Fault;

use crate::config::{Key, Kind, Limits, Provider, Secret};

/// Who is spoken to.
#[derive(Debug)]
pub struct To<'a> {
    pub provider: &'a Provider,
    pub key: Option<&'a Secret>,
    pub model: &'a str,
    /// What is asked has images.
    pub images: bool,
}

/// Who speaks, for errors.
#[derive(Debug, Clone)]
pub struct Named {
    pub provider: String,
    model: String,
    kind: Kind,
    key: Option<Secret>,
    images: bool,
}

impl Named {
    pub fn of(to: &To<'_>) -> Self {
        let To { provider, key, model, images } = to;
        Self {
            provider: provider.name.clone(),
            model: (*model).to_owned(),
            kind: provider.kind,
            key: key.cloned(),
            images: *images,
        }
    }

    /// What went wrong, as a sentence, with what to do about it. A key that the provider says back is not passed on.
    pub fn failure(&self, class: Class, status: Option<u16>, said: Option<&str>) -> CallError {
        let Self { provider, model, kind, key, images } = self;
        // Some servers say in the same words that something else of a message cannot be read.
        let class = if class == Class::NoImages && !images { Class::BadRequest } else { class };
        let clean = |said: &str| key.as_ref().map_or_else(|| said.to_owned(), |key| key.scrub(said));
        let said = said.map(|said| format!(": {}", phrases::one_line(&clean(said)))).unwrap_or_default();
        let status = status.map(|status| format!(" (HTTP {status})")).unwrap_or_default();
        let what = match class {
            Class::Auth if key.is_none() => format!("{provider} wants a key, and none is configured for it"),
            Class::Auth => format!("{provider} does not take the key"),
            Class::Denied => format!("{provider} does not permit this"),
            Class::RateLimited => format!("{provider} limits the rate of requests"),
            Class::Loading => format!("{provider} is loading the model"),
            Class::Overloaded => format!("{provider} is overloaded"),
            Class::Server => format!("{provider} failed"),
            Class::SpendCap => format!("the account at {provider} has reached its limit"),
            Class::ContextTooLong => format!("the conversation is too long for {provider}/{model}"),
            Class::AnswerTooLong => format!("{provider}/{model} answers at less length than it was asked for"),
            Class::NoImages => format!("{provider}/{model} takes no images"),
            Class::NotFound if model.is_empty() => format!("{provider} has nothing at this address"),
            Class::NotFound => format!("{provider} does not know what was asked for ({model:?})"),
            _ => format!("{provider} refused the request"),
        };
        let error = CallError::new(class, format!("{what}{status}{said}"));
        let hint = match (class, key) {
            (Class::Auth | Class::Denied, None) => Some(phrases::name_a_key(provider, kind.usual_variable())),
            // What is asked for without a model is the list of them.
            (Class::NotFound, _) if model.is_empty() => {
                Some(format!("check `base_url` and `kind` of [providers.{provider}] in config.toml"))
            }
            _ => phrases::hint(class, provider),
        };
        match hint {
            Some(hint) => error.hint(hint),
            None => error,
        }
    }

    /// An event that cannot be read.
    pub fn malformed(&self, why: &serde_json::Error) -> CallError {
        CallError::new(Class::Malformed, format!("{} sent an event that cannot be read: {why}", self.provider))
            .hint("try again; check `kind` and `base_url` in config.toml if it stays")
    }
}

/// What an event was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A part of the answer.
    More,
    /// A sign of life that says nothing.
    Ping,
    /// The last one.
    End,
}

/// One provider's language.
pub trait Translate: Send + Sync {
    /// The request of a call.
    ///
    /// # Errors
    /// What cannot be said in this language.
    fn ask(&self, to: &To<'_>, request: &Request) -> Result<Ask, CallError>;

    /// What reads the answer.
    fn reader(&self, to: &To<'_>) -> Box<dyn Reader>;

    /// The request for the list of models, or for the page of it after `after`.
    ///
    /// # Errors
    /// A key that cannot be sent.
    fn ask_list(&self, to: &To<'_>, after: Option<&str>) -> Result<Ask, CallError>;

    /// A page of the list.
    ///
    /// # Errors
    /// Why it is none.
    fn listed(&self, body: &[u8]) -> Result<Page, String>;
}

/// Reads one answer.
pub trait Reader: Send {
    /// Takes an event; what can be shown at once goes into `out`.
    ///
    /// # Errors
    /// What the provider says went wrong, or an event that cannot be read.
    fn event(&mut self, event: &Event, out: &mut Vec<Output>) -> Result<Step, CallError>;

    /// Takes an answer that came in one piece though a stream was asked for.
    ///
    /// # Errors
    /// As [`Reader::event`].
    fn whole(&mut self, body: &[u8], out: &mut Vec<Output>) -> Result<(), CallError>;

    /// Whether a stream that ends here, without a word, is complete.
    fn may_end(&self) -> bool;

    /// The text so far.
    fn text(&self) -> &str;

    /// Bytes of what it keeps, about.
    fn held(&self) -> usize;

    /// The tokens that were counted so far.
    fn usage(&self) -> Usage;

    /// The whole answer.
    ///
    /// # Errors
    /// Where it is none.
    fn reply(&mut self) -> Result<Reply, CallError>;
}

/// A page of a list of models.
#[derive(Debug, Default, PartialEq)]
pub struct Page {
    pub models: Vec<ModelInfo>,
    /// Where the next page begins.
    pub next: Option<String>,
}

/// The language of a kind of provider.
pub fn of(kind: Kind) -> &'static dyn Translate {
    match kind {
        Kind::Anthropic => &anthropic::Anthropic,
        Kind::Openai => &openai::Openai,
    }
}

/// What the events of an answer are in one of the languages: for tests that bend events, without a server.
///
/// # Errors
/// As [`Reader::event`] and [`Reader::reply`].
pub fn read_events(kind: Kind, events: &[Event]) -> Result<Reply, CallError> {
    let base_url = String::new();
    let limits = Limits::default();
    let provider = Provider { name: "test".into(), kind, base_url, key: Key::None, limits, max_output_tokens: None };
    let mut reader = of(kind).reader(&To { provider: &provider, key: None, model: "test", images: false });
    let mut out = Vec::new();
    for event in events {
        if reader.event(event, &mut out)? == Step::End {
            break;
        }
    }
    reader.reply()
}

/// What an answer other than 200 means.
pub fn refused(to: &To<'_>, status: u16, headers: &HeaderMap, body: &[u8]) -> CallError {
    let name = &to.provider.name;
    if (300..400).contains(&status) {
        let place = headers.get(LOCATION).and_then(|place| place.to_str().ok()).unwrap_or("another place");
        return CallError::new(Class::BadRequest, format!("{name} redirects to {}", phrases::one_line(place)))
            .hint("redirects are not followed: put the right address into `base_url`");
    }
    let fault = Fault::read(body).unwrap_or_else(|| Fault::of(String::from_utf8_lossy(body).into_owned().into()));
    let no_second_try = headers.get("x-should-retry").is_some_and(|value| value == "false");
    let class = match fault.class(Some(status)) {
        Class::Server | Class::Overloaded if no_second_try => Class::BadRequest,
        class => class,
    };
    Named::of(to).failure(class, Some(status), Some(&*fault.message).filter(|said| !said.is_empty()))
}

/// What something small costs beside its bytes.
const SMALL: usize = 64;

/// A header with a secret in it: never shown by anything that prints headers.
fn secret(text: &str) -> Result<HeaderValue, CallError> {
    let mut value = HeaderValue::from_str(text)
        .map_err(|_| CallError::new(Class::Auth, "the key has a character that cannot be sent"))?;
    value.set_sensitive(true);
    Ok(value)
}
