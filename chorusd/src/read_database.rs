//! `chorusd read-database`, which `chorusctl import` runs: reads the conversations of another program's database. The daemon's
//! program has SQLite, and `chorusctl` does not.

use std::ffi::OsString;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use chorus_base::error::{Error, Result};
use chorus_tool_databases::{ConversationDatabase, DatabaseError};
use clap::Parser;

use crate::cli::print_error;

/// Reader of other programs' databases, for chorusctl
#[derive(Debug, Parser)]
#[command(name = "chorusd read-database")]
struct Args {
    /// The database
    #[arg(value_name = "PATH")]
    database: PathBuf,
    /// Print this conversation; otherwise list all of them, each a line of JSON
    #[arg(long, value_name = "ID")]
    conversation: Option<String>,
}

/// Reads a database if the arguments of the program ask for it.
pub(crate) fn run_if_asked() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    (arguments.next()? == "read-database").then(|| main(arguments))
}

fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let args = Args::parse_from(std::iter::once("chorusd read-database".into()).chain(arguments));
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => print_error(&failure),
    }
}

fn run(args: &Args) -> Result<()> {
    let name = args.database.display();
    let failed = |error: DatabaseError| Error::invalid(format!("cannot read {name}: {error}"));
    let database = ConversationDatabase::open(&args.database).map_err(failed)?;
    let mut out = BufWriter::new(io::stdout().lock());
    match &args.conversation {
        Some(id) => database.write_document(id, &mut out).map_err(failed)?,
        None => {
            for entry in database.list().map_err(failed)? {
                let line = serde_json::to_string(&entry).map_err(|e| Error::internal(e.to_string()))?;
                writeln!(out, "{line}").map_err(|e| Error::io("cannot print the list", &e))?;
            }
        }
    }
    out.flush().map_err(|e| Error::io("cannot print the conversation", &e))
}
