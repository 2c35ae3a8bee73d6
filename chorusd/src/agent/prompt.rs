//! What a model is asked: the agent's prompt, its notes, its working set, and the newest messages that fit.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use chorus_proto::{PieceKind, WorkingSet};

use super::Facts;
use super::allowance::LastWord;
use super::notes::{Note, notes};
use super::window::{Budget, Mended, block, window};
use crate::estimate::piece;
use crate::llm::Request;
use crate::message::Stored;
use crate::tools;

/// Bytes of docs/ that are shown; what is beyond is named.
pub(super) const DOCS: usize = 32 << 10;

/// The longest answer, in tokens, where the model takes that much.
const ANSWER: u64 = 8192;

/// The same where the model has refused a request as too long: some count the answer that may come.
const SHORT_ANSWER: u64 = 1024;

/// What is asked, and how long it may be.
#[derive(Debug)]
pub struct Prompt {
    pub request: Request,
    /// What the pieces of the system prompt are.
    pub pieces: Vec<PieceKind>,
    /// Messages of the record that it leaves out.
    pub left_out: usize,
    /// Where the messages are not what the record says.
    pub mended: Vec<Mended>,
    /// Tokens that messages and working set may have together.
    pub fits: u64,
}

impl Prompt {
    /// Adds what a turn is told that is to come to its end; its tools are not to be called any more.
    pub fn last_word(&mut self, word: LastWord) {
        self.request.no_calls = true;
        self.request.system.push(word.to_model().to_owned());
        self.pieces.push(PieceKind::LastWord);
    }
}

/// Puts it together; `messages` are those that no compaction took out. `remembered`: what the agent remembers, as it is shown. `takes`: the
/// tokens that the model takes in all, where that is known. Blocks: it reads docs/.
#[must_use]
pub fn prompt(
    facts: &Facts,
    remembered: Option<String>,
    messages: &[Stored],
    set: &WorkingSet,
    takes: Option<u64>,
    tight: bool,
) -> Prompt {
    let of_agent = [
        (PieceKind::Prompt, facts.system_prompt.clone()),
        (PieceKind::Docs, docs(&facts.dir.join("docs"))),
        (PieceKind::Memory, remembered),
    ];
    let of_agent = of_agent.into_iter().filter_map(|(kind, text)| Some((kind, text?)));
    let (mut pieces, mut system): (Vec<_>, Vec<_>) = of_agent.unzip();
    let stable = system.len();
    let tools = tools::specs(facts.rules());
    let fixed = tools::tokens(facts.rules()) + system.iter().map(|text| piece(text.len() as u64)).sum::<u64>();
    let fits = fits(facts, takes, fixed);
    let set = &block::bounded(set, fits);
    // However much is known of it, something of the conversation itself is shown.
    let left = fits.saturating_sub(block::tokens(set)).max(fits / 2);
    if let Some(block) = block::block(set) {
        pieces.push(PieceKind::WorkingSet);
        system.push(block);
    }
    let budget = Budget { messages: facts.window.messages, tokens: if tight { left / 4 } else { left } };
    let shown = window(messages, budget);
    let most = if tight { SHORT_ANSWER } else { ANSWER };
    // What the prompt leaves of the window.
    let answer = takes.map_or(most, |takes| most.min(takes / 5)).max(1);
    let request = Request {
        messages: shown.messages,
        system,
        stable,
        goes_on: true,
        tools,
        no_calls: false,
        shape: None,
        max_tokens: u32::try_from(answer).unwrap_or(u32::MAX),
    };
    Prompt { request, pieces, left_out: shown.left_out, mended: shown.mended, fits }
}

/// The tokens that messages and working set may have: as many as are configured, and with the `fixed` rest of the request at most
/// 80 % of what the model takes. Where that rest alone is more, still a fifth: the provider has the last word then.
#[must_use]
pub fn fits(facts: &Facts, takes: Option<u64>, fixed: u64) -> u64 {
    let most = |takes: u64| (takes / 5 * 4).saturating_sub(fixed).max(takes / 5);
    takes.map_or(facts.window.tokens, |takes| facts.window.tokens.min(most(takes)))
}

/// What a model takes, in tokens as they are estimated: it may count more of them (`ratio`) than Chorus does.
#[must_use]
pub fn estimated(takes: u64, ratio: Option<f64>) -> u64 {
    // Far below what a float counts exactly.
    (takes as f64 / ratio.unwrap_or(1.0).max(1.0)) as u64
}

/// The agent's notes: as many as there is room for, by name, the rest only named.
fn docs(dir: &Path) -> Option<String> {
    let (mut text, mut named) = (String::new(), Vec::new());
    for Note { name, path, size } in notes(dir) {
        let room = DOCS.saturating_sub(text.len() + name.len() + 8);
        let content = (size <= room as u64).then(|| fs::read_to_string(path).ok()).flatten();
        match content {
            Some(content) => _ = write!(text, "## {name}\n\n{}\n\n", content.trim_end()),
            None => named.push(name),
        }
    }
    if !named.is_empty() {
        let _ = writeln!(text, "Not shown here for want of room: {}", named.join(", "));
    }
    (!text.is_empty()).then(|| format!("# Notes in docs/\n\n{}", text.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_has_at_most_four_fifths_of_what_the_model_takes() {
        let facts = Facts::default();
        let of = |takes, fixed| fits(&facts, takes, fixed);
        assert_eq!([of(None, 500), of(Some(200_000), 500), of(Some(10_000), 0)], [15_000, 15_000, 8000]);
        assert_eq!([of(Some(10_000), 500), of(Some(10_000), 9000)], [7500, 2000]);
    }

    #[test]
    fn question_and_answer_fit_together_and_a_second_try_asks_for_less() {
        let asked = |takes, tight| {
            prompt(&Facts::default(), None, &[], &WorkingSet::default(), takes, tight).request.max_tokens
        };
        assert_eq!([asked(None, false), asked(Some(200_000), false), asked(Some(10_000), false)], [8192, 8192, 2000]);
        assert_eq!([asked(None, true), asked(Some(200_000), true), asked(Some(2000), true)], [1024, 1024, 400]);
        assert_eq!([estimated(9000, None), estimated(9000, Some(1.5)), estimated(9000, Some(0.5))], [9000, 6000, 9000]);
    }

    #[test]
    fn a_long_background_leaves_room_for_the_conversation() {
        let said = "The fields of the north. \u{1f411} ".repeat(4000);
        let set = WorkingSet { background: Some(said.clone()), summary: Some(said), ..WorkingSet::default() };
        let prompt = prompt(&Facts::default(), None, &[], &set, Some(10_000), false);
        let tokens: u64 = prompt.request.system.iter().map(|text| piece(text.len() as u64)).sum();
        assert!((2000..3200).contains(&tokens), "{tokens}");
    }

    #[test]
    fn notes_are_shown_as_far_as_there_is_room() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(docs(dir.path()), None);
        fs::write(dir.path().join("b.md"), "second").unwrap();
        fs::write(dir.path().join("a.md"), "first\n").unwrap();
        fs::write(dir.path().join("big.md"), "x".repeat(DOCS)).unwrap();
        fs::write(dir.path().join("binary"), [0xFF, 0xFE]).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", dir.path().join("link.md")).unwrap();
        let text = docs(dir.path()).unwrap();
        assert!(text.contains("## a.md\n\nfirst\n\n## b.md\n\nsecond"), "{text}");
        assert!(text.ends_with("Not shown here for want of room: big.md, binary"), "{text}");
    }
}
