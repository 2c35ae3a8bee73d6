//! `chorusctl man`: renders manual pages from the clap command.

use std::fs;
use std::path::{Path, PathBuf};

use clap_mangen::Man;

use crate::app::App;
use crate::cli;
use crate::error::{Error, os_error_text};
use crate::ui::sanitize;

/// Print or install man pages
///
/// To read it: chorusctl man | man -l -
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Write the pages of all commands to this directory, e.g. ~/.local/share/man/man1
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
}

pub fn run(args: &Args, app: &mut App) -> Result<(), Error> {
    let tree = cli::command_tree();
    let Some(dir) = &args.output else {
        let mut page = Vec::new();
        man_page(tree).render(&mut page).map_err(Error::for_stdout)?;
        return app.stdout.text(&String::from_utf8_lossy(&page));
    };
    let failed = |error: &std::io::Error| {
        Error::failed(format!("failed to write the pages to {}: {}", dir.display(), os_error_text(error)))
    };
    fs::create_dir_all(dir).map_err(|error| failed(&error))?;
    let pages = write_pages(&tree, dir).map_err(|error| failed(&error))?;
    app.stdout.status_line(&format!("wrote {pages} pages to {}", sanitize::one_line(&dir.to_string_lossy())))
}

/// Writes the page of `command` and of all its subcommands; returns how many were written.
fn write_pages(command: &clap::Command, dir: &Path) -> std::io::Result<usize> {
    let mut pages = 1;
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        pages += write_pages(below, dir)?;
    }
    man_page(command.clone()).generate_to(dir)?;
    Ok(pages)
}

fn man_page(command: clap::Command) -> Man {
    Man::new(command).source(concat!("chorusctl ", env!("CARGO_PKG_VERSION"))).manual("Chorus")
}
