//! Builds prompts: system prompt, docs, memory, working set, and the newest messages that fit.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use chorus_agent_core::AgentSettings;
use chorus_agent_core::tool_budget::ToolCutoff;
use chorus_agent_core::window::{Repair, ShortenedMessage, Window, WindowBudget, build_window, working_set_block};
use chorus_llm::{ModelRequest, describe_images};
use chorus_proto::{PieceKind, WorkingSet};
use chorus_session::stored_message::StoredMessage;
use chorus_session::token_estimate::tokens_of_piece;

use super::docs_listing::{DocFile, list_docs};
use super::model_limits::ModelLimits;
use crate::tools::OfferedTools;

/// Maximum bytes of docs/ in a prompt; further files are only named.
pub(super) const MAX_DOCS_BYTES: usize = 32 << 10;

/// Maximum tokens of a reply, if the model accepts that many.
const MAX_REPLY_TOKENS: u64 = 8192;

/// The same after the model refused a request as too long: some providers count the possible reply.
const REDUCED_REPLY_TOKENS: u64 = 1024;

/// A request to a model, with details about its parts.
#[derive(Debug)]
pub struct Prompt {
    pub request: ModelRequest,
    /// The kinds of the pieces in `request.system`.
    pub pieces: Vec<PieceKind>,
    /// Number of messages that are left out.
    pub left_out: usize,
    /// How the messages differ from those in the context.
    pub repairs: Vec<Repair>,
    /// Messages that were too long and were shortened.
    pub shortened: Vec<ShortenedMessage>,
    /// Maximum tokens of messages and working set together.
    pub conversation_budget: u64,
}

impl Prompt {
    /// Limits the reply to `most` tokens.
    pub fn limit_reply(&mut self, most: u64, takes: Option<u64>, tight: bool) {
        self.request.max_tokens = reply_tokens(most, takes, tight);
    }

    /// Adds the instruction to answer without tools, and forbids tool calls.
    pub fn disable_tools(&mut self, word: ToolCutoff) {
        self.request.forbid_tool_calls = true;
        self.request.system.push(word.model_instruction().to_owned());
        self.pieces.push(PieceKind::LastWord);
    }
}

/// Builds a prompt. `messages` are those that no compaction removed, `remembered` is the memory block. Blocks, since it
/// reads docs/.
#[must_use]
pub fn build_prompt(
    settings: &AgentSettings,
    remembered: Option<String>,
    messages: &[StoredMessage],
    set: &WorkingSet,
    accepts: ModelLimits,
    tools: OfferedTools,
    tight: bool,
) -> Prompt {
    let takes = accepts.tokens;
    let of_agent = [
        (PieceKind::Prompt, settings.system_prompt.clone()),
        (PieceKind::Docs, docs_section(&settings.dir.join("docs"))),
        (PieceKind::Memory, remembered),
    ];
    let of_agent = of_agent.into_iter().filter_map(|(kind, text)| Some((kind, text?)));
    let (mut pieces, mut system): (Vec<_>, Vec<_>) = of_agent.unzip();
    let stable = system.len();
    let fixed = tools.tokens + system.iter().map(|text| tokens_of_piece(text)).sum::<u64>();
    let fits = conversation_budget(settings, takes, fixed);
    let set = &match tight {
        true => working_set_block::fit_to_reduced_window(set, fits),
        false => working_set_block::fit_to_window(set, fits),
    };
    // However large the working set is, part of the budget is left for the conversation.
    let left = fits.saturating_sub(working_set_block::tokens(set)).max(fits / working_set_block::CONVERSATION_DIVISOR);
    if let Some(block) = working_set_block::render(set) {
        pieces.push(PieceKind::WorkingSet);
        system.push(block);
    }
    let budget = WindowBudget { messages: settings.window.messages, tokens: if tight { left / 4 } else { left } };
    let Window { mut messages, left_out, repairs: mended, shortened } = build_window(messages, budget);
    if !accepts.images {
        messages.iter_mut().for_each(|message| _ = describe_images(message));
    }
    let request = ModelRequest {
        messages,
        system,
        stable_system_pieces: stable,
        cache_messages: true,
        tools: tools.specs,
        forbid_tool_calls: false,
        output_format: None,
        max_tokens: reply_tokens(MAX_REPLY_TOKENS, takes, tight),
    };
    Prompt { request, pieces, left_out, repairs: mended, shortened, conversation_budget: fits }
}

/// Returns the limit of the reply: `most` tokens, or a fifth of the context length if that is less.
fn reply_tokens(most: u64, takes: Option<u64>, tight: bool) -> u32 {
    let most = if tight { REDUCED_REPLY_TOKENS.min(most) } else { most };
    u32::try_from(takes.map_or(most, |takes| most.min(takes / 5)).max(1)).unwrap_or(u32::MAX)
}

/// Returns the tokens that messages and working set may have: the configured number, but together with the `fixed` rest
/// of the request at most 80 % of the context length. If that rest alone takes more, still a fifth; the provider then
/// decides.
#[must_use]
pub fn conversation_budget(settings: &AgentSettings, takes: Option<u64>, fixed: u64) -> u64 {
    let most = |takes: u64| (takes / 5 * 4).saturating_sub(fixed).max(takes / 5);
    takes.map_or(settings.window.tokens, |takes| settings.window.tokens.min(most(takes)))
}

/// Returns the tokens that tools may have beside the `fixed` rest of the request: a third of the context length, but
/// not more than leaves a fifth for the conversation and a fifth for the reply. A conversation without tools is worth
/// more than tools without a conversation.
#[must_use]
pub fn max_tool_tokens(takes: Option<u64>, fixed: u64) -> Option<u64> {
    takes.map(|takes| (takes / 3).min((takes / 5 * 3).saturating_sub(fixed)))
}

/// Converts the context length of a model to estimated tokens. The model may count more of them (`ratio`) than Chorus.
#[must_use]
pub fn to_estimated_tokens(takes: u64, ratio: Option<f64>) -> u64 {
    // Far below the integers that a float represents exactly.
    (takes as f64 / ratio.unwrap_or(1.0).max(1.0)) as u64
}

/// Builds the docs section: files in order of their names as far as there is room; the others are only named.
fn docs_section(dir: &Path) -> Option<String> {
    let (mut text, mut named) = (String::new(), Vec::new());
    for DocFile { name, path, size } in list_docs(dir) {
        let room = MAX_DOCS_BYTES.saturating_sub(text.len() + name.len() + 8);
        let content = (size <= room as u64).then(|| fs::read_to_string(path).ok()).flatten();
        match content {
            Some(content) => _ = write!(text, "## {name}\n\n{}\n\n", content.trim_end()),
            None => named.push(name),
        }
    }
    if !named.is_empty() {
        let _ = writeln!(text, "Omitted because of the size limit: {}", named.join(", "));
    }
    (!text.is_empty()).then(|| format!("# Files in docs/\n\n{}", text.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_has_at_most_four_fifths_of_what_the_model_takes() {
        let settings = AgentSettings::default();
        let of = |takes, fixed| conversation_budget(&settings, takes, fixed);
        assert_eq!([of(None, 500), of(Some(200_000), 500), of(Some(10_000), 0)], [15_000, 15_000, 8000]);
        assert_eq!([of(Some(10_000), 500), of(Some(10_000), 9000)], [7500, 2000]);
        let room = |takes, fixed| max_tool_tokens(takes, fixed);
        assert_eq!([room(None, 500), room(Some(6000), 500), room(Some(6000), 2000)], [None, Some(2000), Some(1600)]);
        assert_eq!(room(Some(2000), 3000), Some(0));
    }

    #[test]
    fn question_and_answer_fit_together_and_a_second_try_asks_for_less() {
        let asked = |takes, tight| {
            let accepts = ModelLimits { tokens: takes, ..ModelLimits::default() };
            build_prompt(
                &AgentSettings::default(),
                None,
                &[],
                &WorkingSet::default(),
                accepts,
                OfferedTools::default(),
                tight,
            )
            .request
            .max_tokens
        };
        assert_eq!([asked(None, false), asked(Some(200_000), false), asked(Some(10_000), false)], [8192, 8192, 2000]);
        assert_eq!([asked(None, true), asked(Some(200_000), true), asked(Some(2000), true)], [1024, 1024, 400]);
        assert_eq!(
            [
                to_estimated_tokens(9000, None),
                to_estimated_tokens(9000, Some(1.5)),
                to_estimated_tokens(9000, Some(0.5))
            ],
            [9000, 6000, 9000]
        );
    }

    #[test]
    fn a_long_background_leaves_room_for_the_conversation() {
        let said = "The fields of the north. \u{1f411} ".repeat(4000);
        let set = WorkingSet { background: Some(said.clone()), summary: Some(said), ..WorkingSet::default() };
        let accepts = ModelLimits { tokens: Some(10_000), ..ModelLimits::default() };
        let prompt = build_prompt(&AgentSettings::default(), None, &[], &set, accepts, OfferedTools::default(), false);
        let tokens: u64 = prompt.request.system.iter().map(|text| tokens_of_piece(text)).sum();
        assert!((2000..3200).contains(&tokens), "{tokens}");
    }

    #[test]
    fn notes_are_shown_as_far_as_there_is_room() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(docs_section(dir.path()), None);
        fs::write(dir.path().join("b.md"), "second").unwrap();
        fs::write(dir.path().join("a.md"), "first\n").unwrap();
        fs::write(dir.path().join("big.md"), "x".repeat(MAX_DOCS_BYTES)).unwrap();
        fs::write(dir.path().join("binary"), [0xFF, 0xFE]).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", dir.path().join("link.md")).unwrap();
        let text = docs_section(dir.path()).unwrap();
        assert!(text.contains("## a.md\n\nfirst\n\n## b.md\n\nsecond"), "{text}");
        assert!(text.ends_with("Omitted because of the size limit: big.md, binary"), "{text}");
    }
}
