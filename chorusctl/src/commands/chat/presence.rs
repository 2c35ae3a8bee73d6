//! Registers a chat with its conversation, so that others see who has it open.

use std::thread;

use chorus_proto::methods::Method as _;
use chorus_proto::methods::conversations::{Attach, AttachParams};
use chorus_proto::paths::InstancePaths;
use chorus_proto::{CallError, Client};
use serde_json::value::RawValue;

use super::attach;
use crate::app::App;
use crate::error::Error;

/// A chat that is registered until the program ends.
pub(super) struct Presence {
    paths: InstancePaths,
    params: AttachParams,
    thread: Option<thread::JoinHandle<()>>,
}

impl Presence {
    /// Registers the chat of `app`.
    pub(super) fn new(app: &App) -> Result<Self, Error> {
        let mut presence = Self { paths: app.paths()?.clone(), params: attach::params(app), thread: None };
        presence.ensure_registered();
        Ok(presence)
    }

    /// Registers it again if the daemon went away. A chat works without, so errors are ignored.
    pub(super) fn ensure_registered(&mut self) {
        if self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return;
        }
        let (paths, params) = (self.paths.clone(), self.params.clone());
        let register = move || {
            let Ok(mut client) = Client::connect_to(&paths) else { return };
            // What is said in the conversation is shown by other means.
            let _ = client.call_streaming(Attach::NAME, &params, &mut |_: &RawValue| Ok::<(), CallError>(()));
        };
        self.thread = thread::Builder::new().name("presence".into()).spawn(register).ok();
    }
}
