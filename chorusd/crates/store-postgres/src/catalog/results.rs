//! Results of writes that are kept with their commit, so that they are known if the answer was lost with the connection.

use chorus_base::error::{Error, Result};
use chorus_catalog::CatalogWrite;
use uuid::Uuid;

use super::CatalogDb;
use crate::batch::JobRows;
use crate::ownership::Grant;
use crate::statement::{Call, call};

/// The node and the number of a result, the first two parameters of a call that keeps it.
pub(crate) type ResultKey = (String, Uuid);

impl CatalogDb {
    /// Queues `calls` and after them the one that `last` makes, which returns the numbers that it keeps by `keep_result`.
    pub(crate) fn write_with_result<T: Send + 'static>(
        &self,
        grant: Result<Option<Grant>>,
        mut calls: Vec<Call>,
        last: impl FnOnce(ResultKey) -> Call,
        decode: fn(&[Option<i64>]) -> T,
    ) -> CatalogWrite<T> {
        let (key, confirm) = self.new_result();
        calls.push(last(key));
        let read = move |rows: &JobRows| {
            let row =
                rows.last().and_then(|rows| rows.first()).ok_or_else(|| Error::internal("a result is missing"))?;
            Ok(decode(&row.get::<_, Vec<Option<i64>>>(0)))
        };
        self.writer.submit(grant, calls, Some(confirm), read, |_| ())
    }

    /// Returns the key of a result, and the call that reads it.
    fn new_result(&self) -> (ResultKey, Call) {
        let key = self.result_key();
        let find = "SELECT result FROM write_results WHERE node = $1 AND token = $2";
        (key.clone(), call!(find, key.0, key.1))
    }

    /// Returns the key of a result.
    pub(crate) fn result_key(&self) -> ResultKey {
        (self.node.id.clone(), Uuid::new_v4())
    }
}

/// Reads a result that is 0 or 1.
pub(crate) fn is_one(result: &[Option<i64>]) -> bool {
    result.first() == Some(&Some(1))
}
