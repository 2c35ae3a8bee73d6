//! The index of what was said: finds messages by their words, best first.
//!
//! A *source* holds messages: a saved session, or the live context of a conversation. Sources of an agent share messages, because
//! a conversation is saved again and again, restored and branched; each message is indexed once for each agent. So a message
//! belongs to a *group*, a run of messages that were first seen together, and a source *holds* a group up to some
//! number (`holdings`). Documents of messages never change. When the last source that holds a message lets go of it, its document is
//! deleted.
//!
//! The crate knows of messages, sources and queries, and of the files of the index. Deliberately absent: what changed in a home and
//! when it is indexed, which is the engine's (`engine/src/search/`), and a runtime.

#![warn(unreachable_pub)]

mod analysis;
mod columns;
mod error;
mod fields;
mod files;
mod group_lengths;
mod holdings;
mod index;
mod messages_to_embed;
mod options;
mod parse;
mod plan;
mod purge;
mod query;
mod query_vector;
mod ranking;
mod shown_message;
mod snippet;
mod source;
mod stop_words;
mod time_expressions;
mod writer;

pub use error::SearchError;
pub use files::Opened;
pub use index::{IndexedSource, SearchIndex};
pub use messages_to_embed::{MessageToEmbed, SeenSegments, Unembedded};
pub use options::IndexOptions;
pub use query::{Filter, Hit, Meaning, Mode, SearchHits, SearchQuery, Snippet};
pub use query_vector::QueryVector;
pub use source::{MessageText, Source, SourceId, SourceKind};
pub use stop_words::is_common_word;
pub use writer::IndexWriter;
