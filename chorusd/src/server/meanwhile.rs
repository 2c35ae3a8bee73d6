//! What goes to a client while its request is carried out.

use std::sync::Arc;

use chorus_proto::methods::send::{self, Said};
use chorus_proto::rpc::Progress;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use super::line::Line;
use super::reply::{self, Frame};
use crate::agent::voice::Ear;
use crate::ops::session::import::OnProgress;

/// Passes what is said in a turn on to request `id`.
#[derive(Debug)]
struct Telling {
    id: u64,
    line: Arc<Line>,
}

impl Telling {
    fn frame(&self, said: Said) -> Frame {
        reply::notification("progress", send::Progress { id: self.id, said })
    }
}

impl Ear for Telling {
    fn now(&self, said: &Said) -> bool {
        self.line.offer(|| self.frame(said.clone()))
    }

    fn later(&self, said: Said) {
        self.line.queue(self.frame(said));
    }
}

/// Who hears what is said in the turn of request `id`, where it asks for that; only number ids can be named.
pub fn ear(id: Option<&RawValue>, params: Option<&RawValue>, line: Arc<Line>) -> Option<Arc<dyn Ear>> {
    #[derive(serde::Deserialize)]
    struct Carried {
        #[serde(default)]
        stream: bool,
    }
    let id: u64 = id.and_then(|id| id.get().parse().ok())?;
    let carried: Carried = serde_json::from_str(params?.get()).ok()?;
    carried.stream.then(|| -> Arc<dyn Ear> { Arc::new(Telling { id, line }) })
}

/// Sends `progress` notifications for request `id`; only number ids can be named in them.
pub fn on_progress(id: Option<&RawValue>, notify: mpsc::Sender<Frame>) -> OnProgress {
    let id: Option<u64> = id.and_then(|id| id.get().parse().ok());
    let mut told = 0;
    Box::new(move |done, total| {
        // Every hundredth is enough for a bar.
        if let Some(id) = id
            && done.saturating_sub(told) * 100 >= total
        {
            told = done;
            let progress = Progress { id, done, total, unit: "bytes".into() };
            let _ = notify.try_send(reply::notification("progress", progress));
        }
    })
}
