//! Calling models. Sending bytes ([`transport`]), cutting the event stream ([`sse`]) and deciding on another try
//! ([`retry`]) are three small files; [`providers`] only translate; [`models`] is the face of the part.

pub mod available;
mod call;
mod discovery;
pub mod error;
mod key;
mod learned;
pub mod models;
pub mod output;
mod patience;
pub mod providers;
pub mod reply;
pub mod request;
mod resolve;
pub mod retry;
pub mod sse;
pub mod target;
pub mod text_files;
mod transport;
mod windows;

pub use available::{Available, Found, ModelInfo, ProviderModels};
pub use discovery::Local;
pub use error::{CallError, Class, Progress};
pub use key::KeyFound;
pub use models::Models;
pub use output::Output;
pub use providers::images::describe_images;
pub use reply::{Reply, Stop, cost};
pub use request::{Request, Shape, ToolSpec};
pub use target::Target;

pub use crate::config::Price;
