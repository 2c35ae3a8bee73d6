//! The columns of a body, as the catalog and the store of bodies have them.

use chorus_catalog::BodyRow;

/// Returns the row that the catalog stores.
pub(crate) fn to_catalog(row: chorus_session_objects::BodyRow) -> BodyRow {
    let chorus_session_objects::BodyRow { key, messages, body_bytes, object_bytes, sha256, index_sha256 } = row;
    BodyRow { key, messages, body_bytes, object_bytes, sha256, index_sha256 }
}

/// Returns the row that the store of bodies reads.
pub(crate) fn to_objects(row: BodyRow) -> chorus_session_objects::BodyRow {
    let BodyRow { key, messages, body_bytes, object_bytes, sha256, index_sha256 } = row;
    chorus_session_objects::BodyRow { key, messages, body_bytes, object_bytes, sha256, index_sha256 }
}
