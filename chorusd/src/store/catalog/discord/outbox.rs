//! What is to be posted.

use rusqlite::{Connection, params};

use crate::failure::Result;

/// Something to post.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPost {
    pub channel_id: u64,
    /// What a later change finds it by.
    pub about: Option<String>,
    /// JSON.
    pub body: String,
    pub nonce: String,
}

/// Puts a post behind all others of its channel.
pub(super) fn insert(conn: &Connection, post: &NewPost) -> Result<()> {
    conn.prepare_cached(
        "INSERT INTO discord_outbox (channel_id, about, body, nonce, created_at) VALUES (?1, ?2, ?3, ?4, 0)",
    )?
    .execute(params![post.channel_id, post.about, post.body, post.nonce])?;
    Ok(())
}
