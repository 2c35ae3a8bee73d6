//! The state of capture, which operations change and ask for.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chorus_base::error::{Error, Result};
use chorus_base::sync::Mutex;
use chorus_catalog::{CaptureTable, CapturedFile, Catalog, SessionTable, SettingTable};
use chorus_clock::Clock;
use chorus_config::CaptureConfig;
use tokio::sync::watch;

use super::deleted::DeletedConversations;
use super::places::UserPlaces;
use super::rules::{CaptureRules, real_path};
use super::settings::{CaptureSettings, FileSettings, SETTING};
use super::source::CaptureSource;

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
    pub(super) table: Arc<dyn CaptureTable>,
    pub(super) sessions: Arc<dyn SessionTable>,
    setting: Arc<dyn SettingTable>,
    pub(super) clock: Clock,
    pub(super) places: UserPlaces,
    pub deleted: Arc<DeletedConversations>,
    pub(super) settings: watch::Sender<CaptureSettings>,
    /// Held while the settings are changed.
    changing: tokio::sync::Mutex<()>,
    pub(super) progress: watch::Sender<Progress>,
    /// Not all directories could be watched.
    pub(super) is_watch_limited: AtomicBool,
    /// The directories that could not be listed.
    pub(super) unreadable_dirs: Mutex<BTreeMap<PathBuf, CaptureSource>>,
    /// The transcripts as they were when they were last read.
    pub(super) files: Mutex<HashMap<PathBuf, CapturedFile>>,
}

impl CaptureService {
    /// Loads the settings and what was read.
    ///
    /// # Errors
    /// `invalid_params` if the configuration names an unknown program, `storage_failed`.
    pub async fn load(
        catalog: &Catalog,
        deleted: Arc<DeletedConversations>,
        places: UserPlaces,
        config: &CaptureConfig,
        clock: Clock,
    ) -> Result<Self> {
        let from_file = FileSettings::new(config)?;
        let settings = catalog.settings.get(SETTING).await?;
        let settings = settings.and_then(|text| {
            serde_json::from_str::<CaptureSettings>(&text)
                .inspect_err(|error| tracing::error!(%error, "the settings of capture cannot be read; capture is off"))
                .ok()
        });
        let settings = CaptureSettings { from_file, ..settings.unwrap_or_default() };
        let files = catalog.capture.files().await?.into_iter().map(|file| (file.path.clone(), file)).collect();
        Ok(Self {
            table: catalog.capture.clone(),
            sessions: catalog.sessions.clone(),
            setting: catalog.settings.clone(),
            clock,
            places,
            deleted,
            settings: watch::Sender::new(settings),
            changing: tokio::sync::Mutex::default(),
            progress: watch::Sender::new(Progress::default()),
            is_watch_limited: AtomicBool::new(false),
            unreadable_dirs: Mutex::default(),
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

    /// Has all transcripts be read again at the next look.
    pub(crate) async fn read_all_again(&self) -> Result<()> {
        self.table.read_all_again().await?;
        self.files.lock().values_mut().for_each(|file| (file.inode, file.marker) = (0, None));
        Ok(())
    }

    /// Returns the paths that are excluded and lead to the same directory as this one.
    pub(crate) fn excluded_as(&self, path: &str) -> Vec<String> {
        let real = real_path(Path::new(path));
        let settings = self.settings.borrow().clone();
        let mut excluded = settings.excluded;
        excluded.retain(|other| {
            let stored = settings.real_paths.get(other).map(Path::new);
            other == path || stored == Some(&real) || real_path(Path::new(other)) == real
        });
        excluded.into_iter().collect()
    }

    /// Returns true if capture is on for a program.
    pub(crate) fn is_on(&self) -> bool {
        !self.settings.borrow().sources().is_empty()
    }

    /// Returns true if the system has too few watches for all directories.
    pub(crate) fn is_watch_limited(&self) -> bool {
        self.is_watch_limited.load(Ordering::Relaxed)
    }

    /// Refuses a change of what the configuration file says.
    ///
    /// # Errors
    /// `invalid_params`.
    pub(crate) fn check_not_in_file(&self, source: Option<CaptureSource>, path: Option<&str>) -> Result<()> {
        let settings = self.settings.borrow();
        let named = match (source, path) {
            (Some(source), _) if settings.from_file.on.contains(&source) => Some(("sources", source.name())),
            (_, Some(path)) if settings.from_file.excluded.contains(path) => Some(("exclude", path)),
            _ => None,
        };
        let Some((key, what)) = named else { return Ok(()) };
        Err(Error::invalid(format!("{what} is in capture.{key} of config.toml"))
            .hint("remove it there, and restart the daemon: chorusctl daemon restart"))
    }

    /// Returns the rules for conversations with the current settings.
    pub(crate) fn rules(&self) -> CaptureRules {
        let settings = self.settings.borrow().clone();
        let real_paths = settings.real_paths.into_values();
        let excluded = settings.excluded.into_iter().chain(settings.from_file.excluded).chain(real_paths);
        CaptureRules::new(excluded.map(PathBuf::from), self.deleted.clone())
    }
}
