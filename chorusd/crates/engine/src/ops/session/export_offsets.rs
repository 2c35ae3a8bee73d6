//! Remembers positions in exported texts, so that the next piece need not be rendered from the beginning.

use std::collections::VecDeque;

use chorus_base::sync::Mutex;
use chorus_proto::methods::export::ExportFormat;
use chorus_session::export::Progress;

/// The limit on positions of one text. Several are kept, so that a repeated request for a piece also finds its
/// position.
const MAX_PER_TEXT: usize = 4;

/// The limit on positions of all texts.
const MAX_POSITIONS: usize = 256;

/// A position between two messages of a text, from which rendering can continue.
#[derive(Debug, Clone, Copy, Default)]
pub struct ExportPosition {
    /// Bytes of the text before it.
    pub offset: u64,
    pub progress: Progress,
}

/// The newest positions of the texts that were read last. With them, the next piece costs only its own rendering.
#[derive(Debug, Default)]
pub struct ExportPositions(Mutex<VecDeque<(TextKey, ExportPosition)>>);

/// The fingerprint of a session with the format of the text, and whether it is plain.
pub type TextKey = (String, ExportFormat, bool);

impl ExportPositions {
    /// Returns the last position up to `offset`; the beginning of the text if none is known.
    pub fn before(&self, of: &TextKey, offset: u64) -> ExportPosition {
        let known = self.0.lock();
        let of_text = known.iter().filter(|(text, point)| text == of && point.offset <= offset);
        of_text.map(|(_, point)| *point).max_by_key(|point| point.offset).unwrap_or_default()
    }

    /// Remembers a position in a text.
    pub fn remember(&self, of: TextKey, point: ExportPosition) {
        let mut known = self.0.lock();
        known.retain(|(text, other)| *text != of || other.offset != point.offset);
        let same = known.iter().filter(|(text, _)| *text == of).count();
        if same >= MAX_PER_TEXT
            && let Some(oldest) = known.iter().position(|(text, _)| *text == of)
        {
            known.remove(oldest);
        }
        known.push_back((of, point));
        if known.len() > MAX_POSITIONS {
            known.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_checkpoint_before_an_offset_is_found() {
        let points = ExportPositions::default();
        let of = |name: &str| (name.to_owned(), ExportFormat::Md, false);
        let keep =
            |name: &str, offset| points.remember(of(name), ExportPosition { offset, ..ExportPosition::default() });
        for offset in [10, 20, 30, 40, 50] {
            keep("a", offset);
        }
        keep("b", 25);
        let before = |name: &str, offset| points.before(&of(name), offset).offset;
        assert_eq!((before("a", 45), before("a", 50), before("a", 9), before("b", 45)), (40, 50, 0, 25));
        assert_eq!(before("a", 19), 0, "the oldest went");
        assert_eq!(points.before(&("a".into(), ExportFormat::Html, false), 45).offset, 0);
        (0..1000).for_each(|n| keep(&format!("text {n}"), 1));
        assert_eq!((before("a", 45), before("text 999", 45)), (0, 1));
    }
}
