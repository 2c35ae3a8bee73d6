//! The key for fingerprints of secrets: random, one for each home. It must stay private, because its owner can check
//! guesses against fingerprints.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use chorus_redact::FingerprintKey;

/// Path of the key file in the home.
pub const KEY_FILE: &str = "db/fingerprint.key";

/// Returns the key of `home`, and creates one if there is none. If the key cannot be stored, it holds until the daemon
/// ends; fingerprints of this run then compare only among themselves.
#[must_use]
pub fn load_or_create_key(home: &Path) -> FingerprintKey {
    let path = home.join(KEY_FILE);
    if let Some(key) = std::fs::read(&path).ok().and_then(|bytes| bytes.try_into().ok()) {
        return key;
    }
    let key = random_key();
    // Not logged, because the logger itself may be the caller.
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

/// Builds a key from two random UUIDs, each with 122 bits of randomness from the system.
fn random_key() -> FingerprintKey {
    let mut key = FingerprintKey::default();
    for half in key.chunks_exact_mut(16) {
        half.copy_from_slice(uuid::Uuid::new_v4().as_bytes());
    }
    key
}
