//! SHA-256 as hex digits.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// Returns the SHA-256 of `bytes`.
pub(crate) fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// Returns 64 lower-case hex digits.
pub(crate) fn to_hex(hash: &[u8; 32]) -> String {
    hash.iter().fold(String::with_capacity(64), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// Returns the SHA-256 of `bytes` as 64 hex digits.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    to_hex(&sha256(bytes))
}
