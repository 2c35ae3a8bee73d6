//! The pieces of a turn so far, for listeners that come late.

use std::collections::VecDeque;

use chorus_proto::methods::send::TurnEvent;

/// Bytes of text that are kept; of a longer turn, the beginning is left out.
const MAX_BYTES: usize = 256 << 10;

/// The pieces of a turn in order, texts that follow each other joined.
#[derive(Debug, Default)]
pub(crate) struct SaidPieces {
    pieces: VecDeque<TurnEvent>,
    bytes: usize,
}

impl SaidPieces {
    /// Adds a piece. Questions are not kept: those that are open have their own list.
    pub(crate) fn push(&mut self, event: &TurnEvent) {
        let size = size_of_piece(event);
        match (self.pieces.back_mut(), event) {
            (Some(TurnEvent::Text(before)), TurnEvent::Text(text))
            | (Some(TurnEvent::Thinking(before)), TurnEvent::Thinking(text))
                if before.len() < MAX_BYTES / 4 =>
            {
                before.push_str(text);
            }
            (_, TurnEvent::Ask { .. } | TurnEvent::Decided { .. } | TurnEvent::Queued { .. }) => return,
            _ => self.pieces.push_back(event.clone()),
        }
        self.bytes += size;
        while self.bytes > MAX_BYTES
            && self.pieces.len() > 1
            && let Some(first) = self.pieces.pop_front()
        {
            self.bytes = self.bytes.saturating_sub(size_of_piece(&first));
        }
    }

    /// Returns the pieces, the oldest first.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = &TurnEvent> {
        self.pieces.iter()
    }
}

/// Returns about how many bytes a piece takes.
fn size_of_piece(event: &TurnEvent) -> usize {
    const FRAME_BYTES: usize = 64;
    match event {
        TurnEvent::Text(text) | TurnEvent::Thinking(text) => text.len(),
        TurnEvent::Note(text) => FRAME_BYTES + text.len(),
        TurnEvent::Result { output: Some(output), .. } => FRAME_BYTES + output.text.len(),
        _ => FRAME_BYTES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> TurnEvent {
        TurnEvent::Text(text.to_owned())
    }

    #[test]
    fn texts_are_joined_and_of_too_much_the_end_is_kept() {
        let mut said = SaidPieces::default();
        said.push(&text("a"));
        said.push(&text("b"));
        said.push(&TurnEvent::Note("n".to_owned()));
        said.push(&text("c"));
        assert_eq!(
            said.pieces().cloned().collect::<Vec<_>>(),
            [text("ab"), TurnEvent::Note("n".to_owned()), text("c")]
        );
        for _ in 0..100 {
            said.push(&text(&"x".repeat(10_000)));
        }
        said.push(&text("end"));
        let bytes: usize = said.pieces().map(size_of_piece).sum();
        assert!((100_000..=MAX_BYTES).contains(&bytes), "{bytes}");
        assert!(matches!(said.pieces().last(), Some(TurnEvent::Text(last)) if last.ends_with("end")));
    }
}
