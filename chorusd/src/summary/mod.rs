//! What a conversation was about: in a few of its own sentences ([`extract`]: no model, no network, the same every time), or in a
//! model's words: what it is asked ([`question`]) and what is kept of its answer ([`answer`]).
//! What becomes of two lines that come together: [`united`], [`account`].
//! What is kept of messages that leave a window: what rules find ([`findings`]), or what a model writes down ([`piece`] asks, [`read`]
//! takes the answer). What a fresh context has of the session before it: [`background`].

mod carry_over;
mod extractive;
mod findings;
mod items;
mod lexicon;
mod merge;
mod outcome;
mod prompt;
mod sample;
mod sanitize;
mod sentence;
mod strip_markup;
mod structured;
mod text_limit;
mod transcript;
mod user_goal;

pub use carry_over::{acknowledgement_prompt, build_acknowledgement, build_background, sanitize_acknowledgement};
pub use extractive::{ExtractiveSummary, extract_summary};
pub use findings::{Findings, MAX_ITEMS_PER_KIND, collect_findings};
pub use merge::{Branch, build_merge_report, merge_working_sets, sanitize_merge_report};
pub use prompt::{branches_prompt, summary_prompt};
pub use sample::ConversationSample;
pub use sanitize::{ModelSummary, RejectReason, parse_summary};
pub use structured::{
    ExtractedItems, ExtractionNotes, TranscriptChunk, answer_schema, build_chunk, parse_extraction, start_of_newest,
};
