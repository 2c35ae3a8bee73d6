//! Values as both databases have them.

use std::fmt;

use chorus_base::hex;
use sha2::{Digest as _, Sha256};

/// How a column is stored: in SQLite, and in PostgreSQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `INTEGER`, `bigint`.
    Int,
    /// `INTEGER`, `boolean`.
    Bool,
    /// `REAL`, `float8`.
    Real,
    /// `TEXT`, `text`.
    Text,
    /// `TEXT`, `bytea`: it may have any character.
    TextAsBytes,
    /// `BLOB`, `bytea`.
    Bytes,
    /// 16 bytes, `uuid`.
    Id,
    /// 16 bytes for each, `uuid[]`.
    Ids,
    /// 8 bytes for each, the lowest first, `bigint[]`.
    Hashes,
    /// A text array; only PostgreSQL has such columns.
    Texts,
}

/// A value, which is the same in both databases. Ids, lists of ids and of hashes are bytes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    /// Not known, because an earlier attempt ended before it.
    Unknown,
    Null,
    Int(i64),
    Real(f64),
    Text(String),
    Bytes(Vec<u8>),
    Texts(Vec<String>),
}

/// The values of a row in the order of the columns.
pub(crate) type Row = Vec<Value>;

impl Value {
    /// Bytes that it takes, about.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Unknown | Self::Null | Self::Int(_) | Self::Real(_) => 8,
            Self::Text(text) => text.len(),
            Self::Bytes(bytes) => bytes.len(),
            Self::Texts(texts) => texts.iter().map(String::len).sum(),
        }
    }

    /// Returns the number; `None` for any other value.
    pub(crate) fn as_int(&self) -> Option<i64> {
        match self {
            Self::Int(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns the text; `None` for any other value.
    pub(crate) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the bytes; `None` for any other value.
    pub(crate) fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Adds the value to a hash: a byte for its type, the length if it has one, and its bytes.
    pub(crate) fn hash_into(&self, sum: &mut Sha256) {
        let mut sized = |tag: u8, bytes: &[u8]| {
            sum.update([tag]);
            sum.update((bytes.len() as u64).to_be_bytes());
            sum.update(bytes);
        };
        match self {
            Self::Unknown | Self::Null => sum.update([0]),
            Self::Int(number) => sized(1, &number.to_be_bytes()),
            Self::Real(number) => sized(2, &number.to_bits().to_be_bytes()),
            Self::Text(text) => sized(3, text.as_bytes()),
            Self::Bytes(bytes) => sized(4, bytes),
            Self::Texts(texts) => texts.iter().for_each(|text| sized(5, text.as_bytes())),
        }
    }
}

/// For errors: a UUID, a number, or a short text.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown | Self::Null => f.write_str("nothing"),
            Self::Int(number) => number.fmt(f),
            Self::Real(number) => number.fmt(f),
            Self::Text(text) => f.write_str(text.get(..80).unwrap_or(text)),
            Self::Bytes(bytes) => match uuid::Uuid::from_slice(bytes) {
                Ok(id) => id.fmt(f),
                Err(_) => f.write_str(&hex(bytes.get(..32).unwrap_or(bytes))),
            },
            Self::Texts(texts) => f.write_str(&texts.join(", ")),
        }
    }
}
