//! Why a call failed: a class for the code, a sentence and a hint for the person.

use std::time::Duration;

use chorus_proto::Usage;

/// A call that brought no answer, or only a part of one.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct CallError {
    pub class: ErrorClass,
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
    /// How far it had come.
    pub progress: CallProgress,
}

/// How far a call had come before it failed: what it has used hangs from that.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum CallProgress {
    /// No server has heard of it.
    #[default]
    Unsent,
    /// A server answered with an error instead of working on it.
    Rejected,
    /// A server has the request, and had sent so many bytes of an answer.
    Accepted { received: u64 },
}

/// What kind of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorClass {
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
    /// Nothing listens where the server should be: it may be on its way up.
    ConnectionRefused,
    /// The server is there, and loads its model.
    Loading,
    /// One of the configured limits was reached.
    Timeout,
    ContextTooLong,
    /// The model was asked for a longer answer than it may give.
    AnswerTooLong,
    /// The model takes no images, and was sent one.
    NoImages,
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

impl ErrorClass {
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
            Self::ConnectionRefused => "refused",
            Self::Loading => "loading",
            Self::Timeout => "timeout",
            Self::ContextTooLong => "context_too_long",
            Self::AnswerTooLong => "answer_too_long",
            Self::NoImages => "no_images",
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
    pub fn new(class: ErrorClass, message: impl Into<String>) -> Self {
        Self {
            class,
            message: message.into(),
            hint: None,
            retry_after: None,
            partial: String::new(),
            usage: None,
            progress: CallProgress::Unsent,
        }
    }

    /// Notes that a server has the request.
    #[must_use]
    pub fn mark_accepted(mut self) -> Self {
        self.progress = CallProgress::Accepted { received: 0 };
        self
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
        Self::new(ErrorClass::Cancelled, "the call was cancelled")
    }
}
