//! Questions to people: may this one action be done?

use std::sync::Arc;
use std::time::Duration;

use chorus_proto::methods::permissions::Verdict;
use chorus_proto::methods::send::Said;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::clock::Clock;
use crate::failure::Result;
use crate::store::Store;
use crate::who::Requester;

/// What is asked.
#[derive(Debug, Clone)]
pub struct Question {
    pub agent: Uuid,
    pub agent_name: String,
    pub turn: Uuid,
    /// The model's id of the call.
    pub call: String,
    /// The whole action, exactly as it is carried out.
    pub action: String,
    pub verdict: Verdict,
    /// Who asked for the turn; who may answer depends on it.
    pub requester: Requester,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    Approved {
        by: Requester,
        /// This action is in the agent's profile from now on.
        always: bool,
    },
    Denied {
        /// `None`: nobody; it expired, or the turn ended.
        by: Option<Requester>,
        /// To be read by the model.
        why: String,
    },
}

/// The questions that are open.
#[derive(Debug)]
pub struct Approvals {
    #[expect(dead_code, reason = "skeleton")]
    store: Arc<Store>,
    #[expect(dead_code, reason = "skeleton")]
    clock: Clock,
    #[expect(dead_code, reason = "skeleton")]
    timeout: Duration,
}

impl Approvals {
    #[must_use]
    pub fn new(store: Arc<Store>, clock: Clock, timeout: Duration) -> Self {
        Self { store, clock, timeout }
    }

    /// Asks, and waits for the answer, for the time-out, or for the turn to end. Whoever listens to the turn is told
    /// through `say`.
    ///
    /// # Errors
    /// A question that cannot be noted: nobody is asked then.
    pub async fn ask(
        &self,
        question: Question,
        say: &(dyn Fn(Said) + Send + Sync),
        cancel: &CancellationToken,
    ) -> Result<Answer> {
        let _ = (question, say, cancel);
        Ok(Answer::Denied { by: None, why: "nobody can be asked".into() })
    }
}
