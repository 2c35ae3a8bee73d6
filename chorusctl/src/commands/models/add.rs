//! `chorusctl models add`: adds a provider to config.toml, has the daemon read it and chooses a default model.

use std::path::PathBuf;

use chorus_proto::methods::config::{Reload, ReloadParams};
use chorus_proto::methods::models::{Discovery, ModelProvider, ModelsParams, Validate};
use chorus_proto::methods::settings::{Set, SetParams};
use chorus_proto::shell_word::shell_word;
use clap::ValueEnum;
use serde::Serialize;
use serde_json::value::to_raw_value;

use super::config_file::{AppendedProvider, ProviderTable, append_provider};
use crate::app::App;
use crate::commands::daemon::restart;
use crate::connect;
use crate::error::Error;
use crate::ui::sanitize;
use crate::ui::stdout::OutputFormat;
use crate::ui::units::pluralize;

/// Providers whose protocol and address are known.
const KNOWN: [&str; 2] = ["anthropic", "openai"];
/// Models that are named in the line about the server.
const MAX_NAMED_MODELS: usize = 8;

/// Add a model provider, such as a server on this machine or a service
///
/// Appends `[providers.NAME]` to config.toml (creates the file if there is none), checks the result, has the daemon read it and lists the
/// provider's models. Running turns continue, unless the key is in an environment variable that the daemon does not have: then it is restarted. If no default model is set and the provider has exactly one model, that becomes
/// the default; --default sets another.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  chorusctl models add local http://localhost:11434/v1            Ollama\n  \
                        chorusctl models add local http://localhost:8080/v1             llama.cpp\n  \
                        chorusctl models add openai                                     uses OPENAI_API_KEY\n  \
                        chorusctl models add router https://openrouter.ai/api/v1 --key-env OPENROUTER_API_KEY")]
pub struct Args {
    /// Name of the provider; its models are called NAME/MODEL
    name: String,
    /// Address of the server, for example http://localhost:11434/v1 [default: for anthropic and openai, that of the service]
    base_url: Option<String>,
    /// Protocol; openai means chat completions, which most servers speak [default: openai; for the name anthropic: anthropic]
    #[arg(long)]
    kind: Option<Kind>,
    /// Environment variable with the API key [default: OPENAI_API_KEY or ANTHROPIC_API_KEY for these services, otherwise no key]
    #[arg(long, value_name = "VARIABLE", conflicts_with = "key_file")]
    key_env: Option<String>,
    /// File with the API key, instead of --key-env
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    key_file: Option<PathBuf>,
    /// Make this model of the provider the default model [default: the current one, otherwise the only model]
    #[arg(long, value_name = "MODEL")]
    default: Option<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Kind {
    Openai,
    Anthropic,
}

/// The result as JSON.
#[derive(Serialize)]
struct Report<'a> {
    config: String,
    provider: &'a ModelProvider,
    default_model: Option<&'a str>,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    app.refuse_host("models add")?;
    let table = provider_table(&args)?;
    let appended = append_provider(&table, app.global.socket.as_deref())?;
    print_appended(app, &table.name, &appended)?;
    apply(app)?;
    let mut found = app.call::<Validate>(&ModelsParams {})?;
    if needs_environment(&args, found.providers.iter().find(|provider| provider.name == table.name)) {
        let verb = restart::restart(app)?;
        status_line(app, &format!("{verb} the daemon, which did not have the key in its environment"))?;
        found = app.call::<Validate>(&ModelsParams {})?;
    }
    let Some(provider) = found.providers.into_iter().find(|provider| provider.name == table.name) else {
        return Err(Error::failed(format!("the daemon does not use {}", appended.file.display()))
            .with_hint("see which file it uses: chorusctl config path"));
    };
    if provider.found != Discovery::Ok {
        if let Some(model) = &args.default {
            let model = reference(&provider, model);
            store_default(app, &model)?;
            app.stdout.flush()?;
            app.stderr
                .warning(&format!("the provider did not answer, so {} was not checked", sanitize::one_line(&model)));
        }
        let problem = provider.problem.as_deref().unwrap_or("it did not answer");
        let error = Error::failed(sanitize::one_line(problem)).with_detail("the provider was added anyway");
        return Err(match provider.hint {
            Some(hint) => error.with_hint(format!("{hint}; then: chorusctl models validate")),
            None => error.with_hint("start the server, then: chorusctl models validate"),
        });
    }
    let default = set_default(app, &args, &provider, found.default_model)?;
    if app.stdout.format() == OutputFormat::Text {
        return Ok(());
    }
    let config = appended.file.to_string_lossy().into_owned();
    let report = Report { config, provider: &provider, default_model: default.as_deref() };
    let json = to_raw_value(&report).map_err(chorus_proto::CallError::from)?;
    app.stdout.json_line(&json)
}

/// Has the running daemon read the file again. If none is running, the next command starts one, which reads it.
fn apply(app: &mut App) -> Result<(), Error> {
    let running = connect::connect_if_running(app.paths()?, &app.global)?;
    let Some(client) = running else {
        let verb = restart::restart(app)?;
        return status_line(app, &format!("{verb} the daemon"));
    };
    app.set_client(client);
    let reloaded = app.call::<Reload>(&ReloadParams {});
    match reloaded {
        Ok(_) => status_line(app, "the daemon uses it now"),
        // An older daemon, or one that was started with another environment, where the key is missing.
        Err(error) => Err(error.with_detail("the provider was added to the file anyway")),
    }
}

/// Returns true if the key is in the environment of this shell, and the daemon says that it is not in its own.
fn needs_environment(args: &Args, provider: Option<&ModelProvider>) -> bool {
    let variable = match (&args.key_env, &args.key_file, &*args.name) {
        (Some(variable), ..) => variable.as_str(),
        (None, None, "anthropic") => "ANTHROPIC_API_KEY",
        (None, None, "openai") => "OPENAI_API_KEY",
        _ => return false,
    };
    let is_set_here = std::env::var_os(variable).is_some_and(|value| !value.is_empty());
    let problem = provider.and_then(|provider| provider.problem.as_deref());
    is_set_here
        && problem
            .is_some_and(|problem| problem.contains(&format!("{variable} is not set in the daemon's environment")))
}

/// Builds the table of config.toml.
fn provider_table(args: &Args) -> Result<ProviderTable, Error> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if args.name.is_empty() || !args.name.chars().all(plain) {
        return Err(Error::usage(format!("not a name for a provider: {:?}", args.name))
            .with_hint("use letters, digits, - and _, for example: local"));
    }
    if args.base_url.is_none() && !KNOWN.contains(&&*args.name) {
        return Err(Error::usage(format!("the address of {} is missing", args.name))
            .with_hint(format!("for example: chorusctl models add {} http://localhost:11434/v1", args.name)));
    }
    let kind = match args.kind {
        Some(Kind::Anthropic) => "anthropic",
        None if args.name == "anthropic" => "anthropic",
        Some(Kind::Openai) | None => "openai",
    };
    let mut keys = vec![("kind", quote(kind))];
    keys.extend(args.base_url.as_deref().map(|url| ("base_url", quote(url))));
    if let Some(variable) = &args.key_env {
        if std::env::var_os(variable).is_none_or(|value| value.is_empty()) {
            // The value may be the key itself, by mistake: it is not repeated.
            return Err(Error::usage("--key-env must name an environment variable that is set")
                .with_hint("export the variable first, or use --key-file FILE"));
        }
        keys.push(("api_key_env", quote(variable)));
    }
    if let Some(file) = &args.key_file {
        let name = file.display().to_string();
        let file = file.canonicalize().map_err(|error| Error::for_file(&name, &error))?;
        keys.push(("api_key_file", quote(&file.to_string_lossy())));
    }
    Ok(ProviderTable { name: args.name.clone(), keys })
}

/// Quotes a text for TOML, whose basic strings have the escapes of JSON.
fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn print_appended(app: &mut App, name: &str, appended: &AppendedProvider) -> Result<(), Error> {
    let file = sanitize::one_line(&appended.file.to_string_lossy());
    let created = if appended.created { " (a new file)" } else { "" };
    status_line(app, &format!("added [providers.{name}] to {file}{created}"))?;
    match appended.kept {
        Some(kept) => status_line(app, &format!("added [providers.{kept}] too, so that its models stay")),
        None => Ok(()),
    }
}

/// Prints the models of the server and sets the default model if it is named or the choice is clear. Returns the default
/// model.
fn set_default(
    app: &mut App,
    args: &Args,
    provider: &ModelProvider,
    current: Option<String>,
) -> Result<Option<String>, Error> {
    let names: Vec<&str> = provider.models.iter().map(|model| &*model.name).collect();
    let shown = names.iter().take(MAX_NAMED_MODELS).copied().collect::<Vec<_>>().join(", ");
    let more = names.len().saturating_sub(MAX_NAMED_MODELS);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let colon = if names.is_empty() { "" } else { ": " };
    let count = pluralize(names.len() as u64, "model");
    status_line(app, &format!("found {count}{colon}{}{more}", sanitize::one_line(&shown)))?;
    let model = match (&args.default, &current, &*names) {
        (Some(named), ..) => reference(provider, named),
        (None, None, [only]) => (*only).to_owned(),
        (None, None, [first, ..]) => {
            app.stdout.flush()?;
            let first = shell_word(first);
            app.stderr.hint(&format!("choose the default: chorusctl config set default_model {first}"));
            return Ok(None);
        }
        (None, None, []) => {
            app.stdout.flush()?;
            app.stderr.hint("load a model into the server, then: chorusctl models validate");
            return Ok(None);
        }
        (None, Some(current), _) => {
            let line = format!("the default model stays {}", sanitize::one_line(current));
            return status_line(app, &line).map(|()| Some(current.clone()));
        }
    };
    store_default(app, &model)?;
    Ok(Some(model))
}

/// Returns the reference `provider/model` to the model that the user named, with or without the provider. An id of a model
/// may itself start with the provider's name: `openrouter/auto` of `openrouter`.
fn reference(provider: &ModelProvider, named: &str) -> String {
    let prefix = format!("{}/", provider.name);
    let full = format!("{prefix}{named}");
    let lists = |name: &str| provider.models.iter().any(|model| model.name == name);
    if named.starts_with(&prefix) && (lists(named) || !lists(&full)) { named.to_owned() } else { full }
}

/// Makes `model` the default model and says so.
fn store_default(app: &mut App, model: &str) -> Result<(), Error> {
    let command = Some("models add".to_owned());
    let set = app.call::<Set>(&SetParams { key: "default_model".to_owned(), value: model.into(), command })?;
    status_line(app, &format!("default model: {}", sanitize::one_line(model)))?;
    if let Some(variable) = &set.overridden_by {
        let variable = sanitize::one_line(variable);
        app.stderr.warning(&format!("{variable} in the daemon's environment overrides the default model"));
    }
    Ok(())
}

/// Prints a line about what was done, unless the output is JSON.
fn status_line(app: &mut App, line: &str) -> Result<(), Error> {
    match app.stdout.format() {
        OutputFormat::Text => app.stdout.status_line(line),
        OutputFormat::Json | OutputFormat::Jsonl => Ok(()),
    }
}
