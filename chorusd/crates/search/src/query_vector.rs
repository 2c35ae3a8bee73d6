//! A query as a vector, compared with those of messages.

use std::sync::Arc;

use chorus_embeddings::VectorStore;

use crate::query::Meaning;

/// The vector of a query, and the messages that it is compared with.
#[derive(Debug)]
pub struct QueryVector {
    store: Arc<VectorStore>,
    vector: Vec<f32>,
}

impl QueryVector {
    /// `vector` has length 1 and is made by the model that made those in the store.
    #[must_use]
    pub fn new(store: Arc<VectorStore>, vector: Vec<f32>) -> Self {
        Self { store, vector }
    }
}

impl Meaning for QueryVector {
    fn nearest(&self, limit: usize) -> Result<Vec<(u64, f32)>, String> {
        let found = self.store.nearest(&self.vector, limit).map_err(|error| error.to_string())?;
        Ok(found.into_iter().map(|found| (found.key, found.similarity)).collect())
    }

    fn similarities(&self, keys: &[u64]) -> Result<Vec<Option<f32>>, String> {
        self.store.similarities(&self.vector, keys).map_err(|error| error.to_string())
    }
}
