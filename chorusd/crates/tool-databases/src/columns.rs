//! Reads columns that not every version of a tool has.

use std::io::Write;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};

use crate::Result;

/// The names of a table's columns.
#[derive(Debug)]
pub(crate) struct TableColumns(Vec<String>);

/// Returns the columns of a table; none if it does not exist.
pub(crate) fn of_table(connection: &Connection, table: &str) -> Result<TableColumns> {
    let mut statement = connection.prepare("select name from pragma_table_info(?1)")?;
    let names = statement.query_map([table], |row| row.get(0))?;
    Ok(TableColumns(names.collect::<std::result::Result<_, _>>()?))
}

impl TableColumns {
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|column| column == name)
    }

    /// Returns the list of columns for a `select`, with `null` for each that does not exist.
    pub(crate) fn select(&self, wanted: &[&str]) -> String {
        let columns =
            wanted.iter().map(|name| if self.has(name) { (*name).to_owned() } else { format!("null as {name}") });
        columns.collect::<Vec<_>>().join(", ")
    }
}

/// Writes a row as the fields of a JSON object, without those that are null. The values of `json` are written as they are
/// if they are valid JSON.
pub(crate) fn write_fields(out: &mut dyn Write, row: &Row<'_>, names: &[&str], json: &[&str]) -> Result<()> {
    let mut comma = "";
    for (at, name) in names.iter().enumerate() {
        let value = row.get_ref(at)?;
        if value == ValueRef::Null {
            continue;
        }
        write!(out, "{comma}\"{name}\":")?;
        comma = ",";
        match value {
            ValueRef::Integer(number) => write!(out, "{number}")?,
            ValueRef::Real(number) if number.is_finite() => serde_json::to_writer(&mut *out, &number)?,
            ValueRef::Text(text) | ValueRef::Blob(text) => {
                let text = String::from_utf8_lossy(text);
                if json.contains(name) && is_json(&text) {
                    out.write_all(text.as_bytes())?;
                } else {
                    serde_json::to_writer(&mut *out, &text)?;
                }
            }
            ValueRef::Real(_) | ValueRef::Null => out.write_all(b"null")?,
        }
    }
    Ok(())
}

/// Returns whether a text is one JSON value.
pub(crate) fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}
