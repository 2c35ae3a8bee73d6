//! Calling models. [`model_client`] is the public interface; [`providers`] translate requests and replies; `transport`
//! sends bytes, [`sse`] parses the event stream, and [`retry`] decides on further attempts.

#![warn(unreachable_pub)]

mod api_key;
mod call_runner;
mod embeddings;
pub mod error;
mod foreign_price;
mod learned_limits;
mod local_context_length;
pub(crate) mod model_catalog;
pub mod model_client;
mod model_discovery;
pub(crate) mod model_ref;
mod model_resolver;
mod model_settings;
pub mod providers;
pub mod reply;
pub mod request;
mod request_tokens;
pub mod retry;
mod single_attempt;
pub mod sse;
mod startup_wait;
pub(crate) mod stream_event;
mod token_count;
pub mod tokenizer;
mod transport;

pub use chorus_config::Price;

pub use api_key::KeyStatus;
pub use embeddings::Embeddings;
pub use error::{CallError, CallProgress, ErrorClass};
pub use model_catalog::{DiscoveryStatus, ModelCatalog, ModelInfo, ProviderModels};
pub use model_client::Models;
pub use model_discovery::LocalServer;
pub use model_ref::ModelRef;
pub use model_resolver::{SETUP_HINT, check_configured};
pub use providers::images::describe_images;
pub use reply::{Reply, StopReason, calculate_cost};
pub use request::{ModelRequest, OutputFormat, ToolSpec};
pub use request_tokens::{tokens_of_request, tokens_of_tool, tokens_of_tools};
pub use stream_event::StreamEvent;
pub use tokenizer::has_tokenizer;
