//! Decides whether a file has changes of another conversation that a conversation has not seen.

use std::collections::HashMap;

use chorus_catalog::{FileHash, FileHistory};
use uuid::Uuid;

use super::commands::CommandTime;
use super::seen_files::{SeenExtent, SeenFile};
use crate::tools::files::EditKind;

/// A change by another conversation, with the id of that one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnseenChange {
    /// It wrote the file.
    Write(Uuid),
    /// The file changed, which a command of that conversation may have done.
    Command(Uuid),
    /// The file was never seen, and a command of that conversation may have written it.
    UnseenFile(Uuid),
    /// Only a part of the version was seen, and that conversation changed the file since it was seen whole.
    UnseenPart(Uuid),
}

impl UnseenChange {
    pub(super) fn conversation(self) -> Uuid {
        match self {
            Self::Write(conversation)
            | Self::Command(conversation)
            | Self::UnseenFile(conversation)
            | Self::UnseenPart(conversation) => conversation,
        }
    }

    /// Returns the reason for the model why an edit is refused; `name` is that of the conversation.
    pub(super) fn refusal(self, name: &str) -> String {
        match self {
            Self::Write(_) | Self::Command(_) => format!("edited meanwhile by {name}: read it again"),
            Self::UnseenFile(_) => format!("it exists, and commands of {name} may have changed it: read it first"),
            Self::UnseenPart(_) => format!("edited meanwhile by {name}: read all of it again"),
        }
    }

    /// Returns true if the edit could destroy something of the change. One that names the text which it replaces knows it.
    pub(super) fn forbids(self, kind: EditKind) -> bool {
        match kind {
            EditKind::Replace => true,
            EditKind::Change => !matches!(self, Self::UnseenFile(_) | Self::UnseenPart(_)),
            EditKind::Append => false,
        }
    }
}

/// Returns what a conversation has not seen of a file with the content `disk`. `seen` is the version that it saw last, if
/// that is still in memory; its own last write counts as seen otherwise.
pub(super) fn find_unseen_change(
    conversation: Uuid,
    disk: &FileHash,
    seen: Option<SeenFile>,
    history: &FileHistory,
    commands: &HashMap<Uuid, CommandTime>,
) -> Option<UnseenChange> {
    let own = history.writes.iter().find(|row| row.conversation == conversation);
    let written = own.and_then(|row| Some(SeenFile::whole(row.hash?, row.at)));
    let Some(known) = seen.or(written) else {
        return match change_since(conversation, 0, true, history, commands)? {
            UnseenChange::Command(by) => Some(UnseenChange::UnseenFile(by)),
            change => Some(change),
        };
    };
    let change = |since| change_since(conversation, since, seen.is_none(), history, commands);
    let newer = if known.hash == *disk { None } else { change(known.position) };
    newer.or_else(|| match known.extent {
        SeenExtent::Whole => None,
        SeenExtent::Lines { whole_at, .. } => {
            change(whole_at).map(|part| UnseenChange::UnseenPart(part.conversation()))
        }
    })
}

/// Returns what another conversation did to a file after a position, or may have done. With `counts_earlier`, commands of
/// before the start of the daemon count, which may have run after all that is known from then.
fn change_since(
    conversation: Uuid,
    since: u64,
    counts_earlier: bool,
    history: &FileHistory,
    commands: &HashMap<Uuid, CommandTime>,
) -> Option<UnseenChange> {
    if let Some(row) = history.writes.iter().find(|row| row.conversation != conversation && row.at > since) {
        return Some(UnseenChange::Write(row.conversation));
    }
    let newest = commands
        .iter()
        .filter(|(of, time)| **of != conversation && (time.running > 0 || time.last_end > since))
        .max_by_key(|(of, time)| (time.running > 0, time.last_end, **of));
    let earlier = history.command_users.iter().find(|of| counts_earlier && **of != conversation);
    newest.map(|(of, _)| *of).or(earlier.copied()).map(UnseenChange::Command)
}

#[cfg(test)]
mod tests {
    use chorus_catalog::FileWriteRow;

    use super::*;

    const A: Uuid = Uuid::from_u128(1);
    const B: Uuid = Uuid::from_u128(2);
    const C: Uuid = Uuid::from_u128(3);

    fn write(conversation: Uuid, content: Option<u8>, at: u64) -> FileWriteRow {
        let hash = content.map(|content| [content; 32]);
        FileWriteRow { agent: A, path: "f".into(), conversation, hash, at }
    }

    fn command(conversation: Uuid, running: usize, last_end: u64) -> (Uuid, CommandTime) {
        (conversation, CommandTime { running, last_end, ..CommandTime::default() })
    }

    /// Returns the change that `A` has not seen of a file with content 9.
    fn unseen(
        seen: Option<(u8, u64)>,
        writes: &[FileWriteRow],
        commands: &[(Uuid, CommandTime)],
        command_users: &[Uuid],
    ) -> Option<UnseenChange> {
        let seen = seen.map(|(content, position)| SeenFile::whole([content; 32], position));
        let history = FileHistory { writes: writes.to_vec(), command_users: command_users.to_vec() };
        find_unseen_change(A, &[9; 32], seen, &history, &commands.iter().copied().collect())
    }

    #[test]
    fn a_write_of_another_must_have_been_seen() {
        let b = [write(B, Some(9), 5)];
        assert_eq!(unseen(None, &b, &[], &[]), Some(UnseenChange::Write(B)), "never seen");
        assert_eq!(unseen(Some((1, 4)), &b, &[], &[]), Some(UnseenChange::Write(B)));
        assert_eq!(unseen(Some((1, 6)), &b, &[], &[]), None, "seen after it; a person changed it since");
        assert_eq!(unseen(Some((9, 4)), &b, &[], &[]), None, "the same content");
        let blind = [write(A, None, 7), write(C, None, 6), write(B, Some(8), 5)];
        assert_eq!(unseen(None, &blind, &[], &[]), Some(UnseenChange::Write(C)), "it appended without reading");
    }

    #[test]
    fn its_own_write_counts_as_seen_after_a_restart() {
        assert_eq!(unseen(None, &[write(A, Some(9), 5)], &[], &[B]), None);
        assert_eq!(unseen(None, &[write(A, Some(1), 5)], &[], &[]), None, "a person changed it");
        assert_eq!(unseen(None, &[write(A, Some(1), 5)], &[], &[A, B]), Some(UnseenChange::Command(B)));
    }

    #[test]
    fn a_command_of_another_may_have_changed_it() {
        let (ended, running) = ([command(B, 0, 5), command(A, 1, 9)], [command(C, 0, 7), command(B, 1, 2)]);
        assert_eq!(unseen(Some((1, 4)), &[], &ended, &[]), Some(UnseenChange::Command(B)));
        assert_eq!(unseen(Some((1, 6)), &[], &ended, &[B]), None, "only own commands since");
        assert_eq!(unseen(Some((1, 6)), &[], &running, &[]), Some(UnseenChange::Command(B)), "it still runs");
        assert_eq!(unseen(Some((9, 1)), &[], &running, &[]), None, "it changed nothing here");
        assert_eq!(unseen(None, &[], &ended, &[]), Some(UnseenChange::UnseenFile(B)));
        assert_eq!(unseen(None, &[], &[], &[B]), Some(UnseenChange::UnseenFile(B)), "before a restart");
        assert_eq!(unseen(None, &[], &[command(A, 1, 9)], &[A]), None);
    }

    #[test]
    fn a_part_is_not_the_whole_of_what_another_changed() {
        let part = |whole_at| {
            let extent = SeenExtent::Lines { last: 3, whole_at };
            let history = FileHistory { writes: vec![write(B, Some(9), 5)], command_users: Vec::new() };
            let seen = Some(SeenFile { hash: [9; 32], position: 7, extent });
            find_unseen_change(A, &[9; 32], seen, &history, &HashMap::new())
        };
        assert_eq!(part(4), Some(UnseenChange::UnseenPart(B)));
        assert_eq!(part(6), None, "it was seen whole after that");
        assert!(UnseenChange::UnseenPart(B).forbids(EditKind::Replace));
        assert!(!UnseenChange::UnseenPart(B).forbids(EditKind::Change));
    }
}
