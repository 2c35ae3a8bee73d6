//! Several conversations of one agent: each is as an agent's only one was before, and they do not disturb each other.

mod attach;
mod cli;
mod crash;
mod lifecycle;
mod limits;
mod migration;
mod recovery;
mod separate;
mod turns;
mod worktrees;

use chorus_proto::methods::context::{Append, AppendParams, Save, SaveParams};
use chorus_proto::methods::conversations::{Conversation, List, ListParams, New, NewParams};
use chorus_proto::{Client, Session};

/// Creates a conversation of `a`.
fn open(client: &mut Client, name: &str) -> Conversation {
    let params = NewParams { agent: Some("a".into()), name: name.into(), ..Default::default() };
    client.call::<New>(&params).expect("conversations.new").conversation
}

/// Appends a text to a conversation of `a`; `None` names none, as clients of before do.
fn append(client: &mut Client, conversation: Option<&str>, text: &str) -> u64 {
    let params = AppendParams { conversation: conversation.map(str::to_owned), ..appended(text) };
    client.call::<Append>(&params).expect("context.append").messages
}

fn appended(text: &str) -> AppendParams {
    AppendParams { agent: Some("a".into()), text: Some(text.into()), ..Default::default() }
}

fn save(client: &mut Client, conversation: Option<&str>, description: &str) -> Session {
    let params = SaveParams {
        agent: Some("a".into()),
        conversation: conversation.map(str::to_owned),
        description: Some(description.into()),
        ..Default::default()
    };
    client.call::<Save>(&params).expect("context.save").session
}

/// The conversations of `a`, closed ones too if `all`.
fn list(client: &mut Client, all: bool) -> Vec<Conversation> {
    let params = ListParams { agent: Some("a".into()), all, ..Default::default() };
    client.call::<List>(&params).expect("conversations.list").conversations
}

/// The names of the conversations of `a` that have a live context.
fn live(client: &mut Client) -> Vec<String> {
    list(client, true).into_iter().filter(|found| found.context.is_some()).map(|found| found.name).collect()
}

/// The texts of a conversation of `a`.
fn texts(client: &mut Client, conversation: &str) -> Vec<String> {
    use chorus_tests::client_ext::ClientExt as _;
    client.messages_in("a", conversation).into_iter().map(|message| message.content).collect()
}
