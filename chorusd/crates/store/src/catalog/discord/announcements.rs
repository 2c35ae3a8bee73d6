//! Announcements that the daemon posts to channels.

use chorus_catalog::discord::{AnnouncementLog, Announcements};
use chorus_catalog::{CatalogRead, CatalogWrite, SettingTable as _};

use super::outbox;
use crate::catalog::CatalogDb;
use crate::catalog::settings::{self, SqliteSettingTable};

/// Setting with the number of the newest event that was announced, or did not need to be.
const LAST_EVENT_KEY: &str = "discord.events";

/// Setting with the times at which channels were last told that the daemon has started, as JSON.
const LAST_STARTS_KEY: &str = "discord.starts";

/// The table in SQLite.
#[derive(Debug)]
pub(super) struct SqliteAnnouncementLog {
    pub(super) settings: SqliteSettingTable,
    pub(super) db: CatalogDb,
}

impl AnnouncementLog for SqliteAnnouncementLog {
    fn enqueue(&self, announcements: Announcements) -> CatalogWrite<()> {
        self.db.write(move |conn| {
            announcements.posts.iter().try_for_each(|post| outbox::enqueue(conn, post))?;
            if let Some((count, now)) = announcements.dropped {
                outbox::add_dropped(conn, count, now)?;
            }
            if let Some(upto) = announcements.upto {
                settings::upsert(conn, LAST_EVENT_KEY, Some(&upto.to_string()))?;
            }
            match &announcements.starts {
                Some(starts) => settings::upsert(conn, LAST_STARTS_KEY, Some(starts)),
                None => Ok(()),
            }
        })
    }

    fn last_event(&self) -> CatalogRead<'_, Option<u64>> {
        let event = self.settings.get(LAST_EVENT_KEY);
        Box::pin(async move { Ok(event.await?.and_then(|seq| seq.parse().ok())) })
    }

    fn last_starts(&self) -> CatalogRead<'_, Option<String>> {
        self.settings.get(LAST_STARTS_KEY)
    }
}
