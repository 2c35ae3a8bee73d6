//! The pending approvals, and their answers.

use chorus_proto::ErrorKind;
use chorus_proto::methods::approvals::Approval;
use crossterm::event::{KeyCode, KeyEvent};
use jiff::{SignedDuration, Timestamp};

use super::State;
use super::keys::step_of;
use crate::fleet::Target;
use crate::line_editor::LineEditor;
use crate::panels::{Panel, Selection};
use crate::requests::{Decision, Failure, Request};

/// The time for which an approval has to be selected before it can be answered, unless a key has selected it.
const READING_TIME: SignedDuration = SignedDuration::from_secs(1);

/// A row of the approvals.
#[derive(Debug)]
pub(crate) struct ApprovalRow {
    pub(crate) approval: Approval,
    /// The answer that was given here.
    pub(crate) outcome: Option<String>,
}

/// The pending approvals, with those that were answered here since it was opened. The selected one is remembered by its id, so that a
/// new one is never answered by mistake.
#[derive(Debug, Default)]
pub(crate) struct ApprovalsPanel {
    pub(crate) rows: Vec<ApprovalRow>,
    pub(crate) at: usize,
    /// The id of the approval whose action is on the screen, at least in part.
    pub(crate) drawn: Option<String>,
    /// When another approval was selected because the one before is gone; `None` after a key has selected one.
    moved_at: Option<Timestamp>,
    /// Lines of the selected action that are above the first visible one.
    pub(crate) scroll: usize,
    /// The reason of a denial while it is typed.
    pub(crate) reason: Option<LineEditor>,
}

impl ApprovalsPanel {
    /// Takes the pending approvals. Answered ones stay until another one is selected.
    fn set(&mut self, approvals: &[Approval], now: Timestamp) {
        let selected = self.selected().map(|row| row.approval.id.clone());
        let is_pending = |id: &str| approvals.iter().any(|approval| approval.id == id);
        let before = self.rows[..self.at.min(self.rows.len())]
            .iter()
            .filter(|row| row.outcome.is_some() || is_pending(&row.approval.id))
            .count();
        self.rows.retain(|row| row.outcome.is_some() || is_pending(&row.approval.id));
        for approval in approvals {
            match self.rows.iter_mut().find(|row| row.approval.id == approval.id) {
                Some(row) => row.approval = approval.clone(),
                None => self.rows.push(ApprovalRow { approval: approval.clone(), outcome: None }),
            }
        }
        self.at = before.min(self.rows.len().saturating_sub(1));
        if selected.is_some() && self.selected().map(|row| &row.approval.id) != selected.as_ref() {
            (self.moved_at, self.scroll, self.drawn) = (Some(now), 0, None);
            self.reason = None;
        }
    }

    pub(crate) fn selected(&self) -> Option<&ApprovalRow> {
        self.rows.get(self.at)
    }

    fn row(&mut self, id: &str) -> Option<&mut ApprovalRow> {
        self.rows.iter_mut().find(|row| row.approval.id == id)
    }

    /// Moves by `step` rows. Answered ones that are not selected any more are removed.
    fn step(&mut self, step: isize) {
        let mut selection = Selection { at: self.at, top: 0 };
        selection.step(step, self.rows.len());
        let id = self.rows.get(selection.at).map(|row| row.approval.id.clone());
        self.rows.retain(|row| row.outcome.is_none() || Some(&row.approval.id) == id.as_ref());
        self.at = self.rows.iter().position(|row| Some(&row.approval.id) == id.as_ref()).unwrap_or_default();
        (self.moved_at, self.scroll, self.drawn) = (None, 0, None);
    }
}

impl State {
    /// Opens the approvals; the one of `target` is selected.
    pub(super) fn open_approvals(&mut self, target: Option<&Target>) {
        let mut panel = ApprovalsPanel::default();
        panel.set(&self.approvals, self.now);
        let position = |is_it: &dyn Fn(&Approval) -> bool| panel.rows.iter().position(|row| is_it(&row.approval));
        panel.at = target
            .and_then(|target| {
                position(&|approval| approval.agent == target.agent && approval.conversation == target.conversation)
                    .or_else(|| position(&|approval| approval.agent == target.agent))
            })
            .unwrap_or_default();
        self.push_panel(Panel::Approvals(panel));
    }

    fn approvals_panel(&mut self) -> Option<&mut ApprovalsPanel> {
        self.panels.iter_mut().rev().find_map(|panel| match panel {
            Panel::Approvals(panel) => Some(panel),
            _ => None,
        })
    }

    /// Shows the approvals that have arrived.
    pub(super) fn place_approvals(&mut self) {
        let (approvals, now) = (std::mem::take(&mut self.approvals), self.now);
        if let Some(panel) = self.approvals_panel() {
            panel.set(&approvals, now);
        }
        self.approvals = approvals;
    }

    pub(super) fn on_approval_key(&mut self, key: KeyEvent) {
        let (page, now) = (self.page, self.now);
        let Some(Panel::Approvals(panel)) = self.panels.last_mut() else { return };
        if panel.reason.is_some() {
            return self.on_reason_key(key);
        }
        match key.code {
            KeyCode::Esc | KeyCode::Char('q') => return self.close_panel(),
            KeyCode::PageUp => return panel.scroll = panel.scroll.saturating_sub(page),
            KeyCode::PageDown => return panel.scroll += page,
            _ => {}
        }
        if let Some(step) = step_of(key, page, panel.rows.len()) {
            return panel.step(step);
        }
        let Some(ApprovalRow { approval, outcome }) = panel.selected() else { return };
        let decision = match key.code {
            KeyCode::Char('y') => Decision::Once,
            KeyCode::Char('a') if approval.not_always.is_none() => Decision::Always,
            KeyCode::Char('p') if !approval.patterns.is_empty() => Decision::Pattern,
            KeyCode::Char('s') if approval.turn_allowed => Decision::Turn,
            KeyCode::Char('n') => Decision::Deny,
            _ => return,
        };
        if outcome.is_some() {
            return self.report("already answered; select another one with ↑ ↓", false);
        }
        if panel.drawn.as_ref() != Some(&approval.id) {
            return self.report("not answered: its action was not on the screen", true);
        }
        if panel.moved_at.is_some_and(|at| now.duration_since(at) < READING_TIME) {
            return self.report("not answered: this is another action; read it first", true);
        }
        if decision == Decision::Deny {
            panel.reason = Some(LineEditor::default());
            return;
        }
        let (id, hash) = (approval.id.clone(), approval.hash.clone());
        self.decide(id, hash, decision, None);
    }

    /// Handles a key of the line with the reason of a denial.
    fn on_reason_key(&mut self, key: KeyEvent) {
        let Some(Panel::Approvals(panel)) = self.panels.last_mut() else { return };
        let Some(reason) = &mut panel.reason else { return };
        match key.code {
            KeyCode::Esc => panel.reason = None,
            KeyCode::Enter => {
                let text = reason.take();
                panel.reason = None;
                let reason = Some(text.trim().to_owned()).filter(|text| !text.is_empty());
                let Some(row) = panel.selected() else { return };
                let (id, hash) = (row.approval.id.clone(), row.approval.hash.clone());
                self.decide(id, hash, Decision::Deny, reason);
            }
            _ => _ = reason.on_key(key),
        }
    }

    fn decide(&mut self, id: String, hash: String, decision: Decision, reason: Option<String>) {
        if self.request_action(Request::Decide { id: id.clone(), hash, decision, reason })
            && let Some(row) = self.approvals_panel().and_then(|panel| panel.row(&id))
        {
            row.outcome = Some(if decision == Decision::Deny { "denying …" } else { "approving …" }.into());
        }
    }

    /// Notes that the daemon has taken an answer.
    pub(super) fn decided(&mut self, id: &str, outcome: String) {
        if let Some(row) = self.approvals_panel().and_then(|panel| panel.row(id)) {
            row.outcome = Some(outcome.split([' ', ';']).next().unwrap_or_default().to_owned());
        }
        self.report(outcome, false);
        self.refresh.all_approvals();
    }

    /// Notes that an answer was refused, or that nobody knows if the daemon has it.
    pub(super) fn decision_failed(&mut self, id: &str, failure: &Failure) {
        if let Some(row) = self.approvals_panel().and_then(|panel| panel.row(id)) {
            row.outcome = match failure.kind {
                // It cannot be answered any more.
                Some(ErrorKind::Conflict | ErrorKind::Expired | ErrorKind::NotFound) => {
                    Some("not pending any more".into())
                }
                _ => None,
            };
        }
        let unknown = if failure.kind.is_none() { format!("the answer to {id} may be lost: ") } else { String::new() };
        self.report(format!("{unknown}{}", failure.text()), true);
        self.refresh.all_approvals();
    }
}
