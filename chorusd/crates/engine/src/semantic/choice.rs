//! The models that make vectors, as they are noted in the home.

use std::fs;
use std::io;
use std::path::Path;

use chorus_base::error::{Error, Result};
use chorus_base::private_fs;
use chorus_proto::ErrorKind;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The file with the choice, in the directory of vectors.
const CHOICE_FILE: &str = "model.json";

/// A model that makes vectors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EmbeddingChoice {
    /// Files below `embeddings/models/`, in the directory `id`. `name` is that of the directory they came from.
    Local { id: String, name: String, dimensions: usize },
    /// A model of a provider: `provider/model`.
    Provider { model: String, dimensions: usize },
}

impl EmbeddingChoice {
    /// Name for people.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Local { name, .. } => name,
            Self::Provider { model, .. } => model,
        }
    }

    #[must_use]
    pub fn dimensions(&self) -> usize {
        match self {
            Self::Local { dimensions, .. } | Self::Provider { dimensions, .. } => *dimensions,
        }
    }

    /// Name of the file with its vectors.
    pub(super) fn vectors_file(&self) -> String {
        match self {
            Self::Local { id, .. } => format!("vectors-{id}.db"),
            Self::Provider { model, dimensions } => {
                let hash = Sha256::digest(format!("{model}\n{dimensions}"));
                let hex: String = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
                format!("vectors-{hex}.db")
            }
        }
    }
}

/// The models of a home.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Choices {
    /// Its vectors are used.
    #[serde(default)]
    pub(super) current: Option<EmbeddingChoice>,
    /// Its vectors are made, and used once they are complete.
    #[serde(default)]
    pub(super) next: Option<EmbeddingChoice>,
}

impl Choices {
    /// Reads the choice in the directory `dir`; none if there is none.
    pub(super) fn read(dir: &Path) -> Result<Self> {
        match fs::read(dir.join(CHOICE_FILE)) {
            Ok(text) => serde_json::from_slice(&text).map_err(|error| {
                Error::new(ErrorKind::StorageFailed, format!("cannot read embeddings/{CHOICE_FILE}: {error}"))
                    .hint("choose the model again: chorusctl search model --from DIR")
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(Error::io(format!("cannot read embeddings/{CHOICE_FILE}"), &error)),
        }
    }

    /// Writes the choice; durable when it returns.
    pub(super) fn write(&self, dir: &Path) -> Result<()> {
        let text = serde_json::to_vec_pretty(self).map_err(|error| Error::internal(error.to_string()))?;
        private_fs::create_private(dir)
            .and_then(|()| private_fs::write_private(&dir.join(CHOICE_FILE), &text))
            .map_err(|error| Error::io(format!("cannot write embeddings/{CHOICE_FILE}"), &error))
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &EmbeddingChoice> {
        self.current.iter().chain(&self.next)
    }
}
