//! The verbs that are struck: how each is asked for, and what may be there afterwards.

use std::process::Command;

use chorus_proto::methods::context::{
    Append, AppendParams, Clear, ClearParams, Restore, RestoreParams, Save, SaveParams,
};
use chorus_proto::methods::continuation::{Compact, CompactParams, Resume, ResumeParams};
use chorus_proto::methods::session_branching::{Branch, BranchParams, Merge, MergeParams};
use chorus_proto::{CallError, Client, NewMessage, Role};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::process::signal;
use chorus_tests::{Daemon, Home};
use rustix::process::Signal;

use super::home;
use super::state::{GENERATED, State};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Append,
    /// So much at once that the write-ahead log is carried over into the database.
    LargeAppend,
    Save,
    SaveAndClear,
    Clear,
    Restore,
    Resume,
    Compact,
    Branch,
    Merge,
    Shutdown,
}

/// A stopped home: agent `a` has a session and unsaved messages after it, agent `b` only what is saved.
pub fn prepared() -> (Home, State, State) {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    for agent in ["a", "b"] {
        client.init(agent);
        client.append(agent, "first");
        client.append(agent, &format!("second {}", "x".repeat(3000)));
        client.save(agent, "the first save");
    }
    client.append("a", "third, unsaved");
    let states = ["a", "b"].map(|agent| State::of(&mut client, agent));
    daemon.kill9();
    // Let recovery and the write-ahead logs settle, so that every copy starts alike; a stop would save.
    let daemon = Daemon::start(&home);
    daemon.kill9();
    let [a, b] = states;
    (home, a, b)
}

/// A copy of a stopped home, times of change included.
pub fn copy(of: &Home) -> Home {
    let copy = home();
    let done = Command::new("cp").arg("-a").arg(&of.path).arg(&copy.path).status().expect("cp");
    assert!(done.success(), "{done}");
    copy
}

impl Verb {
    /// Asks for it; whether it was acknowledged.
    pub fn ask(self, daemon: &mut Daemon, client: &mut Client) -> bool {
        let agent = Some("a".to_owned());
        let answer = match self {
            Self::Append | Self::LargeAppend => {
                let messages = self.texts().into_iter().map(|text| NewMessage::text(Role::User, text)).collect();
                client.call::<Append>(&AppendParams { agent, messages, ..Default::default() }).map(drop)
            }
            Self::Save | Self::SaveAndClear => {
                let clear = self == Self::SaveAndClear;
                client.call::<Save>(&SaveParams { agent, clear, ..Default::default() }).map(drop)
            }
            Self::Clear => client.call::<Clear>(&ClearParams { conversation: None, agent, save: false }).map(drop),
            Self::Restore => {
                let params = RestoreParams { agent, session: "latest".into(), discard: false, ..Default::default() };
                client.call::<Restore>(&params).map(drop)
            }
            Self::Resume => client
                .call::<Resume>(&ResumeParams {
                    as_conversation: None,
                    conversation: None,
                    agent,
                    session: "latest".into(),
                })
                .map(drop),
            Self::Compact => {
                client.call::<Compact>(&CompactParams { conversation: None, agent, undo: false }).map(drop)
            }
            Self::Branch => {
                let params = BranchParams { agent, session: "latest".into(), ..Default::default() };
                client.call::<Branch>(&params).map(drop)
            }
            Self::Merge => {
                let saved = client.call::<Save>(&SaveParams { agent: agent.clone(), ..Default::default() });
                let (a, b) = ("latest".into(), "latest~1".into());
                saved
                    .and_then(|_| {
                        client.call::<Merge>(&MergeParams {
                            as_conversation: None,
                            conversation: None,
                            agent,
                            a,
                            b,
                            own: false,
                        })
                    })
                    .map(drop)
            }
            Self::Shutdown => {
                signal(daemon.pid, Signal::TERM);
                return daemon.wait().success();
            }
        };
        match answer {
            Ok(()) => true,
            Err(CallError::Io(_) | CallError::Rpc(_)) => false,
            Err(other) => panic!("{self:?}: {other}"),
        }
    }

    fn texts(self) -> Vec<String> {
        let size = if self == Self::LargeAppend { 1_500_000 } else { 5000 };
        (0..3).map(|n| format!("new {n} {}", "y".repeat(size))).collect()
    }

    /// What may be there: before it, as it went on, and last what must be there once it was acknowledged.
    pub fn states(self, before: &State) -> Vec<State> {
        let mut states = vec![before.clone()];
        let live = |live: Vec<String>, of: &State| State { live, saved: of.saved.clone() };
        match self {
            Self::Append | Self::LargeAppend => {
                states.push(live([before.live.clone(), self.texts()].concat(), before));
            }
            Self::Save | Self::Shutdown => states.push(before.with_save()),
            Self::SaveAndClear => {
                let saved = before.with_save();
                states.extend([saved.clone(), live(Vec::new(), &saved)]);
            }
            Self::Clear => states.push(live(Vec::new(), before)),
            Self::Restore | Self::Branch => {
                let saved = before.with_save();
                states.extend([saved.clone(), live(before.saved[0].clone(), &saved)]);
            }
            Self::Merge => {
                let saved = before.with_save();
                let account = GENERATED.to_owned();
                states.extend([saved.clone(), live([before.saved[0].clone(), vec![account]].concat(), &saved)]);
            }
            Self::Resume | Self::Compact => {
                let saved = before.with_save();
                states.extend([saved.clone(), live(vec![GENERATED.to_owned()], &saved)]);
            }
        }
        states
    }
}
