//! `cargo xtask retrieval`: measures how well `search` finds what answers a question.

mod corpus;
mod evaluate;
mod formats;
mod mode;
mod plant;
mod report;
mod vectors;

use std::path::PathBuf;

use self::mode::Mode;
use crate::error::Result;
use crate::shell::Shell;
use crate::workspace;

/// Conversations and questions of our own making, below the root of the workspace.
const OWN_CORPUS: &str = "xtask/src/retrieval/own.json";

/// Measure how well the search finds what answers a question
///
/// Reads conversations with questions in the format of LoCoMo or LongMemEval: a file, or a directory of such files. With --plant, reads
/// conversations without questions, and plants 200 facts with a question about each. Each set of conversations is indexed as those of one
/// agent, and each question is searched among them. Prints the share of the turns with the answer among the first hits, the share of
/// questions with a right session among the first, and the time of a search.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A file or directory [default: a small set of our own]
    #[arg(value_name = "FILE")]
    path: Option<PathBuf>,
    /// Plant facts into the conversations of this directory, each a JSON list of messages with `role` and `content`
    #[arg(long, value_name = "DIR", conflicts_with = "path")]
    plant: Option<PathBuf>,
    /// Also measure the search by meaning, with the sentence transformer in this directory
    #[arg(long, value_name = "DIR")]
    model: Option<PathBuf>,
    /// Measure only this way of searching [default: text, with --model all]
    #[arg(long, value_name = "MODE")]
    mode: Vec<Mode>,
    /// Leave out the questions of a category, for example those that have no answer
    #[arg(long, value_name = "CATEGORY")]
    without: Vec<String>,
    /// Print each question of which nothing was found among the first 10
    #[arg(long)]
    missed: bool,
}

pub fn run(args: &Args, shell: &Shell) -> Result<()> {
    let path = match args.path.as_ref().or(args.plant.as_ref()) {
        Some(path) => path.clone(),
        None => workspace::root()?.join(OWN_CORPUS),
    };
    if shell.dry_run {
        return report::line(&format!("would measure {}", path.display()));
    }
    let mut corpus = match &args.plant {
        Some(dir) => vec![plant::read(dir)?],
        None => formats::read(&path)?,
    };
    for sample in &mut corpus {
        sample.questions.retain(|question| !args.without.contains(&question.category));
    }
    let model = args.model.as_deref().map(vectors::load).transpose()?;
    let mut modes = if args.mode.is_empty() { Mode::ALL.to_vec() } else { args.mode.clone() };
    modes.retain(|mode| model.is_some() || !mode.needs_model());
    let measured = evaluate::evaluate(&corpus, &modes, model.as_ref())?;
    if args.missed {
        report::missed(&corpus, &measured)?;
    }
    report::tables(&measured)?;
    if args.path.is_none() && args.plant.is_none() {
        report::line("")?;
        report::line("planted facts: not run; name a directory of conversations with --plant")?;
        report::line("LoCoMo, LongMemEval: not run; name a file")?;
    }
    if model.is_none() {
        report::line("semantic, hybrid: not run; name a directory with a sentence transformer with --model")?;
    }
    Ok(())
}
