//! The thread that makes vectors.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use chorus_embeddings::{VectorStore, passages_of};
use chorus_search::SeenSegments;
use tokio_util::sync::CancellationToken;

use super::choice::{Choices, EmbeddingChoice};
use super::embedder::{Embedder, MODELS_DIR};
use super::model_state::{OpenModel, State};
use super::service::{PROBE, SemanticService};
use crate::background_thread::run_at_low_priority;
use crate::search::{SearchService, Timer};

/// How long changes of the index are collected.
const COLLECT_FOR: Duration = Duration::from_millis(200);

/// When it is looked again whether the index is complete, so that vectors of messages that are gone can be removed.
const REMOVE_AFTER: Duration = Duration::from_secs(1);

/// When a model that failed is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(60);

/// Niceness of the thread, and of those that a model starts from it.
const NICE: i32 = 19;

/// Makes vectors until `stop`. Returns when its thread has ended.
pub async fn run(service: Arc<SemanticService>, search: Arc<SearchService>, stop: CancellationToken) {
    if !search.is_enabled() {
        // As the index itself: what was said is in no other file than those of the conversations.
        let dir = service.dir().to_owned();
        let _ = chorus_runtime::spawn_blocking(move || delete_vectors(&dir, |_| false)).await;
        return;
    }
    let work = || async move {
        let (seen, refused) = (SeenSegments::default(), HashSet::new());
        Worker { service, search, stop, seen, refused }.run().await;
    };
    run_at_low_priority("embeddings", NICE, work).await;
}

/// Deletes the files with vectors in a directory, except for those whose name is used.
fn delete_vectors(dir: &Path, is_used: impl Fn(&str) -> bool) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with("vectors-") && !is_used(&name) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Makes the vectors of texts; `None` for those that the model refuses, though it takes others.
async fn embed_each(embedder: &Embedder, texts: &[&str]) -> Result<Vec<Option<Vec<f32>>>, String> {
    let failure = match embedder.embed_passages(texts).await {
        Ok(vectors) => return Ok(vectors.into_iter().map(Some).collect()),
        Err(failure) => failure,
    };
    // If it takes another text, this failure is about one of these.
    embedder.embed_passages(&[PROBE]).await.map_err(|_| failure)?;
    let mut vectors = Vec::with_capacity(texts.len());
    for text in texts {
        match embedder.embed_passages(&[text]).await {
            Ok(vector) => vectors.extend(vector.into_iter().map(Some)),
            Err(why) => {
                tracing::warn!(why, "a passage has no vector");
                vectors.push(None);
            }
        }
    }
    Ok(vectors)
}

struct Worker {
    service: Arc<SemanticService>,
    search: Arc<SearchService>,
    stop: CancellationToken,
    /// The parts of the index whose messages have vectors.
    seen: SeenSegments,
    /// Messages of which the model refuses every passage: they are not asked for again when parts of the index become one.
    refused: HashSet<u64>,
}

impl Worker {
    async fn run(&mut self) {
        while !self.stop.is_cancelled() {
            let Some(model) = self.open().await else { continue };
            if let Err(problem) = self.follow(&model).await {
                self.fail(&model.choice, problem).await;
            }
        }
    }

    /// Opens the models that are chosen, and returns the one for which vectors are made. Waits for one to be chosen. `None` if that
    /// should be tried again.
    async fn open(&mut self) -> Option<OpenModel> {
        self.remove_unused().await;
        let choices = self.service.state.read().choices.clone();
        if let Some(current) = &choices.current
            && self.service.state.read().current.is_none()
        {
            match self.open_model(current) {
                Ok(current) => self.service.state.write().current = Some(current),
                // If it is to be replaced, its vectors are not needed for long.
                Err(problem) if choices.next.is_none() => {
                    self.fail(current, problem).await;
                    return None;
                }
                Err(problem) => tracing::warn!(problem, "cannot open the former model"),
            }
        }
        self.seen = SeenSegments::default();
        self.refused.clear();
        *self.service.removed.lock() = true;
        match &choices.next {
            Some(next) => match self.open_model(next) {
                Ok(next) => Some(next),
                Err(problem) => {
                    self.fail(next, problem).await;
                    None
                }
            },
            None => {
                let current = self.service.state.read().current.clone();
                if current.is_none() {
                    tokio::select! {
                        () = self.stop.cancelled() => {}
                        () = self.service.chosen.notified() => {}
                    }
                }
                current
            }
        }
    }

    fn open_model(&self, choice: &EmbeddingChoice) -> Result<OpenModel, String> {
        let dir = self.service.dir();
        let embedder = Embedder::open(choice, dir, &self.service.client, &self.service.clock)?;
        let store = VectorStore::open(&dir.join(choice.vectors_file()), choice.dimensions());
        let store = Arc::new(store.map_err(|error| error.to_string())?);
        Ok(OpenModel { choice: choice.clone(), embedder, store })
    }

    /// Makes the vectors of a model for whatever is indexed, until another one is chosen or the daemon stops.
    async fn follow(&mut self, model: &OpenModel) -> Result<(), String> {
        loop {
            if self.search.index().is_ok() {
                self.catch_up(model).await?;
                self.replace_former(model)?;
                self.remove_unused().await;
            }
            tokio::select! {
                () = self.stop.cancelled() => return Ok(()),
                () = self.service.chosen.notified() => return Ok(()),
                () = self.service.index_changed.notified() => {}
                () = model.embedder.unload_when_idle() => {}
                () = Timer::start(REMOVE_AFTER).fired(), if *self.service.removed.lock() => {}
            }
            tokio::select! {
                () = self.stop.cancelled() => return Ok(()),
                () = Timer::start(COLLECT_FOR).fired() => {}
            }
        }
    }

    /// Makes the vectors that are missing, and removes those that are too many.
    async fn catch_up(&mut self, model: &OpenModel) -> Result<(), String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        loop {
            let changes = self.service.changes.load(Ordering::SeqCst);
            // Another one after a rebuild.
            let Ok(index) = self.search.index() else { return Ok(()) };
            if self.must_remove() {
                *self.service.removed.lock() = false;
                let gone = index.gone_keys(model.store.keys()).map_err(|error| text(&error))?;
                model.store.retain(|key| !gone.contains(&key)).map_err(|error| text(&error))?;
                let former = self.service.state.read().current.clone();
                if let Some(former) = former.filter(|former| former.choice != model.choice) {
                    let gone = index.gone_keys(former.store.keys()).map_err(|error| text(&error))?;
                    former.store.retain(|key| !gone.contains(&key)).map_err(|error| text(&error))?;
                }
            }
            let mut seen = self.seen.clone();
            let is_known = |key| self.refused.contains(&key) || model.store.contains(key).unwrap_or(false);
            let mut messages = index.unembedded(&mut seen, is_known).map_err(|error| text(&error))?;
            while !messages.is_empty() {
                self.service.state.write().waiting = Some(messages.len() as u64);
                let batch = messages.take(model.embedder.batch()).map_err(|error| text(&error))?;
                let passages: Vec<(u64, Vec<String>)> =
                    batch.iter().map(|message| (message.key, passages_of(&message.speaker, &message.text))).collect();
                let texts: Vec<&str> = passages.iter().flat_map(|(_, parts)| parts).map(String::as_str).collect();
                let mut vectors = Vec::with_capacity(texts.len());
                for texts in texts.chunks(model.embedder.batch()) {
                    tokio::select! {
                        () = self.stop.cancelled() => return Ok(()),
                        made = embed_each(&model.embedder, texts) => vectors.extend(made?),
                    }
                }
                let mut vectors = vectors.into_iter();
                let texts: Vec<(u64, Vec<Vec<f32>>)> = passages
                    .iter()
                    .map(|(key, parts)| (*key, vectors.by_ref().take(parts.len()).flatten().collect()))
                    .collect();
                model.store.insert(&texts).map_err(|error| text(&error))?;
                self.refused.extend(texts.iter().filter(|(_, vectors)| vectors.is_empty()).map(|(key, _)| *key));
                self.service.state.write().problem = None;
                let is_same = self.search.index().is_ok_and(|now| Arc::ptr_eq(&now, &index));
                if !is_same || self.must_remove() || self.is_replaced(model) || self.stop.is_cancelled() {
                    break;
                }
            }
            if self.is_replaced(model) || self.stop.is_cancelled() {
                return Ok(());
            }
            if messages.is_empty() {
                self.seen = seen;
                let mut state = self.service.state.write();
                (state.waiting, state.problem) = (Some(0), None);
                self.service.followed.store(changes, Ordering::SeqCst);
                return Ok(());
            }
        }
    }

    /// Returns true if vectors of messages that are gone are to be removed. While an index is rebuilt, nobody knows which are.
    fn must_remove(&self) -> bool {
        *self.service.removed.lock() && self.search.progress().is_some_and(|index| index.complete)
    }

    /// Returns true if vectors are to be made for another model.
    fn is_replaced(&self, model: &OpenModel) -> bool {
        let state = self.service.state.read();
        state.choices.next.as_ref().or(state.choices.current.as_ref()) != Some(&model.choice)
    }

    /// Uses the vectors of a model from now on, if it is the next one.
    fn replace_former(&self, model: &OpenModel) -> Result<(), String> {
        let change = |choices: &Choices| {
            let is_next = choices.next.as_ref() == Some(&model.choice);
            is_next.then(|| Choices { current: choices.next.clone(), next: None })
        };
        let update = |state: &mut State| state.current = Some(model.clone());
        self.service.state.change(change, update).map_err(|error| error.to_string())
    }

    /// Removes models and vectors that are not chosen any more.
    async fn remove_unused(&self) {
        if !self.service.is_readable.load(Ordering::SeqCst) {
            return;
        }
        // Not while one is copied that is not noted yet.
        let _choosing = tokio::select! {
            () = self.stop.cancelled() => return,
            choosing = self.service.choosing.lock() => choosing,
        };
        let dir = self.service.dir();
        let choices = self.service.state.read().choices.clone();
        let vectors: Vec<String> = choices.all().map(EmbeddingChoice::vectors_file).collect();
        delete_vectors(dir, |name| vectors.iter().any(|used| name.starts_with(used.as_str())));
        for entry in fs::read_dir(dir.join(MODELS_DIR)).into_iter().flatten().flatten() {
            let is_used = |choice: &EmbeddingChoice| match choice {
                EmbeddingChoice::Local { id, .. } => entry.file_name().to_string_lossy() == *id,
                EmbeddingChoice::Provider { .. } => false,
            };
            // What a crash left of a model that was copied is none.
            if !choices.all().any(is_used) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }

    /// Notes why no vectors are made, and waits for a while, or for another choice.
    async fn fail(&self, choice: &EmbeddingChoice, problem: String) {
        tracing::warn!(problem, "cannot make vectors of messages; trying again in a minute");
        {
            let mut state = self.service.state.write();
            if state.choices.all().any(|chosen| chosen == choice) {
                state.problem = Some(problem);
            }
        }
        tokio::select! {
            () = self.stop.cancelled() => {}
            () = self.service.chosen.notified() => {}
            () = Timer::start(RETRY_AFTER).fired() => {}
        }
    }
}
