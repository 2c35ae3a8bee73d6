//! The description of a table that both databases have: its columns there and there, and the order of its rows.

use crate::value::{Kind, Row, Value};

/// The file of SQLite that has a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum File {
    Journal,
    Catalog,
}

/// A column. Expressions are those by which it is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    pub(crate) kind: Kind,
    pub(crate) sqlite: &'static str,
    pub(crate) postgres: &'static str,
    pub(crate) read_sqlite: &'static str,
    pub(crate) read_postgres: &'static str,
    /// The value to insert there, with `?` for that of the column.
    pub(crate) write_postgres: &'static str,
    /// False if the two may differ.
    pub(crate) is_compared: bool,
}

impl Column {
    /// A column with the same name in both.
    pub(crate) const fn new(name: &'static str, kind: Kind) -> Self {
        Self::renamed(name, name, kind)
    }

    pub(crate) const fn renamed(sqlite: &'static str, postgres: &'static str, kind: Kind) -> Self {
        Self {
            kind,
            sqlite,
            postgres,
            read_sqlite: sqlite,
            read_postgres: postgres,
            write_postgres: "?",
            is_compared: true,
        }
    }

    pub(crate) const fn read_sqlite(self, expression: &'static str) -> Self {
        Self { read_sqlite: expression, ..self }
    }

    pub(crate) const fn read_postgres(self, expression: &'static str) -> Self {
        Self { read_postgres: expression, ..self }
    }

    pub(crate) const fn write_postgres(self, expression: &'static str) -> Self {
        Self { write_postgres: expression, ..self }
    }

    pub(crate) const fn not_compared(self) -> Self {
        Self { is_compared: false, ..self }
    }
}

/// Columns of PostgreSQL that are derived from the others of a row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Derived {
    pub(crate) columns: &'static [(&'static str, Kind)],
    /// Makes their values; the second parameter is the name of the node.
    pub(crate) values: fn(&[Value], &str) -> chorus_base::error::Result<Row>,
}

/// A table. `{node}` in a text for PostgreSQL is the name of the node as a literal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Table {
    /// As messages and the summary call it.
    pub(crate) name: &'static str,
    pub(crate) file: File,
    pub(crate) sqlite: &'static str,
    pub(crate) postgres: &'static str,
    /// The rows to read and to delete.
    pub(crate) sqlite_where: &'static str,
    pub(crate) postgres_where: &'static str,
    /// Number of columns at the start that identify a row. Rows are copied in their order.
    pub(crate) key: usize,
    pub(crate) columns: &'static [Column],
    /// Other columns of PostgreSQL with the expressions to insert, in which `c0` is the first column.
    pub(crate) constants: &'static [(&'static str, &'static str)],
    pub(crate) derived: Option<Derived>,
    pub(crate) form: Form,
}

/// Tables that need more than their columns say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Plain,
    /// Tags have a table in SQLite, and some columns are derived there, too.
    Sessions,
    /// Chains in SQLite, and numbers in PostgreSQL. The newest come first.
    Records,
    /// One row in PostgreSQL, and settings and counters in SQLite.
    DiscordState,
}

impl Table {
    /// A table with the same name in both.
    pub(crate) const fn new(name: &'static str, file: File, key: usize, columns: &'static [Column]) -> Self {
        Self {
            name,
            file,
            sqlite: name,
            postgres: name,
            sqlite_where: "true",
            postgres_where: "true",
            key,
            columns,
            constants: &[],
            derived: None,
            form: Form::Plain,
        }
    }

    pub(crate) const fn in_sqlite(self, sqlite: &'static str) -> Self {
        Self { sqlite, ..self }
    }

    pub(crate) const fn sqlite_where(self, condition: &'static str) -> Self {
        Self { sqlite_where: condition, ..self }
    }

    pub(crate) const fn postgres_where(self, condition: &'static str) -> Self {
        Self { postgres_where: condition, ..self }
    }

    pub(crate) const fn constants(self, constants: &'static [(&'static str, &'static str)]) -> Self {
        Self { constants, ..self }
    }

    pub(crate) const fn derived(self, derived: Derived) -> Self {
        Self { derived: Some(derived), ..self }
    }

    pub(crate) const fn form(self, form: Form) -> Self {
        Self { form, ..self }
    }

    /// Returns true if the rows are the same in both databases, as far as they are known.
    pub(crate) fn are_same(&self, a: &Row, b: &Row) -> bool {
        let is_same = |a: &Value, b: &Value| a == b || *a == Value::Unknown || *b == Value::Unknown;
        self.columns.iter().zip(a.iter().zip(b)).all(|(column, (a, b))| !column.is_compared || is_same(a, b))
    }

    /// Names a row for an error.
    pub(crate) fn describe(&self, row: &Row) -> String {
        let key: Vec<String> = row.iter().take(self.key).map(ToString::to_string).collect();
        format!("{} {}", self.name, key.join(", "))
    }
}
