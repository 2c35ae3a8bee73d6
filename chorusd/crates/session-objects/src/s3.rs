//! A bucket of a server that speaks S3.

use std::ops::Range;

use bytes::Bytes;
use chorus_base::Secret;
use chorus_base::error::{Error, Result};
use chorus_clock::Clock;
use chorus_proto::ErrorKind;
use futures_util::{StreamExt as _, TryStreamExt as _};
use jiff::Timestamp;
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey, S3ConditionalPut};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, RetryConfig};

use crate::bucket::{Bucket, BucketFuture, Listed, PutOutcome, missing};
use crate::http_client::RetryingClient;
use crate::retry::RetryPolicy;
use crate::settings::{S3Settings, is_loopback};

/// A bucket of a server that speaks S3.
#[derive(Debug)]
pub struct S3Bucket {
    store: AmazonS3,
    client: RetryingClient,
    /// Is removed from errors, because servers may echo it.
    secret: Secret,
}

impl S3Bucket {
    /// Makes a client, which connects with its first request. Blocks, because it reads the system's certificates.
    ///
    /// # Errors
    /// `invalid_config`.
    pub fn new(settings: &S3Settings, policy: RetryPolicy, clock: Clock) -> Result<Self> {
        let here = settings.endpoint.as_ref().is_some_and(is_loopback);
        let invalid = |why: String| Error::new(ErrorKind::InvalidConfig, format!("cannot use the bucket: {why}"));
        let client = RetryingClient::new(clock, policy, here).map_err(|e| invalid(e.to_string()))?;
        let secret = settings.key.secret.clone();
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(&settings.bucket)
            .with_region(&settings.region)
            .with_access_key_id(&settings.key.id)
            .with_secret_access_key(secret.expose())
            .with_virtual_hosted_style_request(!settings.path_style)
            .with_conditional_put(S3ConditionalPut::ETagMatch)
            // One DELETE an object, which every server has.
            .with_config(AmazonS3ConfigKey::DisableBulkDelete, "true")
            // The client retries.
            .with_retry(RetryConfig { max_retries: 0, ..RetryConfig::default() })
            .with_http_connector(client.clone());
        if let Some(endpoint) = &settings.endpoint {
            builder = builder.with_endpoint(endpoint.as_str().trim_end_matches('/'));
            builder = builder.with_allow_http(endpoint.scheme() == "http");
        }
        let store = builder.build().map_err(|e| invalid(secret.scrub(&e.to_string())))?;
        Ok(Self { store, client, secret })
    }

    /// Bytes of the bodies of all answers so far.
    #[must_use]
    pub fn received_bytes(&self) -> u64 {
        self.client.received_bytes()
    }

    fn convert(&self, what: &str, key: &str, error: &object_store::Error) -> Error {
        use object_store::Error as Failure;
        if matches!(error, Failure::NotFound { .. }) {
            return missing(key);
        }
        let message = self.secret.scrub(&format!("cannot {what} {key}: {error}"));
        match error {
            Failure::PermissionDenied { .. } | Failure::Unauthenticated { .. } => {
                Error::new(ErrorKind::Denied, message).hint("check the key and the policy of the bucket")
            }
            _ => Error::new(ErrorKind::StorageUnavailable, message)
                .hint("check the endpoint, the bucket and the network"),
        }
    }
}

fn listed(meta: &ObjectMeta) -> Listed {
    let modified = Timestamp::from_millisecond(meta.last_modified.timestamp_millis()).unwrap_or_default();
    Listed { key: meta.location.to_string(), bytes: meta.size, modified }
}

impl Bucket for S3Bucket {
    fn put_new<'a>(&'a self, key: &'a str, bytes: Bytes) -> BucketFuture<'a, PutOutcome> {
        Box::pin(async move {
            let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
            match self.store.put_opts(&Path::from(key), bytes.into(), options).await {
                Ok(_) => Ok(PutOutcome::Created),
                Err(object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. }) => {
                    Ok(PutOutcome::Exists)
                }
                Err(e) => Err(self.convert("write", key, &e)),
            }
        })
    }

    fn get<'a>(&'a self, key: &'a str) -> BucketFuture<'a, Option<Bytes>> {
        Box::pin(async move {
            let read = async { self.store.get(&Path::from(key)).await?.bytes().await };
            match read.await {
                Ok(bytes) => Ok(Some(bytes)),
                Err(object_store::Error::NotFound { .. }) => Ok(None),
                Err(e) => Err(self.convert("read", key, &e)),
            }
        })
    }

    fn get_range<'a>(&'a self, key: &'a str, range: Range<u64>) -> BucketFuture<'a, Bytes> {
        Box::pin(async move {
            let read = self.store.get_range(&Path::from(key), range).await;
            read.map_err(|e| self.convert("read a part of", key, &e))
        })
    }

    fn head<'a>(&'a self, key: &'a str) -> BucketFuture<'a, Option<Listed>> {
        Box::pin(async move {
            match self.store.head(&Path::from(key)).await {
                Ok(meta) => Ok(Some(listed(&meta))),
                Err(object_store::Error::NotFound { .. }) => Ok(None),
                Err(e) => Err(self.convert("look up", key, &e)),
            }
        })
    }

    fn list<'a>(&'a self, prefix: &'a str, after: Option<&'a str>, limit: usize) -> BucketFuture<'a, Vec<Listed>> {
        Box::pin(async move {
            let path = Path::from(prefix);
            let found = match after {
                Some(after) => self.store.list_with_offset(Some(&path), &Path::from(after)),
                None => self.store.list(Some(&path)),
            };
            let found = found.take(limit).map_ok(|meta| listed(&meta)).try_collect().await;
            found.map_err(|e| self.convert("list", prefix, &e))
        })
    }

    fn delete<'a>(&'a self, key: &'a str) -> BucketFuture<'a, ()> {
        Box::pin(async move {
            match self.store.delete(&Path::from(key)).await {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
                Err(e) => Err(self.convert("delete", key, &e)),
            }
        })
    }
}
