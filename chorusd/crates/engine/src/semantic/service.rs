//! The vectors of a home as its users see them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use chorus_base::error::{Error, Result};
use chorus_base::sync::Mutex;
use chorus_clock::Clock;
use chorus_embeddings::{EmbeddingError, install};
use chorus_llm::Models;
use chorus_proto::ErrorKind;
use chorus_proto::methods::search::{EmbeddingModel, EmbeddingSource};
use chorus_runtime::run_blocking;
use chorus_search::{Meaning, QueryVector};
use tokio::sync::Notify;

use super::choice::{Choices, EmbeddingChoice};
use super::embedder::MODELS_DIR;
use super::model_state::{ModelState, OpenModel, State};
use super::provider_client::ProviderClient;
use crate::usage::UsageTracker;

/// Directory of the vectors and models below the home.
const EMBEDDINGS_DIR: &str = "embeddings";

/// A text by which a model is tried.
pub(super) const PROBE: &str = "a first sentence";

/// How long a provider has to answer the first request: it may load the model.
const PROBE_LIMIT: std::time::Duration = std::time::Duration::from_secs(60);

/// Search by meaning.
#[derive(Debug)]
pub struct SemanticService {
    pub(super) client: ProviderClient,
    pub(super) clock: Clock,
    pub(super) state: Arc<ModelState>,
    /// False until a model is chosen, if it cannot be read which one was: then nothing may be deleted.
    pub(super) is_readable: AtomicBool,
    /// Notified when another model is chosen.
    pub(super) chosen: Notify,
    /// One model is chosen at a time.
    pub(super) choosing: tokio::sync::Mutex<()>,
    /// Messages were removed from the index since the worker last looked.
    pub(super) removed: Mutex<bool>,
    /// Number of changes of the index, and how many of them the vectors follow.
    pub(super) changes: AtomicU64,
    pub(super) followed: AtomicU64,
    /// Notified when the index has changed.
    pub(super) index_changed: Notify,
}

impl SemanticService {
    /// Creates the service; nothing is opened before the worker runs.
    #[must_use]
    pub fn new(home: &Path, models: Arc<Models>, usage: Arc<UsageTracker>, clock: Clock) -> Self {
        let dir = home.join(EMBEDDINGS_DIR);
        let (choices, problem) = match Choices::read(&dir) {
            Ok(choices) => (choices, None),
            Err(error) => {
                tracing::warn!(%error, "search by meaning is off");
                (Choices::default(), Some(error.message))
            }
        };
        Self {
            client: ProviderClient::new(models, usage),
            clock,
            is_readable: AtomicBool::new(problem.is_none()),
            state: Arc::new(ModelState::new(dir.clone(), State { choices, problem, ..State::default() })),
            chosen: Notify::new(),
            choosing: tokio::sync::Mutex::new(()),
            removed: Mutex::new(true),
            changes: AtomicU64::new(1),
            followed: AtomicU64::new(0),
            index_changed: Notify::new(),
        }
    }

    pub(super) fn dir(&self) -> &Path {
        self.state.dir()
    }

    /// Tells that the index was committed, and whether messages were removed from it.
    pub fn note_index_change(&self, has_removed: bool) {
        *self.removed.lock() |= has_removed;
        self.changes.fetch_add(1, Ordering::SeqCst);
        self.index_changed.notify_one();
    }

    /// Returns true if a model is chosen.
    #[must_use]
    pub fn is_chosen(&self) -> bool {
        self.state.read().choices.all().next().is_some()
    }

    /// Returns why it cannot be read which model is chosen; `None` if it can.
    #[must_use]
    pub fn choice_problem(&self) -> Option<String> {
        let state = self.state.read();
        state.problem.clone().filter(|_| state.choices.all().next().is_none())
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
        Ok(Arc::new(QueryVector::new(store, vector)))
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
            complete: state.waiting == Some(0)
                && state.choices.next.is_none()
                && self.followed.load(Ordering::SeqCst) == self.changes.load(Ordering::SeqCst),
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
        let models = self.dir().join(MODELS_DIR);
        let name = from.file_name().unwrap_or(from.as_os_str()).to_string_lossy().into_owned();
        let dir = from.clone();
        let installed = run_blocking(move || {
            chorus_base::private_fs::create_private(&models)
                .map_err(|error| Error::io("cannot create embeddings/", &error))?;
            install(&from, &models).map_err(|error| refused(&dir, error))
        })
        .await?;
        let dimensions = installed.model.dimensions();
        self.choose(EmbeddingChoice::Local { id: installed.id, name, dimensions }).await
    }

    /// Makes vectors with a model of a provider.
    ///
    /// # Errors
    /// `model_unavailable` if it gives none.
    pub async fn choose_provider(&self, name: &str) -> Result<()> {
        let _choosing = self.choosing.lock().await;
        let target = self.client.models().resolve(name)?;
        let vectors = self.client.embed(&target, &[PROBE], PROBE_LIMIT).await;
        let dimensions = vectors.map(|vectors| vectors.first().map_or(0, Vec::len)).map_err(|why| {
            Error::new(ErrorKind::ModelUnavailable, format!("{target} makes no vectors: {why}"))
                .hint("name a model for embeddings, for example ollama/nomic-embed-text")
        })?;
        self.choose(EmbeddingChoice::Provider { model: target.to_string(), dimensions }).await
    }

    /// Searches by words only, and removes the model and all vectors.
    ///
    /// # Errors
    /// `storage_failed` if the choice cannot be written.
    pub async fn remove(&self) -> Result<()> {
        let _choosing = self.choosing.lock().await;
        self.change(|_| Choices::default(), |state| *state = State::default()).await
    }

    async fn choose(&self, choice: EmbeddingChoice) -> Result<()> {
        let change = move |choices: &Choices| match choices.current.as_ref() == Some(&choice) {
            true => Choices { next: None, ..choices.clone() },
            false => Choices { next: Some(choice), ..choices.clone() },
        };
        self.change(change, |state| (state.waiting, state.problem) = (None, None)).await
    }

    /// Changes what is chosen, durably, and has the worker look at it.
    async fn change(
        &self,
        change: impl FnOnce(&Choices) -> Choices + Send + 'static,
        update: impl FnOnce(&mut State) + Send + 'static,
    ) -> Result<()> {
        let state = self.state.clone();
        run_blocking(move || state.change(|choices| Some(change(choices)), update)).await?;
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
