//! The state of capture, which operations change and ask for.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use chorus_base::error::{Error, Result};
use chorus_base::sync::Mutex;
use chorus_clock::Clock;
use chorus_store::Catalog;
use chorus_store::catalog::{CaptureTable, CapturedFile, SettingTable};
use tokio::sync::watch;

use super::deleted::DeletedConversations;
use super::places::UserPlaces;
use super::rules::CaptureRules;
use super::settings::{CaptureSettings, SETTING};

/// How far the thread of capture is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// The newest settings with which everything was read.
    pub generation: u64,
    /// Bytes of the files that were read since there was last nothing to do, and of all that are known to have changed.
    pub done: u64,
    pub total: u64,
    /// Number of files that are still to be read.
    pub pending: u64,
}

/// The state of capture.
#[derive(Debug)]
pub struct CaptureService {
    pub(super) table: CaptureTable,
    setting: SettingTable,
    pub(super) clock: Clock,
    pub(super) places: UserPlaces,
    pub deleted: Arc<DeletedConversations>,
    pub(super) settings: watch::Sender<CaptureSettings>,
    /// Held while the settings are changed.
    changing: tokio::sync::Mutex<()>,
    pub(super) progress: watch::Sender<Progress>,
    /// The transcripts as they were when they were last read.
    pub(super) files: Mutex<HashMap<PathBuf, CapturedFile>>,
}

impl CaptureService {
    /// Loads the settings and what was read.
    pub async fn load(
        catalog: &Catalog,
        deleted: Arc<DeletedConversations>,
        places: UserPlaces,
        clock: Clock,
    ) -> Result<Self> {
        let settings = catalog.settings.get(SETTING).await?;
        let settings = settings.and_then(|text| {
            serde_json::from_str(&text)
                .inspect_err(|error| tracing::error!(%error, "the settings of capture cannot be read; capture is off"))
                .ok()
        });
        let files = catalog.capture.files().await?.into_iter().map(|file| (file.path.clone(), file)).collect();
        Ok(Self {
            table: catalog.capture.clone(),
            setting: catalog.settings.clone(),
            clock,
            places,
            deleted,
            settings: watch::Sender::new(settings.unwrap_or_default()),
            changing: tokio::sync::Mutex::default(),
            progress: watch::Sender::new(Progress::default()),
            files: Mutex::new(files),
        })
    }

    /// Changes the settings. Returns the number of the change.
    pub(crate) async fn change(&self, change: impl FnOnce(&mut CaptureSettings)) -> Result<u64> {
        let _one_at_a_time = self.changing.lock().await;
        let mut settings = self.settings.borrow().clone();
        change(&mut settings);
        settings.generation += 1;
        let text = serde_json::to_string(&settings).map_err(|e| Error::internal(e.to_string()))?;
        self.setting.set(SETTING, Some(text)).await?;
        let generation = settings.generation;
        self.settings.send_replace(settings);
        Ok(generation)
    }

    /// Waits until everything has been read with the settings of a change, or with later ones.
    pub(crate) async fn wait_until_read(&self, generation: u64, progress: &mut (dyn FnMut(u64, u64) + Send)) {
        let mut at = self.progress.subscribe();
        let mut settings = self.settings.subscribe();
        loop {
            let Progress { generation: reached, done, total, .. } = *at.borrow_and_update();
            if reached >= generation || !settings.borrow_and_update().is_active() {
                return;
            }
            if total > 0 {
                progress(done, total);
            }
            tokio::select! {
                changed = at.changed() => if changed.is_err() { return },
                changed = settings.changed() => if changed.is_err() { return },
            }
        }
    }

    /// Records that a transcript was read.
    pub(super) async fn record(&self, row: CapturedFile) {
        if let Err(failure) = self.table.record(row.clone()).await {
            // It is read again later, which changes nothing.
            tracing::warn!(%failure, "cannot record what was captured");
        }
        self.files.lock().insert(row.path.clone(), row);
    }

    /// Has transcripts of which nothing was captured be read again at the next look.
    pub(crate) async fn forget_held_back(&self) -> Result<()> {
        self.table.forget_held_back().await?;
        self.files.lock().values_mut().filter(|file| file.conversations == 0).for_each(|file| {
            (file.inode, file.marker) = (0, None);
        });
        Ok(())
    }

    /// Returns true if exactly this path is excluded.
    pub(crate) fn is_excluded(&self, path: &str) -> bool {
        self.settings.borrow().excluded.contains(path)
    }

    /// Returns the rules for conversations with the current settings.
    pub(crate) fn rules(&self) -> CaptureRules {
        let excluded = self.settings.borrow().excluded.iter().map(PathBuf::from).collect();
        CaptureRules { excluded, deleted: self.deleted.clone() }
    }
}
