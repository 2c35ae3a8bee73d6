//! Remembers positions in exported texts, so that the next piece need not be rendered from the beginning, and the parents of
//! the exported sessions, so that the chain is followed once.

use std::collections::VecDeque;

use chorus_base::sync::Mutex;
use chorus_proto::methods::export::ExportFormat;
use chorus_session::export::{ParentSession, Progress};

/// The limit on positions of one text. Several are kept, so that a repeated request for a piece also finds its
/// position.
const MAX_PER_TEXT: usize = 4;

/// The limit on positions of all texts.
const MAX_POSITIONS: usize = 256;

/// The limit on parents of exported sessions.
const MAX_PARENTS: usize = 64;

/// A position between two messages of a text, from which rendering can continue.
#[derive(Debug, Clone, Default)]
pub struct ExportPosition {
    /// Bytes of the text before it.
    pub offset: u64,
    pub progress: Progress,
}

/// The newest positions of the texts that were read last. With them, the next piece costs only its own rendering.
#[derive(Debug, Default)]
pub struct ExportPositions {
    positions: Mutex<VecDeque<(TextKey, ExportPosition)>>,
    /// The parent of a session as the first piece of its text found it, by fingerprint.
    parents: Mutex<VecDeque<(String, Option<ParentSession>)>>,
}

/// The fingerprint of a session with the format of the text, and whether it is plain.
pub type TextKey = (String, ExportFormat, bool);

impl ExportPositions {
    /// Returns the last position up to `offset`; the beginning of the text if none is known.
    pub fn before(&self, of: &TextKey, offset: u64) -> ExportPosition {
        let known = self.positions.lock();
        let of_text = known.iter().filter(|(text, point)| text == of && point.offset <= offset);
        of_text.map(|(_, point)| point).max_by_key(|point| point.offset).cloned().unwrap_or_default()
    }

    /// Returns the parent with which the text of this fingerprint began, `None` if that is not known.
    pub fn parent_of(&self, fingerprint: &str) -> Option<Option<ParentSession>> {
        let known = self.parents.lock();
        known.iter().find(|(of, _)| of == fingerprint).map(|(_, parent)| parent.clone())
    }

    /// Remembers the parent of the session whose text has this fingerprint.
    pub fn remember_parent(&self, fingerprint: &str, parent: Option<ParentSession>) {
        let mut known = self.parents.lock();
        known.retain(|(of, _)| of != fingerprint);
        known.push_back((fingerprint.to_owned(), parent));
        if known.len() > MAX_PARENTS {
            known.pop_front();
        }
    }

    /// Remembers a position in a text.
    pub fn remember(&self, of: TextKey, point: ExportPosition) {
        let mut known = self.positions.lock();
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
