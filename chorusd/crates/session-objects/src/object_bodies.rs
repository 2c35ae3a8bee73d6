//! Session bodies in a bucket.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use chorus_base::error::{Error, Result};
use chorus_clock::Clock;
use chorus_proto::ErrorKind;
use chorus_session::stored_message::StoredMessage;
use uuid::Uuid;

use crate::block_index::{Block, BlockIndex, TRAILER_BYTES, build_object, corrupt, parse_messages, row_of_trailer};
use crate::bodies::{BodyFuture, BodyRow, FoundBody, NewBody, SessionBodies, WrittenBody};
use crate::bucket::{Bucket, missing};
use crate::bucket_mark::{check_mark, check_or_mark};
use crate::cache::BodyCache;
use crate::digest::{sha256, sha256_hex, to_hex};
use crate::key::{BodyKey, Prefix};
use crate::put_once::put_once;

/// Time from the start of a write within which a row must name the body. The sweep waits four times as long.
pub const NAME_WITHIN: Duration = Duration::from_secs(6 * 60 * 60);

/// Largest object of one request to S3, in bytes.
const MAX_OBJECT_BYTES: u64 = 5 << 30;

/// Objects in one answer to a list.
const LIST_PAGE: usize = 1000;

/// Session bodies in a bucket.
#[derive(Debug)]
pub struct ObjectBodies {
    bucket: Arc<dyn Bucket>,
    prefix: Prefix,
    cache: Option<BodyCache>,
    clock: Clock,
}

impl ObjectBodies {
    #[must_use]
    pub fn new(bucket: Arc<dyn Bucket>, prefix: Prefix, cache: Option<BodyCache>, clock: Clock) -> Self {
        Self { bucket, prefix, cache, clock }
    }

    /// Checks that the bucket is that of a cluster, or makes it that, as [`check_or_mark`] does.
    ///
    /// # Errors
    /// As [`check_or_mark`].
    pub async fn check_or_mark(&self, cluster: Uuid, is_marked: bool) -> Result<()> {
        check_or_mark(&*self.bucket, &self.prefix, cluster, is_marked).await
    }

    /// Checks that the bucket is not that of another cluster than `cluster`, which may not exist yet. Writes nothing.
    ///
    /// # Errors
    /// As [`check_or_mark`].
    pub async fn check_mark(&self, cluster: Option<Uuid>) -> Result<()> {
        check_mark(&*self.bucket, &self.prefix, cluster).await
    }

    async fn write_messages(&self, body: &NewBody, messages: &[StoredMessage]) -> Result<WrittenBody> {
        let name_before = self.clock.ticks().after(NAME_WITHIN);
        let NewBody { agent, session, epoch, .. } = *body;
        let key = BodyKey { agent, session, epoch, write: Uuid::new_v4() }.to_text(&self.prefix);
        let (object, row) = build_object(key, messages);
        if row.object_bytes > MAX_OBJECT_BYTES {
            let message =
                format!("the session has {} bytes, and an object at most {MAX_OBJECT_BYTES}", row.object_bytes);
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        put_once(&*self.bucket, &row.key, object).await?;
        Ok(WrittenBody { row, name_before })
    }

    /// Returns bytes with this hash, from the cache or by `read`, which is called once more if they have another one.
    async fn verified<'a, F: Future<Output = Result<Bytes>> + 'a>(
        &'a self,
        row: &BodyRow,
        sha256: &str,
        read: impl Fn() -> F,
    ) -> Result<Bytes> {
        if let Some(cache) = &self.cache
            && let Some(bytes) = cache.get(sha256).await
        {
            return Ok(bytes);
        }
        for _ in 0..2 {
            let bytes = read().await?;
            if sha256_hex(&bytes) == sha256 {
                if let Some(cache) = &self.cache {
                    cache.put(sha256, bytes.clone()).await;
                }
                return Ok(bytes);
            }
        }
        Err(corrupt(&row.key, "is not as it was written"))
    }

    async fn index(&self, row: &BodyRow) -> Result<BlockIndex> {
        let read = || self.bucket.get_range(&row.key, row.body_bytes..row.object_bytes);
        BlockIndex::parse(row, &self.verified(row, &row.index_sha256, read).await?)
    }

    async fn read_whole(&self, row: &BodyRow) -> Result<Bytes> {
        if row.body_bytes == 0 {
            return Ok(Bytes::new());
        }
        self.verified(row, &row.sha256, || self.bucket.get_range(&row.key, 0..row.body_bytes)).await
    }

    /// Reads blocks that are next to each other. Those that are not in the cache are read in one request, from the first
    /// to the last of them.
    async fn read_blocks(&self, row: &BodyRow, blocks: &[Block]) -> Result<Bytes> {
        let mut parts: Vec<Option<Bytes>> = Vec::new();
        for block in blocks {
            parts.push(match &self.cache {
                Some(cache) => cache.get(&to_hex(&block.sha256)).await,
                None => None,
            });
        }
        let missing = |part: &Option<Bytes>| part.is_none();
        if let (Some(from), Some(to)) = (parts.iter().position(missing), parts.iter().rposition(missing)) {
            let wanted = &blocks[from..=to];
            let range = wanted[0].bytes.start..wanted[wanted.len() - 1].bytes.end;
            let mut fetched = self.fetch_blocks(row, wanted, &range).await?;
            if fetched.is_none() {
                fetched = self.fetch_blocks(row, wanted, &range).await?;
            }
            let fetched = fetched.ok_or_else(|| corrupt(&row.key, "is not as it was written"))?;
            for ((block, bytes), part) in wanted.iter().zip(fetched).zip(&mut parts[from..=to]) {
                if let (Some(cache), None) = (&self.cache, &part) {
                    cache.put(&to_hex(&block.sha256), bytes.clone()).await;
                }
                *part = Some(bytes);
            }
        }
        match parts.as_mut_slice() {
            [Some(only)] => Ok(std::mem::take(only)),
            parts => {
                let joined = parts.iter().flatten().fold(BytesMut::new(), |mut joined, part| {
                    joined.extend_from_slice(part);
                    joined
                });
                Ok(joined.freeze())
            }
        }
    }

    /// Reads blocks; `None` if one does not have its hash.
    async fn fetch_blocks(&self, row: &BodyRow, blocks: &[Block], range: &Range<u64>) -> Result<Option<Vec<Bytes>>> {
        let bytes = self.bucket.get_range(&row.key, range.clone()).await?;
        if bytes.len() as u64 != range.end - range.start {
            return Ok(None);
        }
        let cut = |block: &Block| {
            let at = |offset: u64| usize::try_from(offset - range.start).ok();
            let part = bytes.slice(at(block.bytes.start)?..at(block.bytes.end)?);
            (sha256(&part) == block.sha256).then_some(part)
        };
        Ok(blocks.iter().map(cut).collect())
    }
}

impl SessionBodies for ObjectBodies {
    fn write(&self, body: NewBody) -> BodyFuture<'_, WrittenBody> {
        Box::pin(async move { self.write_messages(&body, &body.messages).await })
    }

    fn grow(&self, from: BodyRow, kept: u64, added: NewBody) -> BodyFuture<'_, WrittenBody> {
        Box::pin(async move {
            let mut messages = self.page(from.clone(), 0, kept).await?;
            if messages.len() as u64 != kept {
                return Err(Error::invalid(format!("the session has {} messages, not {kept}", messages.len())));
            }
            messages.extend_from_slice(&added.messages);
            self.write_messages(&added, &messages).await
        })
    }

    fn read(&self, row: BodyRow) -> BodyFuture<'_, Vec<StoredMessage>> {
        Box::pin(async move {
            let messages = parse_messages(&row.key, &self.read_whole(&row).await?)?;
            if messages.len() as u64 != row.messages {
                return Err(corrupt(&row.key, "has another number of messages than was written"));
            }
            Ok(messages)
        })
    }

    fn page(&self, row: BodyRow, first: u64, count: u64) -> BodyFuture<'_, Vec<StoredMessage>> {
        Box::pin(async move {
            if first == 0 && count >= row.messages {
                return self.read(row).await;
            }
            let index = self.index(&row).await?;
            let blocks = index.find(first, count);
            let Some(start) = blocks.first().map(|block| block.first) else { return Ok(Vec::new()) };
            let messages = parse_messages(&row.key, &self.read_blocks(&row, blocks).await?)?;
            let at = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
            Ok(messages.into_iter().skip(at(first - start)).take(at(count)).collect())
        })
    }

    fn delete(&self, row: BodyRow) -> BodyFuture<'_, ()> {
        Box::pin(async move { self.bucket.delete(&row.key).await })
    }

    fn list(&self, after: Option<String>) -> BodyFuture<'_, Vec<FoundBody>> {
        Box::pin(async move {
            let mut after = after;
            loop {
                let listed = self.bucket.list(&self.prefix.bodies(), after.as_deref(), LIST_PAGE).await?;
                after = listed.last().map(|object| object.key.clone());
                let found: Vec<FoundBody> = listed
                    .into_iter()
                    .filter_map(|object| {
                        let BodyKey { agent, session, epoch, .. } = BodyKey::parse(&self.prefix, &object.key)?;
                        Some(FoundBody { key: object.key, agent, session, epoch, object_bytes: object.bytes })
                    })
                    .collect();
                // A page of objects that are not bodies is not the end.
                if !found.is_empty() || after.is_none() {
                    return Ok(found);
                }
            }
        })
    }

    fn recover(&self, found: FoundBody) -> BodyFuture<'_, BodyRow> {
        Box::pin(async move {
            let key = &found.key;
            let broken = || corrupt(key, "is not a whole session");
            let object = self.bucket.get(key).await?.ok_or_else(|| missing(key))?;
            let (size, trailer) = (object.len() as u64, usize::try_from(TRAILER_BYTES).unwrap_or(usize::MAX));
            let trailer = object.len().checked_sub(trailer).ok_or_else(broken)?;
            let row = row_of_trailer(key, size, &object[trailer..]).ok_or_else(broken)?;
            let body = usize::try_from(row.body_bytes).map_err(|_| broken())?;
            let row = BodyRow { index_sha256: sha256_hex(&object[body..]), ..row };
            let index = BlockIndex::parse(&row, &object[body..])?;
            let has_its_hash = |block: &Block| {
                let at = |offset: u64| usize::try_from(offset).ok();
                let part = at(block.bytes.start).zip(at(block.bytes.end)).and_then(|(from, to)| object.get(from..to));
                part.is_some_and(|part| sha256(part) == block.sha256)
            };
            if !index.0.iter().all(has_its_hash) {
                return Err(broken());
            }
            let messages = parse_messages(key, &object.slice(..body))?.len() as u64;
            let is_whole = sha256_hex(&object[..body]) == row.sha256 && messages == row.messages;
            if is_whole { Ok(row) } else { Err(broken()) }
        })
    }
}
