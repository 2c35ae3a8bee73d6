//! The models that make vectors.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use chorus_clock::Clock;
use chorus_embeddings::TextUse;
use chorus_llm::ModelRef;
use chorus_runtime::spawn_blocking;

use super::choice::EmbeddingChoice;
use super::lazy_model::LazyModel;
use super::provider_client::ProviderClient;

/// Directory of the models, in the directory of vectors.
pub(super) const MODELS_DIR: &str = "models";

/// How long a provider has to answer: a query that somebody waits for, and a batch of passages.
const QUERY_LIMIT: Duration = Duration::from_secs(3);
const PASSAGES_LIMIT: Duration = Duration::from_secs(120);

/// A model that makes vectors of length 1.
#[derive(Debug, Clone)]
pub(super) enum Embedder {
    Local(Arc<LazyModel>),
    Provider { client: ProviderClient, target: ModelRef },
}

impl Embedder {
    /// Opens a model, `dir` being the directory of vectors. Blocks.
    pub(super) fn open(
        choice: &EmbeddingChoice,
        dir: &Path,
        client: &ProviderClient,
        clock: &Clock,
    ) -> Result<Self, String> {
        match choice {
            EmbeddingChoice::Local { id, .. } => {
                let model = LazyModel::load(dir.join(MODELS_DIR).join(id), clock.clone());
                let model = model.map_err(|error| error.to_string())?;
                Ok(Self::Local(Arc::new(model)))
            }
            EmbeddingChoice::Provider { model, .. } => {
                let target = ModelRef::parse(model).ok_or_else(|| format!("{model:?} is not the name of a model"))?;
                Ok(Self::Provider { client: client.clone(), target })
            }
        }
    }

    /// Makes the vector of a query.
    pub(super) async fn embed_query(&self, text: &str) -> Result<Vec<f32>, String> {
        let mut vectors = match self {
            Self::Local(model) => {
                let (model, text) = (model.clone(), text.to_owned());
                let embed = move || model.get()?.embed(&[&text], TextUse::Query);
                let work = move || embed().map_err(|error| error.to_string());
                spawn_blocking(work).await.map_err(|error| error.to_string())??
            }
            Self::Provider { client, target } => client.embed(target, &[text], QUERY_LIMIT).await?,
        };
        vectors.pop().ok_or_else(|| "no vector".to_owned())
    }

    /// Makes the vectors of passages. A model of this process runs on this thread, with its priority.
    pub(super) async fn embed_passages(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, String> {
        match self {
            Self::Local(model) => {
                let vectors = model.get().and_then(|model| model.embed(texts, TextUse::Passage));
                vectors.map_err(|error| error.to_string())
            }
            Self::Provider { client, target } => client.embed(target, texts, PASSAGES_LIMIT).await,
        }
    }

    /// Unloads the model if it was not used for a while, else waits until it can be time for that.
    pub(super) async fn unload_when_idle(&self) {
        match self {
            Self::Local(model) => model.unload_when_idle().await,
            Self::Provider { .. } => std::future::pending().await,
        }
    }

    /// Number of passages that it takes at once.
    pub(super) fn batch(&self) -> usize {
        match self {
            Self::Local(_) => 16,
            Self::Provider { .. } => 64,
        }
    }
}
