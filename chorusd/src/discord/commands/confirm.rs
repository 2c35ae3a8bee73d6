//! What is asked back before it is done. In memory: after a restart nothing is confirmed.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use uuid::Uuid;

use super::reply::{Button, Reply, Style};
use crate::clock::Ticks;
use crate::discord::bridge::Bridge;
use crate::who::Requester;

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// Questions that are open at most; those that fall due first are dropped for more.
const OPEN: usize = 1000;

/// What is to be confirmed, of which agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deed {
    Clear { agent: Uuid, save: bool },
    Destroy { agent: Uuid, keep_files: bool },
}

/// What is asked.
#[derive(Debug)]
struct Question {
    deed: Deed,
    /// Who may answer.
    person: String,
    due: Ticks,
}

/// What came of a press.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It is theirs and in time; asked once.
    Yes(Deed),
    /// Somebody else was asked.
    NotTheirs,
    /// It is answered, too late, or from before a restart.
    Over,
}

/// Questions that are open.
#[derive(Debug, Default)]
pub struct Asked(Mutex<HashMap<Uuid, Question>>);

impl Asked {
    /// Asks back: `text` with two buttons.
    pub fn ask(&self, bridge: &Bridge, by: &Requester, deed: Deed, text: String, label: &'static str) -> Reply {
        let (id, now) = (Uuid::new_v4(), bridge.ops.clock.ticks());
        self.put(id, now, by, deed);
        let button = |word: &str, label: &str, style| Button {
            id: format!("{word}:{id}"),
            label: label.to_owned(),
            style,
            disabled: false,
        };
        let buttons = vec![button("confirm", label, Style::Danger), button("cancel", "Cancel", Style::Plain)];
        Reply { buttons, ..Reply::new(text) }
    }

    fn put(&self, id: Uuid, now: Ticks, by: &Requester, deed: Deed) {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, question| question.due > now);
        if open.len() >= OPEN
            && let Some(first) = open.iter().min_by_key(|(_, question)| question.due).map(|(id, _)| *id)
        {
            open.remove(&first);
        }
        open.insert(id, Question { deed, person: by.to_string(), due: now.after(PATIENCE) });
    }

    /// Takes the question, where it is one of this person and in time.
    pub fn take(&self, id: Uuid, now: Ticks, by: &Requester) -> Answer {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match open.get(&id) {
            Some(question) if question.due <= now => {}
            Some(question) if question.person != by.to_string() => return Answer::NotTheirs,
            _ => {}
        }
        open.remove(&id)
            .filter(|question| question.due > now)
            .map_or(Answer::Over, |question| Answer::Yes(question.deed))
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
        let deed = Deed::Clear { agent: Uuid::nil(), save: true };
        for (at, by, answer) in [
            (59, "1", Answer::Yes(deed.clone())),
            (60, "1", Answer::Over),
            (59, "2", Answer::NotTheirs),
            (61, "2", Answer::Over),
        ] {
            let (asked, id) = (Asked::default(), Uuid::new_v4());
            asked.put(id, Ticks(0), &person("1"), deed.clone());
            assert_eq!(asked.take(id, later(at), &person(by)), answer, "{at} {by}");
            let again = if by == "2" && at < 60 { Answer::Yes(deed.clone()) } else { Answer::Over };
            assert_eq!(asked.take(id, later(at), &person("1")), again, "{at} {by} again");
        }
        assert_eq!(Asked::default().take(Uuid::new_v4(), Ticks(0), &person("1")), Answer::Over);
    }

    #[test]
    fn many_questions_push_out_the_oldest() {
        let asked = Asked::default();
        let deed = Deed::Destroy { agent: Uuid::nil(), keep_files: false };
        for n in 0..=OPEN {
            asked.put(Uuid::from_u128(n as u128), Ticks(n as i64), &person("1"), deed.clone());
        }
        assert_eq!(asked.take(Uuid::from_u128(0), Ticks(0), &person("1")), Answer::Over);
        assert_eq!(asked.take(Uuid::from_u128(1), Ticks(0), &person("1")), Answer::Yes(deed));
    }
}
