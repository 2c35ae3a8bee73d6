//! Why a call failed: a class for the code, a sentence and a hint for the person.

use std::time::Duration;

use chorus_proto::Usage;

/// A call that brought no answer, or only a part of one.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct CallError {
    pub class: Class,
    /// What happened, in one line.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// How long the provider asks to wait.
    pub retry_after: Option<Duration>,
    /// The text that had arrived before.
    pub partial: String,
    /// What the provider had counted before, with its cost where a price is known: it is paid for all the same.
    pub usage: Option<Box<Usage>>,
}

/// What kind of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// No key, or one that is not taken.
    Auth,
    /// The key is good, but not for this.
    Denied,
    RateLimited,
    Overloaded,
    /// The provider failed.
    Server,
    /// No connection, or one that broke.
    Network,
    /// One of the configured limits was reached.
    Timeout,
    ContextTooLong,
    BadRequest,
    /// The account has no money left, or has reached its own limit.
    SpendCap,
    /// An answer that cannot be read.
    Malformed,
    /// The caller gave up.
    Cancelled,
    /// There is no such model.
    NotFound,
}

impl Class {
    /// A name for events and logs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::Denied => "denied",
            Self::RateLimited => "rate_limited",
            Self::Overloaded => "overloaded",
            Self::Server => "server",
            Self::Network => "network",
            Self::Timeout => "timeout",
            Self::ContextTooLong => "context_too_long",
            Self::BadRequest => "bad_request",
            Self::SpendCap => "spend_cap",
            Self::Malformed => "malformed",
            Self::Cancelled => "cancelled",
            Self::NotFound => "not_found",
        }
    }
}

impl CallError {
    #[must_use]
    pub fn new(class: Class, message: impl Into<String>) -> Self {
        Self { class, message: message.into(), hint: None, retry_after: None, partial: String::new(), usage: None }
    }

    /// Says what to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The caller gave up.
    #[must_use]
    pub fn cancelled() -> Self {
        Self::new(Class::Cancelled, "the call was cancelled")
    }
}
