//! Finds the messages where conversations leave the one that they continue.

use std::collections::HashMap;
use std::fmt;

use chorus_proto::methods::session_branching::{Diff, DiffParams, TreeSession};
use uuid::Uuid;

use crate::app::App;

/// Maximum number of comparisons. Each reads two sessions up to where they diverge.
const MAX_COMPARISONS: usize = 100;

/// Where a conversation leaves its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BranchPoint {
    /// Number of messages that both have.
    common: u64,
    /// Number of messages of the parent.
    of: u64,
}

impl fmt::Display for BranchPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.common {
            0 => f.write_str("from its summary"),
            common => write!(f, "from message {common} of {}", self.of),
        }
    }
}

/// Compares sessions with their parents: those of several branches first. A session that continues at the end of its
/// parent has no branch point.
pub(super) fn find_branch_points(app: &mut App, sessions: &[TreeSession]) -> HashMap<Uuid, BranchPoint> {
    let by_id: HashMap<Uuid, &TreeSession> = sessions.iter().map(|session| (session.id, session)).collect();
    let mut children: HashMap<Uuid, usize> = HashMap::new();
    for parent in sessions.iter().filter_map(|session| session.hangs_from) {
        *children.entry(parent).or_default() += 1;
    }
    // A session that hangs from another one than its parent is a later save of the same conversation.
    let mut pairs: Vec<(&TreeSession, &TreeSession)> = sessions
        .iter()
        .filter(|session| session.corrupt.is_none() && session.hangs_from == session.parent_id)
        .filter_map(|session| Some((*by_id.get(&session.hangs_from?)?, session)))
        .filter(|(parent, session)| children.get(&parent.id) > Some(&1) || session.message_count < parent.message_count)
        .collect();
    pairs.sort_by_key(|(parent, _)| children.get(&parent.id).is_none_or(|count| *count < 2));
    let mut points = HashMap::new();
    for (parent, session) in pairs.into_iter().take(MAX_COMPARISONS) {
        let (a, b) = (parent.id.to_string(), session.id.to_string());
        let params = DiffParams { agent: app.agent(), a, b, offset: None, limit: Some(0), ..DiffParams::default() };
        // The tree is of use without it, for example if a file is missing.
        let Ok(found) = app.call::<Diff>(&params) else { continue };
        if found.common < parent.message_count {
            points.insert(session.id, BranchPoint { common: found.common, of: parent.message_count });
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_point_is_a_number_or_the_summary() {
        assert_eq!(BranchPoint { common: 4, of: 19 }.to_string(), "from message 4 of 19");
        assert_eq!(BranchPoint { common: 0, of: 19 }.to_string(), "from its summary");
    }
}
