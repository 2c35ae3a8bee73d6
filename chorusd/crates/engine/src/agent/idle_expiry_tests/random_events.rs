//! Random events from outside: requests, and time that passes.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use chorus_agent_core::AgentSettings;
use chorus_agent_core::context::{PageBudget, PageRange};
use chorus_agent_core::event::{AgentCommand, Restore};
use chorus_proto::{Item, ItemSource, NewMessage, Role, TokenPair, Trigger, WorkingSet};
use chorus_session::notes::{NoteEdit, NoteList};
use chorus_session::stored_message::StoredMessage;
use jiff::{SignedDuration, Timestamp};

use super::simulation::{AGENT, Simulation, TIMEOUT};

/// Maximum number of messages in one order; each starts with its number.
static POOL: LazyLock<Vec<StoredMessage>> = LazyLock::new(|| {
    let roles = [Role::User, Role::Assistant, Role::ToolResult];
    let message = |n: usize| NewMessage::text(roles[n % 3], "x").complete(|| format!("{n:03}"), Timestamp::UNIX_EPOCH);
    (0..128).map(|n| StoredMessage::new(&message(n)).expect("a message")).collect()
});

impl Simulation {
    pub(super) fn send_random_command(&mut self) {
        // Every other order has few messages and many operations.
        let quiet = if self.dice.seed.is_multiple_of(2) { 7 } else { 0 };
        let verb = match quiet + self.dice.below(22 - quiet) {
            0..=8 => {
                let count = (1 + self.dice.index(2)).min(POOL.len() - self.used);
                let messages = POOL[self.used..self.used + count].to_vec();
                self.used += count;
                if messages.is_empty() {
                    return;
                }
                AgentCommand::Append { messages, key: None }
            }
            9 => AgentCommand::ReadPage { pick: PageRange::Last(1), budget: PageBudget::from_max_frame(usize::MAX) },
            10 | 11 => AgentCommand::Save { description: None, tags: Vec::new(), clear: false },
            12 => AgentCommand::Save { description: None, tags: Vec::new(), clear: true },
            13 => AgentCommand::Clear { save: self.dice.one_in(2) },
            14 | 15 if !self.sessions.is_empty() => {
                let (session, messages) = self.sessions[self.dice.index(self.sessions.len())].clone();
                let (working_set, discard) = (WorkingSet::default(), self.dice.one_in(4));
                let (session_id, added) = (String::new(), Vec::new());
                let restoration = TokenPair::default();
                let restore =
                    Restore { session, session_id, messages, appended: added, working_set, restoration, discard };
                AgentCommand::Restore(Box::new(restore))
            }
            16 | 17 => AgentCommand::Rewind { turns: 1 + self.dice.below(2) },
            18 => AgentCommand::Unrewind,
            19 => AgentCommand::SaveIfUnsaved { trigger: Trigger::Shutdown, end: false },
            20 => {
                let timeouts = [None, Some(TIMEOUT), Some(TIMEOUT * 2)];
                let idle_timeout = timeouts[self.dice.index(3)];
                self.settings = Arc::new(AgentSettings { idle_timeout, ..(*self.settings).clone() });
                AgentCommand::UpdateIdleTimeout
            }
            _ => {
                let item = Item { id: "p".into(), text: "a fact".into(), source: ItemSource::Hand, message_id: None };
                AgentCommand::EditNotes(Box::new(NoteEdit::Add { list: NoteList::PinnedFacts, item }))
            }
        };
        self.mailbox.push_back(verb);
    }

    pub(super) fn advance_time(&mut self) {
        let due = self.timers.due(AGENT).map_or(0, |due| due.0 - self.ticks.0).max(0).unsigned_abs();
        match self.dice.below(6) {
            // To the deadline, and to just before it.
            0 | 1 => self.ticks = self.ticks.after(Duration::from_nanos(due)),
            2 => self.ticks = self.ticks.after(Duration::from_nanos(due.saturating_sub(1))),
            3 => self.ticks = self.ticks.after(Duration::from_secs(self.dice.below(90))),
            // The machine sleeps.
            4 => self.ticks = self.ticks.after(Duration::from_secs(8 * 60 * 60)),
            // Only the wall clock changes: back by just one timeout, an hour, forward ten years.
            _ => {
                let jumps = [-1800, -3600, 3600, 315_360_000];
                self.now += SignedDuration::from_secs(jumps[self.dice.index(4)]);
            }
        }
    }
}
