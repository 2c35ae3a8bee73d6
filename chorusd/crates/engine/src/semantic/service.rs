//! The vectors of a home as its users see them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chorus_base::error::{Error, Result};
use chorus_base::sync::{Mutex, RwLock};
use chorus_embeddings::{EmbeddingError, VectorStore, install};
use chorus_llm::Models;
use chorus_proto::ErrorKind;
use chorus_proto::methods::search::{EmbeddingModel, EmbeddingSource};
use chorus_runtime::run_blocking;
use chorus_search::Meaning;
use tokio::sync::Notify;

use super::choice::{Choices, EmbeddingChoice};
use super::embedder::{Embedder, MODELS_DIR, ask};

/// Directory of the vectors and models below the home.
const EMBEDDINGS_DIR: &str = "embeddings";

/// A text by which a model is tried.
pub(super) const PROBE: &str = "a first sentence";

/// How long a provider has to answer the first request: it may load the model.
const PROBE_LIMIT: std::time::Duration = std::time::Duration::from_secs(60);

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

/// Search by meaning.
#[derive(Debug)]
pub struct SemanticService {
    dir: PathBuf,
    pub(super) models: Arc<Models>,
    pub(super) state: RwLock<State>,
    /// False until a model is chosen, if it cannot be read which one was: then nothing may be deleted.
    pub(super) is_readable: AtomicBool,
    /// Notified when another model is chosen.
    pub(super) chosen: Notify,
    /// One model is chosen at a time.
    pub(super) choosing: tokio::sync::Mutex<()>,
    /// Messages were removed from the index since the worker last looked.
    pub(super) removed: Mutex<bool>,
    /// The index has changed since the worker last looked.
    pub(super) is_behind: Mutex<bool>,
    /// Notified when the index has changed.
    pub(super) index_changed: Notify,
}

impl SemanticService {
    /// Creates the service; nothing is opened before the worker runs.
    #[must_use]
    pub fn new(home: &Path, models: Arc<Models>) -> Self {
        let dir = home.join(EMBEDDINGS_DIR);
        let (choices, problem) = match Choices::read(&dir) {
            Ok(choices) => (choices, None),
            Err(error) => {
                tracing::warn!(%error, "search by meaning is off");
                (Choices::default(), Some(error.message))
            }
        };
        Self {
            dir,
            models,
            is_readable: AtomicBool::new(problem.is_none()),
            state: RwLock::new(State { choices, problem, ..State::default() }),
            chosen: Notify::new(),
            choosing: tokio::sync::Mutex::new(()),
            removed: Mutex::new(true),
            is_behind: Mutex::new(true),
            index_changed: Notify::new(),
        }
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Tells that the index was committed, and whether messages were removed from it.
    pub fn note_index_change(&self, has_removed: bool) {
        *self.removed.lock() |= has_removed;
        *self.is_behind.lock() = true;
        self.index_changed.notify_one();
    }

    /// Returns true if a model is chosen.
    #[must_use]
    pub fn is_chosen(&self) -> bool {
        self.state.read().choices.all().next().is_some()
    }

    /// Returns the query as it is seen from the vectors.
    ///
    /// # Errors
    /// Says why it cannot be compared with them now.
    pub async fn view(&self, query: &str) -> std::result::Result<Arc<dyn Meaning>, String> {
        let current = self.state.read().current.clone();
        let Some(OpenModel { embedder, store, .. }) = current else {
            let state = self.state.read();
            return Err(match (&state.problem, state.choices.current.is_some()) {
                (Some(problem), _) => problem.clone(),
                (None, true) => "the model is being loaded".into(),
                (None, false) => "the vectors of the messages are being made".into(),
            });
        };
        let vector = embedder.embed_query(query).await?;
        if vector.len() != store.dimensions() {
            return Err(format!("the model gave {} dimensions instead of {}", vector.len(), store.dimensions()));
        }
        Ok(Arc::new(View { store, vector }))
    }

    /// Returns the state of the model; `None` if none is chosen.
    #[must_use]
    pub fn describe(&self) -> Option<EmbeddingModel> {
        let state = self.state.read();
        let choice = state.choices.next.as_ref().or(state.choices.current.as_ref())?;
        Some(EmbeddingModel {
            name: choice.name().to_owned(),
            source: match choice {
                EmbeddingChoice::Local { .. } => EmbeddingSource::Local,
                EmbeddingChoice::Provider { .. } => EmbeddingSource::Provider,
            },
            dimensions: choice.dimensions() as u64,
            complete: state.waiting == Some(0) && state.choices.next.is_none() && !*self.is_behind.lock(),
            waiting: state.waiting,
            replaces: state
                .choices
                .next
                .as_ref()
                .and(state.choices.current.as_ref())
                .map(|current| current.name().to_owned()),
            problem: state.problem.clone(),
        })
    }

    /// Takes over a sentence transformer from a directory, and makes vectors with it.
    ///
    /// # Errors
    /// `not_found` if the directory has none that can be used; `storage_failed`, `disk_full` if it cannot be copied.
    pub async fn choose_local(&self, from: PathBuf) -> Result<()> {
        let _choosing = self.choosing.lock().await;
        let models = self.dir.join(MODELS_DIR);
        let name = from.file_name().unwrap_or(from.as_os_str()).to_string_lossy().into_owned();
        let dir = from.clone();
        let installed = run_blocking(move || {
            chorus_base::private_fs::create_private(&models)
                .map_err(|error| Error::io("cannot create embeddings/", &error))?;
            install(&from, &models).map_err(|error| refused(&dir, error))
        })
        .await?;
        let dimensions = installed.model.dimensions();
        self.choose(EmbeddingChoice::Local { id: installed.id, name, dimensions })
    }

    /// Makes vectors with a model of a provider.
    ///
    /// # Errors
    /// `model_unavailable` if it gives none.
    pub async fn choose_provider(&self, name: &str) -> Result<()> {
        let _choosing = self.choosing.lock().await;
        let target = self.models.resolve(name)?;
        let vectors = ask(&self.models, &target, &[PROBE], PROBE_LIMIT).await;
        let dimensions = vectors.map(|vectors| vectors.first().map_or(0, Vec::len)).map_err(|why| {
            Error::new(ErrorKind::ModelUnavailable, format!("{target} makes no vectors: {why}"))
                .hint("name a model for embeddings, for example ollama/nomic-embed-text")
        })?;
        self.choose(EmbeddingChoice::Provider { model: target.to_string(), dimensions })
    }

    /// Searches by words only, and removes the model and all vectors.
    ///
    /// # Errors
    /// `storage_failed` if the choice cannot be written.
    pub async fn remove(&self) -> Result<()> {
        let choosing = self.choosing.lock().await;
        {
            // As long as this is held, the worker cannot make the next model the current one.
            let mut state = self.state.write();
            let choices = Choices::default();
            choices.write(&self.dir)?;
            *state = State { choices, ..State::default() };
        }
        self.is_readable.store(true, Ordering::SeqCst);
        drop(choosing);
        self.chosen.notify_one();
        Ok(())
    }

    fn choose(&self, choice: EmbeddingChoice) -> Result<()> {
        let mut state = self.state.write();
        let mut choices = state.choices.clone();
        if choices.current.as_ref() == Some(&choice) {
            choices.next = None;
        } else {
            choices.next = Some(choice);
        }
        choices.write(&self.dir)?;
        (state.choices, state.waiting, state.problem) = (choices, None, None);
        drop(state);
        self.is_readable.store(true, Ordering::SeqCst);
        self.chosen.notify_one();
        Ok(())
    }
}

/// The error for a directory that has no usable model.
fn refused(dir: &Path, error: EmbeddingError) -> Error {
    match error {
        EmbeddingError::Io(error) => Error::io("cannot copy the model", &error),
        error => Error::new(ErrorKind::NotFound, format!("no model in {}: {error}", dir.display()))
            .hint("name a directory with model.onnx and tokenizer.json of a sentence transformer"),
    }
}

/// A query, seen from the vectors.
#[derive(Debug)]
struct View {
    store: Arc<VectorStore>,
    vector: Vec<f32>,
}

impl Meaning for View {
    fn nearest(&self, limit: usize) -> std::result::Result<Vec<(u64, f32)>, String> {
        let found = self.store.nearest(&self.vector, limit).map_err(|error| error.to_string())?;
        Ok(found.into_iter().map(|found| (found.key, found.similarity)).collect())
    }

    fn similarities(&self, keys: &[u64]) -> std::result::Result<Vec<Option<f32>>, String> {
        self.store.similarities(&self.vector, keys).map_err(|error| error.to_string())
    }
}
