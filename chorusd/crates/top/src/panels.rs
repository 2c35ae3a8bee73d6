//! Panels in place of the list: a conversation, a history, a tree, a search, approvals, the help, a question.

use std::collections::HashMap;

use chorus_proto::Session;
use chorus_proto::methods::search::{SearchHit, SearchResult};
use chorus_proto::methods::session_branching::{TreeGap, TreeResult};
use chorus_terminal_text::session_tree::{RowKind, layout};
use uuid::Uuid;

use crate::conversation::Conversation;
use crate::fleet::Target;
use crate::line_editor::LineEditor;
use crate::requests::Request;
use crate::state::ApprovalsPanel;

/// A panel. Several lie on each other; the last one is shown.
#[derive(Debug)]
pub(crate) enum Panel {
    Conversation(Box<Conversation>),
    History(History),
    Tree(Tree),
    Search(Search),
    Approvals(ApprovalsPanel),
    /// The help, with its first visible line.
    Help(usize),
    Confirm(Confirm),
}

/// A selection in a list, and what of it is visible.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Selection {
    pub(crate) at: usize,
    pub(crate) top: usize,
}

impl Selection {
    /// Moves by `step` rows in a list of `length`.
    pub(crate) fn step(&mut self, step: isize, length: usize) {
        self.at = self.at.saturating_add_signed(step).min(length.saturating_sub(1));
    }

    /// Scrolls as far as needed to show the selected row in `height` rows. Returns the first visible row.
    pub(crate) fn scroll(&mut self, height: usize, length: usize) -> usize {
        self.at = self.at.min(length.saturating_sub(1));
        self.top = self.top.min(self.at).max((self.at + 1).saturating_sub(height)).min(length.saturating_sub(height));
        self.top
    }
}

/// The saved conversations of an agent.
#[derive(Debug)]
pub(crate) struct History {
    pub(crate) target: Target,
    /// `None` until they arrive.
    pub(crate) sessions: Option<Vec<Session>>,
    /// Why they did not arrive.
    pub(crate) failure: Option<String>,
    pub(crate) total: u64,
    pub(crate) selection: Selection,
}

/// A row of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TreeLine {
    /// Lines and mark before the text.
    pub(crate) prefix: String,
    pub(crate) kind: TreeLineKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TreeLineKind {
    /// A session, by its place in the result.
    Session(usize),
    Live,
    Gap(String),
}

/// The saved conversations of an agent as a tree.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) target: Target,
    pub(crate) result: Option<TreeResult>,
    /// Why it did not arrive.
    pub(crate) failure: Option<String>,
    pub(crate) lines: Vec<TreeLine>,
    pub(crate) selection: Selection,
}

impl Tree {
    pub(crate) fn set(&mut self, mut result: TreeResult) {
        // Those on further pages would hang from nothing.
        let nodes: Vec<_> = result.sessions.iter().map(|session| (session.id, session.hangs_from)).collect();
        let gaps: Vec<Uuid> = result.gaps.iter().map(|gap| gap.id).collect();
        let named: HashMap<Uuid, TreeGap> = result.gaps.drain(..).map(|gap| (gap.id, gap)).collect();
        let leaf = result.live.as_ref().map(|live| live.hangs_from);
        self.lines = layout(&nodes, &gaps, leaf)
            .iter()
            .map(|row| TreeLine {
                prefix: row.prefix(true),
                kind: match row.kind {
                    RowKind::Node(at) => TreeLineKind::Session(at),
                    RowKind::Live => TreeLineKind::Live,
                    RowKind::MissingParent(id) => TreeLineKind::Gap(describe_gap(id, named.get(&id))),
                },
            })
            .collect();
        // The newest work is at the end.
        self.selection.at = self.lines.len().saturating_sub(1);
        self.result = Some(result);
    }
}

fn describe_gap(id: Uuid, gap: Option<&TreeGap>) -> String {
    match gap.and_then(|gap| gap.agent_name.as_deref().zip(gap.session_id.as_deref())) {
        Some((agent, session)) => format!("{session} of {agent}"),
        None => format!("{id} (deleted)"),
    }
}

/// A search as one types.
#[derive(Debug, Default)]
pub(crate) struct Search {
    pub(crate) editor: LineEditor,
    /// The query that was requested last.
    pub(crate) query: String,
    /// The number of the request that is not answered yet.
    pub(crate) requested: Option<u64>,
    /// The query that the result belongs to.
    pub(crate) answered_query: String,
    /// Agents whose names contain the query.
    pub(crate) agents: Vec<String>,
    pub(crate) result: Option<SearchResult>,
    pub(crate) error: Option<String>,
    pub(crate) selection: Selection,
}

/// The results of a search.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SearchRow<'a> {
    Agent(&'a str),
    Message(&'a SearchHit),
}

impl Search {
    /// Returns true if the result belongs to what is typed.
    pub(crate) fn is_current(&self) -> bool {
        self.answered_query == self.editor.text().trim()
    }

    /// Returns true if more may be found, because the index was not complete.
    pub(crate) fn is_partial(&self) -> bool {
        self.result.as_ref().is_some_and(|result| result.index.percent_indexed().is_some())
    }

    pub(crate) fn len(&self) -> usize {
        self.agents.len() + self.result.as_ref().map_or(0, |result| result.hits.len())
    }

    pub(crate) fn row(&self, at: usize) -> Option<SearchRow<'_>> {
        match self.agents.get(at) {
            Some(name) => Some(SearchRow::Agent(name)),
            None => self.result.as_ref()?.hits.get(at - self.agents.len()).map(SearchRow::Message),
        }
    }
}

/// A question before something is done.
#[derive(Debug)]
pub(crate) struct Confirm {
    pub(crate) question: Vec<String>,
    pub(crate) request: Request,
}
