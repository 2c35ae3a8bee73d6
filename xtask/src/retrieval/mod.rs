//! `cargo xtask retrieval`: measures how well `search` finds what answers a question.

mod corpus;
mod evaluate;
mod formats;
mod report;

use std::path::PathBuf;

use crate::error::Result;
use crate::shell::Shell;
use crate::workspace;

/// Conversations and questions of our own making, below the root of the workspace.
const OWN_CORPUS: &str = "xtask/src/retrieval/own.json";

/// Measure how well the search finds what answers a question
///
/// Reads conversations with questions in the format of LoCoMo or LongMemEval: a file, or a directory of such files. Each conversation
/// is indexed as those of one agent, and each question is searched among them by its words. Prints the share of the turns
/// with the answer among the first hits, the share of questions with a right session among the first, and the time of a search.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A file or directory [default: a small set of our own]
    #[arg(value_name = "FILE")]
    path: Option<PathBuf>,
    /// Leave out the questions of a category, for example those that have no answer
    #[arg(long, value_name = "CATEGORY")]
    without: Vec<String>,
    /// Print each question of which nothing was found among the first 10
    #[arg(long)]
    missed: bool,
}

pub fn run(args: &Args, shell: &Shell) -> Result<()> {
    let path = match &args.path {
        Some(path) => path.clone(),
        None => workspace::root()?.join(OWN_CORPUS),
    };
    if shell.dry_run {
        return report::line(&format!("would measure {}", path.display()));
    }
    let mut corpus = formats::read(&path)?;
    for sample in &mut corpus {
        sample.questions.retain(|question| !args.without.contains(&question.category));
    }
    let measured = evaluate::evaluate(&corpus)?;
    if args.missed {
        report::missed(&corpus, &measured)?;
    }
    report::table(&measured)
}
