//! Parameters that know their type in the database, so that a statement needs no preparation to be sent.

use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

/// A type of Rust with the one type of the database that it is sent as.
pub(crate) trait SqlType {
    const TYPE: Type;
}

macro_rules! sql_types {
    ($($rust:ty => $sql:ident),* $(,)?) => { $(impl SqlType for $rust { const TYPE: Type = Type::$sql; })* };
}

sql_types! {
    bool => BOOL,
    i32 => INT4,
    i64 => INT8,
    f64 => FLOAT8,
    str => TEXT,
    String => TEXT,
    Uuid => UUID,
    [u8] => BYTEA,
    Vec<u8> => BYTEA,
    Vec<i64> => INT8_ARRAY,
    Vec<f64> => FLOAT8_ARRAY,
    Vec<Option<i64>> => INT8_ARRAY,
    Vec<String> => TEXT_ARRAY,
    Vec<Option<String>> => TEXT_ARRAY,
    Vec<Uuid> => UUID_ARRAY,
    Vec<&Uuid> => UUID_ARRAY,
    Vec<Vec<u8>> => BYTEA_ARRAY,
}

impl<T: SqlType + ?Sized> SqlType for &T {
    const TYPE: Type = T::TYPE;
}

impl<T: SqlType> SqlType for Option<T> {
    const TYPE: Type = T::TYPE;
}

/// A parameter of a statement.
pub(crate) trait Param: ToSql + Send + Sync {
    fn sql_type(&self) -> Type;
}

impl<T: SqlType + ToSql + Send + Sync> Param for T {
    fn sql_type(&self) -> Type {
        T::TYPE
    }
}

/// Parameters of a prepared statement.
pub(crate) fn values<'a>(params: impl IntoIterator<Item = &'a dyn Param>) -> Vec<&'a (dyn ToSql + Sync)> {
    params.into_iter().map(|param| param as &(dyn ToSql + Sync)).collect()
}

/// Parameters of a statement without a name.
pub(crate) fn typed<'a>(params: impl IntoIterator<Item = &'a dyn Param>) -> Vec<(&'a (dyn ToSql + Sync), Type)> {
    params.into_iter().map(|param| (param as &(dyn ToSql + Sync), param.sql_type())).collect()
}
