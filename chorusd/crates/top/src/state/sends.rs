//! Messages that are sent, and what becomes of them.

use chorus_proto::ErrorKind;
use jiff::Timestamp;

use super::{Link, State};
use crate::conversation::{Conversation, NoticeKind};
use crate::fleet::Target;
use crate::outbox::{Delivery, FailedSend};
use crate::panels::Panel;
use crate::requests::{Failure, Request, SendStage};

impl State {
    /// Sends what was typed in the open conversation.
    pub(super) fn send_typed(&mut self, target: Target) {
        let is_connected = self.link == Link::Connected;
        let Some(open) = self.open() else { return };
        if !is_connected {
            return open.notify(NoticeKind::Send, "not sent: no connection to chorusd; your text is kept", true);
        }
        let Some(text) = open.take_message() else { return };
        let key = self.outboxes.add(&target, text.clone());
        self.request(Request::Send { target, text, key });
    }

    /// Sends messages again whose connection was lost before `before`.
    pub(super) fn resend(&mut self, before: Timestamp) {
        for (target, text, key) in self.outboxes.take_unconfirmed(before) {
            self.request(Request::Send { target, text, key });
        }
    }

    pub(super) fn on_send_stage(&mut self, target: &Target, key: &str, stage: SendStage) {
        match stage {
            SendStage::Queued(before) => self.outboxes.queued(target, key, before),
            SendStage::Started => self.outboxes.delivered(target, key),
        }
    }

    /// Handles that the daemon refused a message, or that its turn failed, or that the connection was lost.
    pub(super) fn send_failed(&mut self, target: &Target, key: &str, failure: &Failure) {
        let target = &self.outboxes.current(target, key);
        let outcome = match failure.kind {
            None => self.outboxes.unconfirmed(target, key, self.now),
            Some(kind) => self.outboxes.failed(target, key, kind == ErrorKind::Interrupted, failure.text()),
        };
        match outcome {
            FailedSend::Retried => {}
            // The record says how far its turn has come.
            FailedSend::Delivered if failure.kind.is_none() => {}
            FailedSend::Delivered => {
                match live_conversation(&mut self.panels, target) {
                    Some(open) => open.notify(NoticeKind::Turn, failure.text(), true),
                    None => self.report(format!("{}: {}", target.agent, failure.text()), true),
                }
                self.request_record(target);
            }
            FailedSend::Refused => match live_conversation(&mut self.panels, target) {
                Some(open) => {
                    self.outboxes.take_refused(target, key, &mut open.editor);
                    open.notify(NoticeKind::Send, failure.text(), true);
                }
                None => self.report(format!("not sent to {}: {}", target.agent, failure.text()), true),
            },
        }
    }

    /// Takes a message that was not sent into the line. Returns false if all were.
    pub(super) fn edit_refused(&mut self, target: &Target) -> bool {
        let Some(open) = live_conversation(&mut self.panels, target) else { return false };
        self.outboxes.edit_refused(target, &mut open.editor)
    }

    /// Stores what is typed in a conversation that is closed.
    pub(super) fn store_draft(&mut self, open: &Conversation) {
        let Some(target) = open.target() else { return };
        if !open.editor.text().is_empty() {
            self.outboxes.of(target).draft = open.editor.clone();
        }
    }

    /// Returns true if the daemon has answered for everything that somebody asked for.
    pub(crate) fn is_settled(&self) -> bool {
        self.unanswered_actions == 0 && !self.outboxes.is_sending()
    }

    /// Says what was not done when the screen is left, with a hint; `None` if everything was.
    pub(crate) fn unfinished(&self) -> Option<(String, String)> {
        let mut unsent = self.outboxes.unsent();
        if let Some((target, entry)) = unsent.next() {
            let more = unsent.count();
            let more = if more > 0 { format!(" (and {more} more)") } else { String::new() };
            let what = match entry.delivery {
                Delivery::Refused(_) => "was not sent",
                _ => "may not have been sent",
            };
            let text = format!("a message to {} {what}{more}", target.agent);
            return Some((text, format!("its text: {}", entry.text)));
        }
        let hint = "see what is pending: chorusctl approvals, chorusctl status".to_owned();
        (self.unanswered_actions > 0).then(|| ("chorusd did not answer the last request".to_owned(), hint))
    }
}

/// Returns the live conversation of `target`, if it is open.
fn live_conversation<'p>(panels: &'p mut [Panel], target: &Target) -> Option<&'p mut Conversation> {
    panels.iter_mut().rev().find_map(|panel| match panel {
        Panel::Conversation(open) if open.target() == Some(target) => Some(&mut **open),
        _ => None,
    })
}
