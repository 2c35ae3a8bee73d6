//! Uploads a transcript in chunks.

use chorus_proto::methods::import::{
    Add, AddParams, Begin, BeginParams, Commit, CommitParams, CommitResult, ImportFormat,
};
use chorus_proto::{CallError, Client};

/// Imports `text` for `agent` in chunks of at most `chunk` bytes, cut between characters.
pub fn import_transcript(
    client: &mut Client,
    agent: &str,
    from: ImportFormat,
    text: &str,
    chunk: usize,
) -> Result<CommitResult, CallError> {
    let begin =
        BeginParams { agent: Some(agent.into()), from, file: Some("transcript".into()), ..BeginParams::default() };
    let import = client.call::<Begin>(&begin)?.import;
    let (mut rest, mut sent) = (text, 0);
    while !rest.is_empty() {
        let cut = (1..=chunk.min(rest.len())).rev().find(|cut| rest.is_char_boundary(*cut));
        let (data, after) = rest.split_at(cut.unwrap_or(rest.len()));
        rest = after;
        sent += data.len() as u64;
        let add = AddParams { import, data: Some(data.into()), data_base64: None };
        assert_eq!(client.call::<Add>(&add)?.received, sent);
    }
    client.call::<Commit>(&CommitParams { import, ..CommitParams::default() })
}
