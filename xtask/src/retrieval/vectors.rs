//! The vectors of the messages that are searched, made by a sentence transformer.

use std::path::Path;
use std::sync::Arc;

use chorus_embeddings::{EmbeddingError, LocalModel, TextUse, VectorStore, passages_of};
use chorus_search::{Meaning, QueryVector, SearchIndex, SeenSegments};

use crate::error::{Error, Result};

/// Messages that the model gets at once.
const BATCH: usize = 64;

/// A model, and the vectors of the messages of a sample.
#[derive(Debug)]
pub struct Vectors<'a> {
    model: &'a LocalModel,
    store: Arc<VectorStore>,
}

impl<'a> Vectors<'a> {
    /// Makes the vectors of all messages of an index, in a file in the directory `dir`.
    pub fn make(model: &'a LocalModel, index: &SearchIndex, dir: &Path) -> Result<Self> {
        let store = VectorStore::open(&dir.join("vectors.db"), model.dimensions()).map_err(failed)?;
        store.retain(|_| false).map_err(failed)?;
        let unreadable = |error: chorus_search::SearchError| Error::new(error.to_string());
        let mut rest = index.unembedded(&mut SeenSegments::default(), |_| false).map_err(unreadable)?;
        while !rest.is_empty() {
            let messages = rest.take(BATCH).map_err(unreadable)?;
            let passages: Vec<_> =
                messages.iter().map(|message| (message.key, passages_of(&message.speaker, &message.text))).collect();
            let texts: Vec<&str> = passages.iter().flat_map(|(_, parts)| parts).map(String::as_str).collect();
            let mut vectors = model.embed(&texts, TextUse::Passage).map_err(failed)?.into_iter();
            let all: Vec<_> =
                passages.iter().map(|(key, parts)| (*key, vectors.by_ref().take(parts.len()).collect())).collect();
            store.insert(&all).map_err(failed)?;
        }
        Ok(Self { model, store: Arc::new(store) })
    }

    /// Returns a question as it is seen from the vectors.
    pub fn view(&self, question: &str) -> Result<Arc<dyn Meaning>> {
        let mut vectors = self.model.embed(&[question], TextUse::Query).map_err(failed)?;
        let vector = vectors.pop().ok_or_else(|| Error::new("the model gave no vector"))?;
        Ok(Arc::new(QueryVector::new(self.store.clone(), vector)))
    }
}

fn failed(error: EmbeddingError) -> Error {
    Error::new(error.to_string()).hint("name a directory with model.onnx and tokenizer.json of a sentence transformer")
}

/// Loads the model in a directory.
pub fn load(dir: &Path) -> Result<LocalModel> {
    LocalModel::open(dir).map_err(failed)
}
