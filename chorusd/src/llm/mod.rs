//! Calling models. Sending bytes ([`transport`]), cutting the event stream ([`sse`]) and deciding on another try
//! ([`retry`]) are three small files; [`providers`] only translate; [`models`] is the face of the part.

pub mod available;
mod call;
mod discovery;
pub mod error;
mod key;
pub mod models;
pub mod output;
pub mod providers;
pub mod reply;
pub mod request;
mod resolve;
pub mod retry;
pub mod sse;
pub mod target;
mod transport;
mod windows;

pub use available::{Available, Found, ModelInfo, ProviderModels};
pub use discovery::Local;
pub use error::{CallError, Class};
pub use key::KeyFound;
pub use models::Models;
pub use output::Output;
pub use reply::{Reply, Stop};
pub use request::{Request, Shape, ToolSpec};
pub use target::Target;

pub use crate::config::Price;
