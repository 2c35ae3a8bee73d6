//! How many commands run at once: one more waits, in the order in which they come.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Lets so many through at once.
#[derive(Debug)]
pub struct Gate {
    most_of_one: usize,
    all: Arc<Semaphore>,
    /// Of each workspace, which is an agent's own; those that nobody has passed or waits for are forgotten.
    own: Mutex<HashMap<PathBuf, Weak<Semaphore>>>,
}

/// Whoever has it is through. Dropping it lets the next one in.
#[derive(Debug)]
pub struct Pass {
    _own: Option<OwnedSemaphorePermit>,
    _of_all: Option<OwnedSemaphorePermit>,
}

impl Gate {
    #[must_use]
    pub fn new(most_of_one: usize, most: usize) -> Self {
        Self { most_of_one, all: Arc::new(Semaphore::new(most)), own: Mutex::default() }
    }

    /// Waits until one more may run in `workspace`: an agent with many commands waits for its own, and keeps nobody else.
    pub async fn pass(&self, workspace: &Path) -> Pass {
        let own = {
            let mut known = self.own.lock().unwrap_or_else(PoisonError::into_inner);
            known.retain(|_, own| own.strong_count() > 0);
            known.get(workspace).and_then(Weak::upgrade).unwrap_or_else(|| {
                let own = Arc::new(Semaphore::new(self.most_of_one));
                known.insert(workspace.to_owned(), Arc::downgrade(&own));
                own
            })
        };
        // Neither is ever closed.
        let own = own.acquire_owned().await.ok();
        Pass { _own: own, _of_all: self.all.clone().acquire_owned().await.ok() }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn an_agent_waits_for_its_own_and_all_for_all() {
        let gate = Gate::new(2, 3);
        let now = |workspace: &str| gate.pass(Path::new(workspace)).now_or_never();
        let (first, _second) = (now("a").expect("one"), now("a").expect("two"));
        assert!(now("a").is_none(), "two of one agent run");
        let third = now("b").expect("another agent's");
        assert!(now("c").is_none(), "three of all run");
        drop(first);
        let fourth = now("a").expect("one of it has ended");
        drop((third, fourth));
        assert!(now("b").is_some());
        assert_eq!(gate.own.lock().unwrap().len(), 2, "whoever runs nothing is forgotten");
    }

    #[tokio::test]
    async fn who_waits_for_its_own_keeps_nobody_else() {
        let gate = Gate::new(1, 2);
        let _runs = gate.pass(Path::new("a")).await;
        let mut waits = Box::pin(gate.pass(Path::new("a")));
        assert!(waits.as_mut().now_or_never().is_none());
        assert!(gate.pass(Path::new("b")).now_or_never().is_some());
    }
}
