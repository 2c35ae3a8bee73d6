//! Summaries of conversations, and extraction of items from messages that leave a window.
//!
//! Without a model, [`extract_summary`] picks sentences (no network, the same result every time) and
//! [`collect_findings`] applies rules. With a model, [`summary_prompt`] and [`build_chunk`] write the prompts, and
//! [`parse_summary`] and [`parse_extraction`] parse the answers. [`merge_working_sets`] and [`build_merge_report`]
//! combine two branches. [`build_background`] writes what a continuation is given of the session before it.

mod continuation_text;
mod extractive;
mod findings;
mod item_marker;
mod items;
mod lexicon;
mod merge;
mod model_summary;
mod outcome;
mod prompt;
mod prompt_quote;
mod sample;
mod sentence;
mod sentence_bounds;
mod strip_markup;
mod structured;
mod text_limit;
mod user_goal;
mod words;

pub use continuation_text::{
    acknowledgement_prompt, build_acknowledgement, build_background, build_briefing, sanitize_acknowledgement,
};
pub use extractive::{ExtractiveSummary, extract_summary};
pub use findings::{FindingLimits, Findings, collect_findings};
pub use merge::{Branch, build_merge_report, merge_working_sets, sanitize_merge_report};
pub use model_summary::{ModelSummary, RejectReason, parse_summary};
pub use prompt::{branches_prompt, summary_prompt};
pub use sample::ConversationSample;
pub use structured::{
    ExtractedItems, ExtractionNotes, TranscriptChunk, answer_schema, build_chunk, parse_extraction, start_of_newest,
};
