//! Messages and saved sessions: their file format, message index, names and selectors, their import, export and lineage
//! tree, and summaries of them by rules.
//!
//! The bytes of a message never change: a [`stored_message::StoredMessage`] carries the line that was written first. Nothing
//! here uses an async runtime or the network; functions that read and write files block.
//!
//! `examples/convert_transcript.rs` converts a transcript of another program:
//!
//! ```
//! use std::io::{self, Cursor};
//!
//! use chorus_proto::Message;
//! use chorus_proto::methods::import::ImportFormat;
//! use chorus_session::import::{ImportSink, ImportedMetadata, import};
//!
//! #[derive(Default)]
//! struct Texts(Vec<String>);
//!
//! impl ImportSink for Texts {
//!     fn begin_session(&mut self) -> io::Result<()> {
//!         Ok(())
//!     }
//!     fn add_message(&mut self, message: &Message, _json: &[u8]) -> io::Result<()> {
//!         self.0.push(message.content.clone());
//!         Ok(())
//!     }
//!     fn end_session(&mut self, _about: ImportedMetadata) -> io::Result<()> {
//!         Ok(())
//!     }
//!     fn report_skipped(&mut self, _line: u64, _reason: String) {}
//! }
//!
//! let source = r#"[{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]"#;
//! let mut texts = Texts::default();
//! let now = "2026-01-02T03:04:05Z".parse().unwrap();
//! let format = import(&mut Cursor::new(source), ImportFormat::Auto, now, &mut || "id".into(), &mut texts).unwrap();
//! assert_eq!((format, texts.0), (ImportFormat::Openai, vec!["Hello".to_owned(), "Hi".to_owned()]));
//! ```

#![warn(unreachable_pub)]

pub mod attachment_text;
pub mod block_reader;
pub mod content_eq;
pub mod conversation;
pub mod export;
pub mod file;
pub mod growth;
pub mod gzip;
mod hash;
mod header_lines;
pub mod import;
pub mod index;
pub mod markdown;
mod message_defaults;
pub mod message_lines;
mod message_skim;
pub mod notes;
mod read_buffer;
pub mod selector;
pub mod session_input;
pub mod session_tree;
pub mod slug;
pub mod stored_message;
pub mod summary;
pub mod token_estimate;

pub use file::{FormatError, SessionFile};
pub use hash::MessageHash;
pub use header_lines::read_header_lines;
pub use index::SessionIndex;
pub use selector::Selector;
pub use session_input::SessionInput;
