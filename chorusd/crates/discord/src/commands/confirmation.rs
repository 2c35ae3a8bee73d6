//! Confirmations that are asked before something is done. In memory: after a restart none can be given.

use std::collections::HashMap;
use std::time::Duration;

use chorus_base::Ticks;
use chorus_base::requester::Requester;
use chorus_base::sync::Mutex;
use chorus_engine::ops::conversations::ConversationKey;
use uuid::Uuid;

use super::response::{Button, Response, Style};

/// How long a confirmation can be given.
const CONFIRM_TIMEOUT: Duration = Duration::from_secs(60);

/// Confirmations that are open at most; those that expire first are dropped for more.
const MAX_OPEN: usize = 1000;

/// A command that waits for its confirmation, and its conversation or agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PendingCommand {
    Clear { conversation: ConversationKey, save: bool },
    Destroy { agent: Uuid, keep_files: bool },
}

/// A confirmation that was asked for.
#[derive(Debug)]
struct Confirmation {
    command: PendingCommand,
    /// Who may give it.
    requester: String,
    due: Ticks,
}

/// The outcome of a button press.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ConfirmOutcome {
    /// The right person confirmed in time. Each confirmation is given once.
    Confirmed(PendingCommand),
    /// Somebody else was asked.
    WrongPerson,
    /// It was answered already, or expired, or is from before a restart.
    Expired,
}

/// The confirmations that are open.
#[derive(Debug, Default)]
pub(super) struct Confirmations(Mutex<HashMap<Uuid, Confirmation>>);

impl Confirmations {
    /// Returns a response that asks for confirmation: `text` with two buttons.
    pub(super) fn ask(
        &self,
        now: Ticks,
        by: &Requester,
        deed: PendingCommand,
        text: String,
        label: &'static str,
    ) -> Response {
        let id = Uuid::new_v4();
        self.insert(id, now, by, deed);
        let button = |word: &str, label: &str, style| Button {
            id: format!("{word}:{id}"),
            label: label.to_owned(),
            style,
            disabled: false,
        };
        let buttons = vec![button("confirm", label, Style::Danger), button("cancel", "Cancel", Style::Secondary)];
        Response { buttons, ..Response::new(text) }
    }

    fn insert(&self, id: Uuid, now: Ticks, by: &Requester, deed: PendingCommand) {
        let mut open = self.0.lock();
        open.retain(|_, question| question.due > now);
        if open.len() >= MAX_OPEN
            && let Some(first) = open.iter().min_by_key(|(_, question)| question.due).map(|(id, _)| *id)
        {
            open.remove(&first);
        }
        open.insert(id, Confirmation { command: deed, requester: by.to_string(), due: now.after(CONFIRM_TIMEOUT) });
    }

    /// Takes a confirmation if it belongs to this person and has not expired.
    pub(super) fn take(&self, id: Uuid, now: Ticks, by: &Requester) -> ConfirmOutcome {
        let mut open = self.0.lock();
        match open.get(&id) {
            Some(question) if question.due <= now => {}
            Some(question) if question.requester != by.to_string() => return ConfirmOutcome::WrongPerson,
            _ => {}
        }
        open.remove(&id)
            .filter(|question| question.due > now)
            .map_or(ConfirmOutcome::Expired, |question| ConfirmOutcome::Confirmed(question.command))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn person(id: &str) -> Requester {
        Requester::Person { id: id.into(), name: "Mara".into(), roles: Vec::new() }
    }

    fn later(seconds: u64) -> Ticks {
        Ticks(0).after(Duration::from_secs(seconds))
    }

    #[test]
    fn it_is_answered_once_by_who_was_asked_and_in_time() {
        let deed = PendingCommand::Clear { conversation: ConversationKey::main(Uuid::nil()), save: true };
        for (at, by, answer) in [
            (59, "1", ConfirmOutcome::Confirmed(deed.clone())),
            (60, "1", ConfirmOutcome::Expired),
            (59, "2", ConfirmOutcome::WrongPerson),
            (61, "2", ConfirmOutcome::Expired),
        ] {
            let (asked, id) = (Confirmations::default(), Uuid::new_v4());
            asked.insert(id, Ticks(0), &person("1"), deed.clone());
            assert_eq!(asked.take(id, later(at), &person(by)), answer, "{at} {by}");
            let again =
                if by == "2" && at < 60 { ConfirmOutcome::Confirmed(deed.clone()) } else { ConfirmOutcome::Expired };
            assert_eq!(asked.take(id, later(at), &person("1")), again, "{at} {by} again");
        }
        assert_eq!(Confirmations::default().take(Uuid::new_v4(), Ticks(0), &person("1")), ConfirmOutcome::Expired);
    }

    #[test]
    fn many_questions_push_out_the_oldest() {
        let asked = Confirmations::default();
        let deed = PendingCommand::Destroy { agent: Uuid::nil(), keep_files: false };
        for n in 0..=MAX_OPEN {
            asked.insert(Uuid::from_u128(n as u128), Ticks(n as i64), &person("1"), deed.clone());
        }
        assert_eq!(asked.take(Uuid::from_u128(0), Ticks(0), &person("1")), ConfirmOutcome::Expired);
        assert_eq!(asked.take(Uuid::from_u128(1), Ticks(0), &person("1")), ConfirmOutcome::Confirmed(deed));
    }
}
