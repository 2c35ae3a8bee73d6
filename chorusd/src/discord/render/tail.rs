//! The end of a text that grows.

use super::code_block::FenceState;
use super::split::Tokens;

/// How far behind the place for a cut a line may end for the cut to be there, in characters.
const MAX_LINE_SEARCH_CHARS: usize = 200;

/// The end of `text` in at most `most` characters, of which it needs some dozen for itself; a block of code that it is in is opened, and the
/// one it ends in closed.
#[must_use]
pub fn tail(text: &str, most: usize) -> String {
    let count = text.chars().count();
    let too_many = (count + 4).saturating_sub(most);
    let (mut place, mut at) = (FenceState::default(), 0);
    let mut from = None;
    if count + 4 <= most {
        from = Some((0, place));
    }
    // The mark of the cut, a fence that opens and one that closes.
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
