//! Search by meaning: keeps a vector of every indexed message, and compares a query with them.
//!
//! A model makes the vectors: one in this process from files in `embeddings/models/`, or one of a provider. `embeddings/model.json` names it.
//! A thread of low priority follows the search index (`engine/search/`): it makes the vectors of messages that have none, in batches that
//! are durable one by one, and removes those of messages that are gone. If another model is chosen, its vectors are made beside the old ones,
//! which are used until the new ones are complete. All of it can be made again from the messages.

mod choice;
mod embedder;
mod lazy_model;
mod model_state;
mod provider_client;
mod service;
mod worker;

pub use choice::EmbeddingChoice;
pub use service::SemanticService;
pub use worker::run;
