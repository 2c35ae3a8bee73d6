//! A model of this process, in memory only as long as it is used.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use chorus_base::Ticks;
use chorus_base::sync::Mutex;
use chorus_clock::Clock;
use chorus_embeddings::{EmbeddingError, LocalModel};

use crate::lifecycle::malloc_trim::trim_heap;

/// How long a model stays in memory after its last use.
const KEEP_FOR: Duration = Duration::from_secs(10 * 60);

/// A model that is loaded when it is needed.
pub(super) struct LazyModel {
    dir: PathBuf,
    clock: Clock,
    loaded: Mutex<Option<Loaded>>,
}

struct Loaded {
    model: Arc<LocalModel>,
    used_at: Ticks,
}

impl std::fmt::Debug for LazyModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LazyModel").field("dir", &self.dir).finish_non_exhaustive()
    }
}

impl LazyModel {
    /// Loads the model in a directory, so that one that cannot be used is known at once. Blocks.
    pub(super) fn load(dir: PathBuf, clock: Clock) -> Result<Self, EmbeddingError> {
        let model = Self { dir, clock, loaded: Mutex::new(None) };
        model.get()?;
        Ok(model)
    }

    /// Returns the model, and notes its use. Blocks if it has to be loaded.
    pub(super) fn get(&self) -> Result<Arc<LocalModel>, EmbeddingError> {
        let mut loaded = self.loaded.lock();
        let model = match &*loaded {
            Some(loaded) => loaded.model.clone(),
            None => Arc::new(LocalModel::open(&self.dir)?),
        };
        *loaded = Some(Loaded { model: model.clone(), used_at: self.clock.ticks() });
        Ok(model)
    }

    /// Unloads the model if it was not used for a while, else waits until it can be time for that.
    pub(super) async fn unload_when_idle(&self) {
        let look_at = {
            let mut loaded = self.loaded.lock();
            let now = self.clock.ticks();
            let used_at = loaded.as_ref().map_or(now, |loaded| loaded.used_at);
            if now.since(used_at) < KEEP_FOR {
                used_at.after(KEEP_FOR)
            } else {
                *loaded = None;
                trim_heap();
                now.after(KEEP_FOR)
            }
        };
        self.clock.sleep_until(look_at).await;
    }
}
