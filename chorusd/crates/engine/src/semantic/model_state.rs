//! The models that are chosen, and what is known of their vectors.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use chorus_base::error::Result;
use chorus_base::sync::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use chorus_embeddings::VectorStore;

use super::choice::{Choices, EmbeddingChoice};
use super::embedder::Embedder;

/// A model, opened, with its vectors.
#[derive(Debug, Clone)]
pub(super) struct OpenModel {
    pub(super) choice: EmbeddingChoice,
    pub(super) embedder: Embedder,
    pub(super) store: Arc<VectorStore>,
}

/// The state of the models.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) choices: Choices,
    /// Whose vectors are used; none until it is opened.
    pub(super) current: Option<OpenModel>,
    /// Messages that have no vector yet, of the model for which vectors are made; `None` until that is known.
    pub(super) waiting: Option<u64>,
    /// Why no vectors are made now.
    pub(super) problem: Option<String>,
}

/// The state, and the file that notes the choice.
#[derive(Debug)]
pub(super) struct ModelState {
    /// Directory of the vectors, models and the choice.
    dir: PathBuf,
    state: RwLock<State>,
    /// Held while the file is written, so that nobody waits for the disk who only reads the state.
    writing: Mutex<()>,
}

impl ModelState {
    pub(super) fn new(dir: PathBuf, state: State) -> Self {
        Self { dir, state: RwLock::new(state), writing: Mutex::default() }
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(super) fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read()
    }

    /// Returns the state to be changed, except for the choices.
    pub(super) fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write()
    }

    /// Notes other choices durably, unless `change` returns none, then takes them over and updates the rest of the state with
    /// them. Blocks.
    ///
    /// # Errors
    /// The choice cannot be written; nothing is changed then.
    pub(super) fn change(
        &self,
        change: impl FnOnce(&Choices) -> Option<Choices>,
        update: impl FnOnce(&mut State),
    ) -> Result<()> {
        let _writing = self.writing.lock();
        let choices = self.read().choices.clone();
        let Some(choices) = change(&choices) else { return Ok(()) };
        choices.write(&self.dir)?;
        let mut state = self.write();
        update(&mut state);
        state.choices = choices;
        Ok(())
    }
}
