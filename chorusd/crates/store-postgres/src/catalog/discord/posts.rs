//! Posts as parameters of calls.

use chorus_catalog::discord::NewPost;
use chorus_journal::to_nanos;

use crate::statement::{Call, call};

/// Posts by column.
#[derive(Debug, Default)]
pub(super) struct PostColumns {
    pub(super) channels: Vec<i64>,
    pub(super) abouts: Vec<Option<String>>,
    pub(super) bodies: Vec<String>,
    pub(super) nonces: Vec<String>,
    pub(super) notices: Vec<Option<i64>>,
}

impl PostColumns {
    pub(super) fn new(posts: Vec<NewPost>) -> Self {
        let mut columns = Self::default();
        for post in posts {
            columns.channels.push(post.channel_id.cast_signed());
            columns.abouts.push(post.about);
            columns.bodies.push(post.body);
            columns.nonces.push(post.nonce);
            columns.notices.push(post.notice_at.map(to_nanos));
        }
        columns
    }
}

/// The call that queues posts.
pub(super) fn enqueue(posts: Vec<NewPost>) -> Call {
    let PostColumns { channels, abouts, bodies, nonces, notices } = PostColumns::new(posts);
    call!("SELECT enqueue_posts($1, $2, $3, $4, $5)", channels, abouts, bodies, nonces, notices)
}
