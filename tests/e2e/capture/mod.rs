//! `chorusctl capture`: what other coding agents say is kept as they write it. The oracle is the transcripts.

mod cursor;
mod databases;
mod destroyed_agent;
mod discovered_imports;
mod exports;
mod first_run;
mod forget;
mod growth;
mod kill;
mod live;
mod problems;
mod programs;
mod rules;

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use chorus_proto::Client;
use chorus_proto::Session;
use chorus_proto::methods::agent::{List, ListParams};
use chorus_proto::methods::capture::{SourceStatus, Status, StatusParams};
use chorus_proto::methods::context::{History, HistoryParams};
use chorus_tests::ctl::chorusctl;
use chorus_tests::{DEADLINE, Home, wait_until};
use serde_json::{Value, json};

use crate::home;

/// A conversation in the directory of a coding agent.
struct Transcript {
    path: PathBuf,
    id: String,
    project: String,
    lines: u32,
}

impl Transcript {
    /// The transcript of a Claude Code conversation `name` that was held in `project`, without a line.
    fn claude_code(home: &Home, project: &str, name: &str) -> Self {
        let dir = home.user_home.join(".claude/projects").join(project.replace('/', "-"));
        fs::create_dir_all(&dir).expect("created");
        let id = format!("{name}-0000-4000-8000-000000000000");
        let path = dir.join(format!("{id}.jsonl"));
        File::create(&path).expect("created");
        Self { path, id, project: project.into(), lines: 0 }
    }

    /// The next line, as Claude Code writes it.
    fn next_line(&mut self, text: &str) -> String {
        let n = self.lines;
        self.lines += 1;
        let role = if n.is_multiple_of(2) { "user" } else { "assistant" };
        let uuid = |n: u32| format!("{}-{n}", self.id);
        let line = json!({
            "type": role, "uuid": uuid(n), "parentUuid": n.checked_sub(1).map(uuid), "isSidechain": false,
            "timestamp": format!("2026-01-02T10:{:02}:{:02}.000Z", n / 60 % 60, n % 60), "sessionId": self.id,
            "version": "2.1.332", "cwd": self.project, "gitBranch": "main",
            "message": {"role": role, "id": format!("msg_{n}"), "model": "claude-opus-5-5", "content": text},
        });
        format!("{line}\n")
    }

    /// Appends a line in one write, as Claude Code does.
    fn say(&mut self, text: &str) {
        let line = self.next_line(text);
        append(&self.path, &line);
    }
}

fn append(path: &Path, text: &str) {
    let mut file = OpenOptions::new().append(true).open(path).expect("the transcript");
    file.write_all(text.as_bytes()).expect("written");
}

/// Returns the texts of a transcript's complete lines.
fn texts(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).expect("the transcript");
    let complete = text.rsplit_once('\n').map_or("", |(complete, _)| complete);
    let parse =
        |line: &str| serde_json::from_str::<Value>(line).ok()?["message"]["content"].as_str().map(str::to_owned);
    complete.lines().filter_map(parse).collect()
}

/// Returns the texts of a session's messages.
fn kept(session: &Session) -> Vec<String> {
    let file = fs::read_to_string(&session.file_path).expect("the session file");
    let file: Value = serde_json::from_str(&file).expect("JSON");
    let messages = file["messages"].as_array().expect("messages");
    messages.iter().map(|message| message["content"].as_str().expect("a text").to_owned()).collect()
}

/// Returns the sessions of all captured conversations, the newest first, without those of agents that were destroyed.
fn captured(client: &mut Client) -> Vec<Session> {
    let params = HistoryParams { all_agents: true, limit: Some(100), ..HistoryParams::default() };
    let mut sessions = client.call::<History>(&params).expect("the history").sessions;
    let agents = client.call::<List>(&ListParams::default()).expect("the agents").agents;
    sessions.retain(|session| agents.iter().any(|agent| agent.id == session.header.agent_id));
    sessions
}

/// A conversation with Claude Code that was captured, with these messages.
fn captured_talk(home: &Home, client: &mut Client, said: &[&str]) -> (Transcript, Session) {
    let mut talk = Transcript::claude_code(home, "/home/mara/shop", "aaaaaaaa");
    said.iter().for_each(|text| talk.say(text));
    chorusctl(home, ["capture", "on"]).expect_success();
    let session = wait_until_kept(client, &talk);
    (talk, session)
}

/// Waits until the session of a conversation has what its transcript has.
fn wait_until_kept(client: &mut Client, transcript: &Transcript) -> Session {
    wait_until("the conversation as it was written", DEADLINE, || {
        let sessions = captured(client);
        let is_it = |session: &&Session| {
            session.header.source.as_ref().is_some_and(|source| source.conversation == transcript.id)
        };
        let session = sessions.iter().find(is_it)?;
        // The file is written before the row that is counted.
        let kept = kept(session);
        (kept == texts(&transcript.path) && session.header.message_count == kept.len() as u64).then(|| session.clone())
    })
}

/// Has another conversation written and captured. Everything that was written before has been looked at then.
fn capture_another(home: &Home, client: &mut Client) -> Transcript {
    let mut other = Transcript::claude_code(home, "/home/mara/shop", "bbbbbbbb");
    other.say("another");
    wait_until_kept(client, &other);
    chorusctl(home, ["capture", "on"]).expect_success();
    other
}

fn status_of(client: &mut Client, source: &str) -> SourceStatus {
    let params = StatusParams { sources: vec![source.into()] };
    client.call::<Status>(&params).expect("the status").sources.remove(0)
}
