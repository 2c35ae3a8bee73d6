//! Extraction of items from messages before they leave a window, by a model: a JSON schema for the answer
//! ([`answer_schema`]), prompts with chunks of the transcript ([`build_chunk`]), and a parser that does not trust the
//! answer ([`parse_extraction`]). Each item refers to its message by a number that is only valid in its chunk. Items
//! without a valid number are dropped.

mod chunk_prompt;
mod extraction;
mod json_schema;
mod parse;
#[cfg(test)]
mod tests;

pub use chunk_prompt::{TranscriptChunk, build_chunk, start_of_newest};
pub use extraction::{ExtractedItems, ExtractionNotes};
pub use json_schema::answer_schema;
pub use parse::parse_extraction;
