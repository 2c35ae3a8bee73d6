//! Lines of types that are not known and have no message. A newer version of the program writes them for itself, unless most lines
//! are of that kind: then the conversation is probably in them.

use super::super::writer::SessionWriter;

/// The limit on types that are told apart.
const MAX_TYPES: usize = 32;

/// The lines of unknown types.
#[derive(Debug, Default)]
pub(super) struct UnknownTypes {
    /// The reason for each type.
    types: Vec<String>,
    /// Number of each line, and the index of its type.
    lines: Vec<(u64, usize)>,
}

impl UnknownTypes {
    pub(super) fn add(&mut self, line: u64, reason: String) {
        let known = self.types.iter().position(|of| *of == reason);
        let of = known.unwrap_or_else(|| {
            if self.types.len() < MAX_TYPES {
                self.types.push(reason);
            }
            self.types.len() - 1
        });
        self.lines.push((line, of));
    }

    /// Reports them, given the number of all lines: once for each type, or as unreadable if they are the majority.
    pub(super) fn report(self, all: usize, writer: &mut SessionWriter<'_>) {
        if self.lines.len() * 2 > all {
            self.lines.iter().for_each(|(line, of)| writer.skip(*line, &*self.types[*of]));
            return;
        }
        for (at, reason) in self.types.into_iter().enumerate() {
            let mut lines = self.lines.iter().filter(|(_, of)| *of == at).map(|(line, _)| *line);
            let Some(first) = lines.next() else { continue };
            let count = 1 + lines.count();
            let lines = if count == 1 { "1 line".to_owned() } else { format!("{count} lines") };
            writer.leave_out(first, format!("{reason}: {lines} without a message"));
        }
    }
}
