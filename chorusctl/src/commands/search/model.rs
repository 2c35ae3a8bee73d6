//! `chorusctl search model`: the model by which messages are found by their meaning.

use std::path::PathBuf;

use chorus_proto::methods::search::{EmbeddingModel, EmbeddingSource, Model, ModelParams};

use crate::app::App;
use crate::error::Error;
use crate::ui::sanitize;
use crate::ui::units::count_messages;

/// Show or choose the model that finds messages by their meaning
///
/// With a model, a search also finds messages that say the same in other words. A sentence transformer runs in the daemon, offline; its files are copied
/// into the Chorus home. A model of a provider with the API of OpenAI, such as Ollama, gets the texts of all messages. Messages are prepared for it
/// in the background; until that is done, only words count, or the former model.
#[derive(Debug, Default, clap::Args)]
#[command(
    after_help = "Examples:\n  chorusctl search model                            which one is chosen, and how far it is\n  \
    chorusctl search model --from all-MiniLM-L6-v2    a directory with model.onnx and tokenizer.json\n  \
    chorusctl search model --use ollama/nomic-embed-text\n  \
    chorusctl search -- model                         searches for the word \"model\""
)]
pub struct Args {
    /// Use the sentence transformer in this directory
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath, group = "choice")]
    from: Option<PathBuf>,
    /// Use a model of a provider, e.g. ollama/nomic-embed-text
    #[arg(long = "use", value_name = "MODEL", group = "choice")]
    use_: Option<String>,
    /// Find messages by their words only, and delete what was prepared
    #[arg(long, group = "choice")]
    remove: bool,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    if args.from.is_some() {
        app.refuse_host("search model --from DIR")?;
    }
    let is_chosen = args.from.is_some() || args.use_.is_some();
    let from = args.from.map(|dir| absolute(&dir)).transpose()?;
    let params = ModelParams { from, use_: args.use_, remove: args.remove };
    app.call_and_print::<Model>(&params, |app, result| {
        let Some(model) = result.model else {
            if let Some(problem) = result.problem {
                writeln!(app.stdout, "not working: {}", sanitize::one_line(&problem))?;
                app.stderr.hint(
                    "choose the model again: `chorusctl search model --from DIR` or `chorusctl search model --use MODEL`",
                );
                return Ok(());
            }
            writeln!(app.stdout, "no model: messages are found by their words only")?;
            app.stderr.hint("choose one: `chorusctl search model --from DIR` or `chorusctl search model --use MODEL`");
            return Ok(());
        };
        writeln!(app.stdout, "{}", describe(&model))?;
        if is_chosen && !model.complete {
            app.stderr.hint("see how far it is: `chorusctl search model`");
        }
        Ok(())
    })
}

/// Returns the absolute path of a directory.
fn absolute(dir: &std::path::Path) -> Result<String, Error> {
    let unusable = |why: &dyn std::fmt::Display| {
        Error::usage(format!("cannot use {}: {why}", dir.display()))
            .with_hint("name a directory with model.onnx and tokenizer.json of a sentence transformer")
    };
    let dir = dir.canonicalize().map_err(|error| unusable(&error))?;
    dir.into_os_string().into_string().map_err(|_| unusable(&"its name is not UTF-8"))
}

/// Formats `all-MiniLM-L6-v2 in the daemon, 384 dimensions: 88,112 messages to prepare`.
fn describe(model: &EmbeddingModel) -> String {
    let place = match model.source {
        EmbeddingSource::Local => "in the daemon",
        EmbeddingSource::Provider => "of a provider",
    };
    let progress = match (&model.problem, model.waiting) {
        (Some(problem), _) => format!("not working: {}", sanitize::one_line(problem)),
        (None, _) if model.complete => "all messages are prepared".to_owned(),
        (None, Some(waiting)) => format!("{} to prepare", count_messages(waiting)),
        (None, None) => "starting".to_owned(),
    };
    let former = model.replaces.as_ref().map(|name| format!("; until then, {}", sanitize::one_line(name)));
    format!(
        "{} {place}, {} dimensions: {progress}{}",
        sanitize::one_line(&model.name),
        model.dimensions,
        former.unwrap_or_default()
    )
}

/// Formats `search by meaning: 88,112 messages to prepare`; `None` if nothing is to be told.
#[must_use]
pub fn progress_line(model: &EmbeddingModel) -> Option<String> {
    match (&model.problem, model.waiting) {
        (Some(problem), _) => Some(format!("search by meaning is not working: {}", sanitize::one_line(problem))),
        (None, Some(waiting)) if waiting > 0 => {
            Some(format!("search by meaning: {} to prepare", count_messages(waiting)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_of_a_model_is_told() {
        let model = EmbeddingModel {
            name: "all-MiniLM-L6-v2".into(),
            source: EmbeddingSource::Local,
            dimensions: 384,
            complete: false,
            waiting: Some(88_112),
            replaces: Some("ollama/nomic-embed-text".into()),
            problem: None,
        };
        assert_eq!(
            describe(&model),
            "all-MiniLM-L6-v2 in the daemon, 384 dimensions: 88,112 messages to prepare; until then, ollama/nomic-embed-text"
        );
        assert_eq!(progress_line(&model).as_deref(), Some("search by meaning: 88,112 messages to prepare"));
        let done = EmbeddingModel { complete: true, waiting: Some(0), replaces: None, ..model.clone() };
        assert!(describe(&done).ends_with(": all messages are prepared") && progress_line(&done).is_none());
        let failed = EmbeddingModel { problem: Some("it is\ngone".into()), replaces: None, ..model };
        assert!(describe(&failed).ends_with(": not working: it is gone"), "{}", describe(&failed));
    }
}
