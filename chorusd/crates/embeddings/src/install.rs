//! Takes over the files of a model.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::error::EmbeddingError;
use crate::local_model::{
    LAYERS_FILE, LENGTH_FILE, LocalModel, MODEL_FILE, POOLING_FILE, PROMPTS_FILE, TOKENIZER_FILE, existing,
};

/// The place of the model in a directory that has it in several forms.
const NESTED_MODEL_FILE: &str = "onnx/model.onnx";

/// Form of the model that is not read, in directories of sentence transformers.
const WEIGHTS_FILE: &str = "model.safetensors";

/// Characters of the hash in the name of the directory.
const ID_CHARS: usize = 16;

/// A model in the directory of models.
#[derive(Debug)]
pub struct InstalledModel {
    /// A hash of its files, the name of its directory.
    pub id: String,
    pub dir: PathBuf,
    /// Size of its files.
    pub bytes: u64,
    pub model: LocalModel,
}

/// Copies a sentence transformer from a directory into one below `models`, named by a hash of the files, and loads it. One that
/// cannot be used leaves nothing behind. Blocks.
///
/// # Errors
/// `Model` or `Output` if it cannot be used, `Io` if it cannot be copied.
pub fn install(from: &Path, models: &Path) -> Result<InstalledModel, EmbeddingError> {
    let model_file = match (existing(from, MODEL_FILE), existing(from, NESTED_MODEL_FILE)) {
        (Ok(path), _) | (Err(_), Ok(path)) => path,
        (Err(_), Err(_)) if from.join(WEIGHTS_FILE).exists() => {
            return Err(EmbeddingError::model(
                WEIGHTS_FILE,
                "this form is not read; export the model to ONNX: optimum-cli export onnx --model DIR NEW_DIR",
            ));
        }
        (Err(error), Err(_)) => return Err(error),
    };
    existing(from, TOKENIZER_FILE)?;
    let mut files =
        vec![(model_file.clone(), MODEL_FILE.to_owned()), (from.join(TOKENIZER_FILE), TOKENIZER_FILE.into())];
    for name in [LENGTH_FILE, POOLING_FILE, LAYERS_FILE, PROMPTS_FILE] {
        files.push((from.join(name), name.to_owned()));
    }
    // Weights beside the model, which large ones have.
    let beside = model_file.with_extension("onnx_data");
    files.push((beside, "model.onnx_data".into()));
    files.retain(|(path, _)| path.is_file());
    fs::create_dir_all(models)?;
    let [new, old] = ["new", "old"].map(|name| models.join(format!(".{name}-{}", std::process::id())));
    for leftover in [&new, &old] {
        let _ = fs::remove_dir_all(leftover);
    }
    let installed = copy(&files, &new).and_then(|(id, bytes)| {
        let model = LocalModel::open(&new)?;
        let dir = models.join(&id);
        // The same files, unless somebody has changed them. They may be in use, so they are there until the new ones are.
        match fs::rename(&dir, &old) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        fs::rename(&new, &dir)?;
        File::open(models)?.sync_all()?;
        let _ = fs::remove_dir_all(&old);
        Ok(InstalledModel { id, dir, bytes, model })
    });
    if installed.is_err() {
        let _ = fs::remove_dir_all(&new);
    }
    installed
}

/// Copies files to their names in a directory. Returns the begin of a hash of all, and their size.
fn copy(files: &[(PathBuf, String)], to: &Path) -> Result<(String, u64), EmbeddingError> {
    let mut hash = Sha256::new();
    let mut bytes = 0;
    for (path, name) in files {
        let target = to.join(name);
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent)?;
        }
        let failed = |error: std::io::Error| EmbeddingError::model(name, error);
        let (mut source, mut copy) = (File::open(path).map_err(failed)?, File::create(&target)?);
        let mut of_file = Sha256::new();
        let mut buffer = vec![0; 1 << 20];
        loop {
            let count = source.read(&mut buffer).map_err(failed)?;
            if count == 0 {
                break;
            }
            of_file.update(&buffer[..count]);
            copy.write_all(&buffer[..count])?;
            bytes += count as u64;
        }
        copy.sync_all()?;
        File::open(target.parent().unwrap_or(to))?.sync_all()?;
        hash.update(name.as_bytes());
        hash.update([0]);
        hash.update(of_file.finalize());
    }
    File::open(to)?.sync_all()?;
    let mut id = String::with_capacity(ID_CHARS);
    for byte in hash.finalize().iter().take(ID_CHARS / 2) {
        let _ = write!(id, "{byte:02x}");
    }
    Ok((id, bytes))
}
