//! Registers a chat with its conversation, so that others see who has it open.

use std::thread;
use std::time::Duration;

use chorus_proto::CallError;
use chorus_proto::methods::Method as _;
use chorus_proto::methods::conversations::{Attach, AttachParams};
use chorus_remote::DaemonAddress;
use serde_json::value::RawValue;

use super::attach;
use crate::app::App;
use crate::error::Error;

/// The wait before a lost line to another machine is tried again.
const RETRY: Duration = Duration::from_secs(5);

/// A chat that is registered until the program ends.
pub(super) struct Presence {
    daemon: DaemonAddress,
    params: AttachParams,
    thread: Option<thread::JoinHandle<()>>,
}

impl Presence {
    /// Registers the chat of `app`.
    pub(super) fn new(app: &App) -> Result<Self, Error> {
        let mut presence = Self { daemon: app.address()?, params: attach::params(app), thread: None };
        presence.ensure_registered();
        Ok(presence)
    }

    /// Registers it again if the daemon went away. A chat works without, so errors are ignored.
    pub(super) fn ensure_registered(&mut self) {
        if self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return;
        }
        let (daemon, params) = (self.daemon.clone(), self.params.clone());
        let register = move || {
            loop {
                if let Ok(mut client) = daemon.connect() {
                    // What is said in the conversation is shown by other means.
                    let _ = client.call_streaming(Attach::NAME, &params, &mut |_: &RawValue| Ok::<(), CallError>(()));
                }
                if daemon.host().is_none() {
                    return;
                }
                thread::sleep(RETRY);
            }
        };
        self.thread = thread::Builder::new().name("presence".into()).spawn(register).ok();
    }
}
