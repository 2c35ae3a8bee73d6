//! The options that all commands with a table share: which columns and rows it has, in which order, and how wide it is.

use super::Column;
use crate::error::Error;
use crate::ui::stdout::OutputFormat;

/// Options that choose and order the columns and rows of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq, clap::Args)]
#[group(skip)]
pub struct RowArgs {
    /// Columns to show, in order, e.g. id,when
    #[arg(long, value_name = "COLUMN", value_delimiter = ',', help_heading = "Table options")]
    pub columns: Vec<String>,
    /// Sort by columns; -COLUMN for descending order
    #[arg(long, value_name = "COLUMN", value_delimiter = ',', allow_hyphen_values = true)]
    #[arg(help_heading = "Table options")]
    pub sort: Vec<String>,
    /// Only rows with this text, or COLUMN=TEXT
    #[arg(long, value_name = "TEXT", help_heading = "Table options")]
    pub filter: Vec<String>,
}

/// The same, for commands whose table can also be printed whole.
#[derive(Debug, Clone, Default, PartialEq, Eq, clap::Args)]
#[group(skip)]
pub struct TableArgs {
    #[command(flatten)]
    pub rows: RowArgs,
    /// Do not cut long cells
    #[arg(long, help_heading = "Table options")]
    pub long: bool,
}

impl RowArgs {
    /// Returns true if the rows that are shown, or their order, depend on all rows that there are.
    #[must_use]
    pub fn needs_all_rows(&self) -> bool {
        !self.sort.is_empty() || !self.filter.is_empty()
    }

    /// Returns true if the options name `column`.
    #[must_use]
    pub fn names(&self, column: &str) -> bool {
        let sorted = self.sort.iter().map(|name| name.trim_start_matches('-'));
        let filtered = self.filter.iter().filter_map(|text| Some(text.split_once('=')?.0));
        self.columns
            .iter()
            .map(String::as_str)
            .chain(sorted)
            .chain(filtered)
            .any(|name| name.eq_ignore_ascii_case(column))
    }

    /// Returns the options as words of a command line.
    #[must_use]
    pub fn to_words(&self) -> Vec<(&'static str, String)> {
        let lists = [("columns", &self.columns), ("sort", &self.sort)];
        let lists =
            lists.into_iter().filter(|(_, names)| !names.is_empty()).map(|(name, names)| (name, names.join(",")));
        lists.chain(self.filter.iter().map(|text| ("filter", text.clone()))).collect()
    }

    /// Returns true if a table is wanted where usually something else is printed.
    #[must_use]
    pub fn is_given(&self) -> bool {
        !self.columns.is_empty() || self.needs_all_rows()
    }
}

/// The columns of one table, as [`RowArgs`] choose them.
#[derive(Debug, Clone, Default)]
pub(super) struct Arrangement {
    /// Indexes of the columns to show; `None` shows those that are not empty.
    pub(super) chosen: Option<Vec<usize>>,
    /// Columns to sort by, and whether in descending order.
    pub(super) sort: Vec<(usize, bool)>,
    /// Texts, in lower case, that a row must have: in one column, or in any.
    pub(super) filters: Vec<(Option<usize>, String)>,
}

impl Arrangement {
    /// Finds the columns that the options name.
    ///
    /// # Errors
    /// There is no such column, or the output is not a table.
    pub(super) fn new(args: &RowArgs, columns: &[Column], format: OutputFormat) -> Result<Self, Error> {
        if format != OutputFormat::Text && args.is_given() {
            return Err(Error::usage("--columns, --sort and --filter are for tables, and JSON is not one")
                .with_hint("leave out --json, or select from the JSON, for example with jq"));
        }
        let chosen = args.columns.iter().map(|name| find(columns, name)).collect::<Result<Vec<_>, _>>()?;
        let mut sort = Vec::with_capacity(args.sort.len());
        for name in &args.sort {
            let (name, descending) = name.strip_prefix('-').map_or((&**name, false), |name| (name, true));
            sort.push((find(columns, name)?, descending));
        }
        let mut filters = Vec::with_capacity(args.filter.len());
        for text in &args.filter {
            let (column, text) = match text.split_once('=') {
                Some((name, text)) => (Some(find(columns, name)?), text),
                None => (None, &**text),
            };
            filters.push((column, text.to_lowercase()));
        }
        Ok(Self { chosen: (!chosen.is_empty()).then_some(chosen), sort, filters })
    }
}

fn find(columns: &[Column], name: &str) -> Result<usize, Error> {
    let wanted = name.trim().to_lowercase().replace([' ', '_'], "-");
    columns.iter().position(|column| column.name() == wanted).ok_or_else(|| {
        let names: Vec<String> = columns.iter().map(Column::name).collect();
        Error::usage(format!("no column is called {name:?}")).with_hint(format!("columns: {}", names.join(", ")))
    })
}
