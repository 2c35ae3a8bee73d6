//! The models that make vectors.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use chorus_embeddings::{LocalModel, TextUse};
use chorus_llm::ModelRef;
use chorus_runtime::spawn_blocking;

use super::choice::EmbeddingChoice;
use super::provider_client::ProviderClient;

/// Directory of the models, in the directory of vectors.
pub(super) const MODELS_DIR: &str = "models";

/// How long a provider has to answer: a query that somebody waits for, and a batch of passages.
const QUERY_LIMIT: Duration = Duration::from_secs(3);
const PASSAGES_LIMIT: Duration = Duration::from_secs(120);

/// A model that makes vectors of length 1.
#[derive(Debug, Clone)]
pub(super) enum Embedder {
    Local(Arc<LocalModel>),
    Provider { client: ProviderClient, target: ModelRef },
}

impl Embedder {
    /// Opens a model, `dir` being the directory of vectors. Blocks.
    pub(super) fn open(choice: &EmbeddingChoice, dir: &Path, client: &ProviderClient) -> Result<Self, String> {
        match choice {
            EmbeddingChoice::Local { id, .. } => {
                let model = LocalModel::open(&dir.join(MODELS_DIR).join(id)).map_err(|error| error.to_string())?;
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
                let work = move || model.embed(&[&text], TextUse::Query).map_err(|error| error.to_string());
                spawn_blocking(work).await.map_err(|error| error.to_string())??
            }
            Self::Provider { client, target } => client.embed(target, &[text], QUERY_LIMIT).await?,
        };
        vectors.pop().ok_or_else(|| "no vector".to_owned())
    }

    /// Makes the vectors of passages. A model of this process runs on this thread, with its priority.
    pub(super) async fn embed_passages(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, String> {
        match self {
            Self::Local(model) => model.embed(texts, TextUse::Passage).map_err(|error| error.to_string()),
            Self::Provider { client, target } => client.embed(target, texts, PASSAGES_LIMIT).await,
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
