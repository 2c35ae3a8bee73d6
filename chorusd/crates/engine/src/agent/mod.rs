//! Active agents. A pure state machine (`agent-core`) decides what happens, an actor ([`actor`]) does the I/O, and the
//! registry ([`registry`]) finds an agent's actor or starts it. An agent without a context has no actor and costs only
//! a row in the catalog.

pub mod actor;
pub mod agent_hold;
pub mod agent_index;
pub mod attached_clients;
mod background_extraction;
pub mod checkpoint_on_save;
pub mod command;
mod context_loader;
mod context_overflow_hint;
mod conversation_hints;
pub mod conversation_index;
pub(crate) mod docs_listing;
pub mod eviction;
mod expiry_notice;
pub mod idle_expiry;
#[cfg(test)]
mod idle_expiry_tests;
mod journal_records;
mod journal_trim;
pub mod memory_prompt;
mod model_call;
pub mod model_limits;
pub mod note_extraction;
pub mod opening_request;
pub mod prompt;
mod prompt_check;
pub mod prompt_size;
pub mod recall;
mod redacted_stream;
pub mod registry;
pub mod request_builder;
pub mod session_save;
pub mod shared_workspace;
pub mod summaries;
mod tool_runner;
mod turn_io;
pub mod turn_priority;
mod turn_slots;
pub mod turn_status;

pub use model_call::no_model_error;
