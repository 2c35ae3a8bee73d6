//! Errors of model calls: a class for the code, a message and a hint for the user.

use std::time::Duration;

use chorus_proto::Usage;

/// A call without a reply, or with only a part of one.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct CallError {
    pub class: ErrorClass,
    /// What happened, in one line.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// The wait that the provider asks for.
    pub retry_after: Option<Duration>,
    /// The text that had arrived.
    pub partial: String,
    /// The tokens that the provider had counted, with their cost if a price is known, since they are billed all the
    /// same.
    pub usage: Option<Box<Usage>>,
    /// How far the call had come.
    pub progress: CallProgress,
}

/// How far a call had come before it failed, on which its usage depends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum CallProgress {
    /// No server has received the request.
    #[default]
    Unsent,
    /// A server answered with an error instead of processing the request.
    Rejected,
    /// A server has accepted the request and sent `received` bytes of a reply.
    Accepted { received: u64 },
}

/// Class of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorClass {
    /// The key is missing or not accepted.
    Auth,
    /// The key is valid but lacks the permission.
    Denied,
    RateLimited,
    Overloaded,
    /// The provider failed.
    Server,
    /// No connection, or a broken one.
    Network,
    /// The connection was refused: the server may be starting.
    ConnectionRefused,
    /// The server is loading its model.
    Loading,
    /// A configured time limit was reached.
    Timeout,
    ContextTooLong,
    /// The requested limit of the reply is higher than the model allows.
    AnswerTooLong,
    /// The model accepts no images, and was sent one.
    NoImages,
    BadRequest,
    /// The account has no credit left, or has reached its own limit.
    SpendCap,
    /// A response that cannot be parsed.
    Malformed,
    /// The caller cancelled the call.
    Cancelled,
    /// The model does not exist.
    NotFound,
}

impl ErrorClass {
    /// Name for events and logs.
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

    /// Marks the request as accepted by a server.
    #[must_use]
    pub(crate) fn mark_accepted(mut self) -> Self {
        self.progress = CallProgress::Accepted { received: 0 };
        self
    }

    /// Sets the hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The error of a cancelled call.
    #[must_use]
    pub fn cancelled() -> Self {
        Self::new(ErrorClass::Cancelled, "the call was cancelled")
    }
}
