//! The end of a text that grows.

use super::code_block::FenceState;
use super::split::Tokens;

/// How many characters the cut may move to be behind the end of a line.
const MAX_LINE_SEARCH_CHARS: usize = 200;

/// Returns the end of `text` in at most `most` characters, a few dozen of which are reserved for the ellipsis and
/// fences. The code block that the cut is in is reopened, and the one that the text ends in is closed.
#[must_use]
pub(crate) fn tail(text: &str, most: usize) -> String {
    let count = text.chars().count();
    let too_many = (count + 4).saturating_sub(most);
    let (mut place, mut at) = (FenceState::default(), 0);
    let mut from = None;
    if count + 4 <= most {
        from = Some((0, place));
    }
    // Room for the ellipsis, an opening and a closing fence.
    let least = too_many + 40;
    let mut passed = 0;
    for token in (Tokens { rest: text, fence: place }) {
        at += token.text().len();
        passed += token.text().chars().count();
        place = place.after(token);
        let line = token.text().ends_with('\n');
        if from.is_none() && passed >= least && (line || passed >= least + MAX_LINE_SEARCH_CHARS) {
            from = Some((at, place));
        }
    }
    let (from, began) = from.unwrap_or((at, place));
    let mark = if from == 0 { "" } else { "…\n" };
    let shown = &text[from..];
    let opening = if from == 0 { String::new() } else { began.opening_fence() };
    format!("{mark}{opening}{shown}{}", place.closing_fence(shown))
}
