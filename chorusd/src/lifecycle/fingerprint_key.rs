//! The key that fingerprints of secrets are made with: random, one for each home. Whoever could read it could try guesses.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use crate::redact::FingerprintKey;

/// The file in the home.
pub const KEY_FILE: &str = "db/fingerprint.key";

/// The key of `home`, made where there is none. What cannot be kept holds until the daemon ends: then fingerprints of this run
/// compare among themselves only.
#[must_use]
pub fn load_or_create_key(home: &Path) -> FingerprintKey {
    let path = home.join(KEY_FILE);
    if let Some(key) = std::fs::read(&path).ok().and_then(|bytes| bytes.try_into().ok()) {
        return key;
    }
    let key = random_key();
    // Not logged: the log may be what asks.
    let _ = store_key(&path, &key);
    key
}

fn store_key(path: &Path, key: &FingerprintKey) -> io::Result<()> {
    let new = path.with_extension("key.tmp");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    file.write_all(key)?;
    file.sync_all()?;
    std::fs::rename(&new, path)
}

/// The randomness of UUIDs, which comes from the system: 122 bits in each.
fn random_key() -> FingerprintKey {
    let mut key = FingerprintKey::default();
    for half in key.chunks_exact_mut(16) {
        half.copy_from_slice(uuid::Uuid::new_v4().as_bytes());
    }
    key
}
