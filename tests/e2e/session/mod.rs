//! Sessions: their tree, branches, merges and files; imported, exported, tagged and deleted.

mod branch;
mod compression;
mod delete;
mod diff;
mod expire;
mod export;
mod files;
mod import;
mod merge;
mod purge;
mod selectors;
mod tag;
mod titles;
mod tree;

use chorus_proto::methods::session_branching::{
    Branch, BranchParams, BranchResult, Diff, DiffParams, DiffResult, Tree, TreeParams, TreeResult,
};
use chorus_proto::{CallError, Client, NewMessage, Role, Session};
use chorus_tests::client_ext::ClientExt as _;

/// The whole tree of an agent.
pub fn tree(client: &mut Client, agent: &str) -> TreeResult {
    client.call::<Tree>(&TreeParams { agent: Some(agent.into()), ..Default::default() }).expect("session.tree")
}

pub fn branch(client: &mut Client, of: &str, session: &str, more: BranchParams) -> Result<BranchResult, CallError> {
    client.call::<Branch>(&BranchParams { agent: Some(of.into()), session: session.into(), ..more })
}

pub fn diff(client: &mut Client, a: &Session, b: &Session) -> DiffResult {
    let params =
        DiffParams { agent: Some("a".into()), a: a.short_id.clone(), b: b.short_id.clone(), ..Default::default() };
    client.call::<Diff>(&params).expect("session.diff")
}

/// Adds what a user and an assistant say in turn.
pub fn say(client: &mut Client, texts: &[&str]) {
    let roles = [Role::User, Role::Assistant].into_iter().cycle();
    client.append_all("a", roles.zip(texts).map(|(role, text)| NewMessage::text(role, *text)).collect());
}

/// Two lines that go on from the same two messages, saved: what is said in each.
pub fn parted(client: &mut Client, one: &[&str], other: &[&str]) -> (Session, Session) {
    say(client, &["Shall we keep the rows?", "Let me look."]);
    let base = client.save("a", "the beginning");
    say(client, one);
    let first = client.save("a", "one line");
    branch(client, "a", &base.short_id, BranchParams::default()).expect("branched");
    say(client, other);
    (first, client.save("a", "the other line"))
}
