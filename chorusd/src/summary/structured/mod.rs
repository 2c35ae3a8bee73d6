//! What a model writes down of messages before they leave a window: asked for in a form ([`form`]), piece by piece of the transcript
//! ([`piece`]), and read with suspicion ([`read`]). Each item names the message that it came from, by a number that only the piece
//! knows; what names none is thrown away.

mod chunk;
mod extraction;
mod json_schema;
mod parse;
#[cfg(test)]
mod tests;

pub use chunk::{TranscriptChunk, build_chunk, start_of_newest};
pub use extraction::{ExtractedItems, ExtractionNotes};
pub use json_schema::answer_schema;
pub use parse::parse_extraction;
