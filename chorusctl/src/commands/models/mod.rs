//! `chorusctl models`: one module per subcommand; the default is `list`.

use std::collections::BTreeMap;

use chorus_proto::methods::models::{Discovery, Model, ModelProvider, ModelsResult, Price};

use crate::app::App;
use crate::error::Error;
use crate::ui::units::pluralize;
use crate::ui::{Cell, Column, Style, Table, sanitize};

pub mod add;
mod config_file;
pub mod list;
pub mod validate;

group! {
    /// List models, add a model provider, and check API keys
    enum Verb or list {
        /// List models (default)
        List(list::Args),
        /// Add a model provider, such as a server on this machine or a service
        Add(add::Args),
        /// Test each provider's API key by listing its models (free of charge)
        Validate(validate::Args),
    }
}

const COLUMNS: [Column; 5] = [
    Column::new("MODEL"),
    Column::new("CONTEXT").align_right(),
    Column::new("INPUT").align_right(),
    Column::new("OUTPUT").align_right(),
    Column::new("ALIASES").flexible().optional(),
];

/// Prints one line per provider, then the models as a table.
fn print_models(mut table: Table, app: &mut App, found: &ModelsResult) -> Result<(), Error> {
    if found.providers.is_empty() {
        app.stderr.line("no model provider configured");
        app.stderr.hint(
            "for Anthropic, `export ANTHROPIC_API_KEY=…` and `chorusctl daemon restart`; for a server of your own, \
             `chorusctl models add local http://localhost:11434/v1`",
        );
        return Ok(());
    }
    let width = found.providers.iter().map(|provider| provider.name.chars().count()).max().unwrap_or(0);
    for provider in &found.providers {
        print_provider(app, provider, width)?;
    }
    if found.providers.iter().any(|provider| provider.found == Discovery::NotRun) {
        app.stdout.flush()?;
        app.stderr.hint("check now: chorusctl models validate");
    }
    let models: Vec<&Model> = found.providers.iter().flat_map(|provider| &provider.models).collect();
    if models.is_empty() {
        return Ok(());
    }
    app.stdout.text("\n")?;
    let called = aliases_by_model(found);
    for model in models {
        let price =
            |of: fn(&Price) -> f64| model.price.as_ref().map(|price| format_price(of(price))).unwrap_or_default();
        table.add_row([
            Cell::new(Style::Strong, sanitize::one_line(&model.name)),
            model.context_length.map(|tokens| tokens.to_string()).unwrap_or_default().into(),
            price(|price| price.input).into(),
            price(|price| price.output).into(),
            called.get(&*model.name).map(|names| sanitize::one_line(&names.join(", "))).unwrap_or_default().into(),
        ]);
    }
    table.write(&mut app.stdout)?;
    if found.providers.iter().any(|provider| provider.models.iter().any(|model| model.price.is_some())) {
        app.stdout.text("\nprices in US dollars per million tokens\n")?;
    }
    Ok(())
}

fn print_provider(app: &mut App, provider: &ModelProvider, width: usize) -> Result<(), Error> {
    let (word, style) = match provider.found {
        Discovery::Ok => ("ok  ", Style::Good),
        Discovery::Failed => ("FAIL", Style::Bad),
        Discovery::NotRun => ("?   ", Style::Faint),
    };
    let text = match (&provider.problem, provider.found) {
        (Some(problem), _) => sanitize::one_line(problem),
        (None, Discovery::NotRun) => "not checked yet".to_owned(),
        (None, _) => {
            let local = if provider.local { "found on this machine, " } else { "" };
            let models = pluralize(provider.models.len() as u64, "model");
            let key = match &provider.key_from {
                Some(place) => format!("key in {}", sanitize::one_line(place)),
                None => "no key".to_owned(),
            };
            format!("{local}{models}, {}, {key}", sanitize::one_line(&provider.base_url))
        }
    };
    let name = format!("{:width$}", sanitize::one_line(&provider.name));
    let verdict = app.stdout.style(style, word).to_string();
    app.stdout.text(&format!("{verdict}  {name}  "))?;
    let indent = 8 + width;
    app.stdout.sentence(indent, &text)?;
    let Some(hint) = &provider.hint else { return Ok(()) };
    app.stdout.text(&" ".repeat(indent))?;
    app.stdout.sentence(indent, &format!("hint: {}", sanitize::one_line(hint)))
}

/// Maps each model to its aliases, and to `default` if it is the default model.
fn aliases_by_model(found: &ModelsResult) -> BTreeMap<&str, Vec<&str>> {
    let mut names: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    if let Some(default) = &found.default_model {
        let default = found.aliases.get(default).unwrap_or(default);
        names.entry(default).or_default().push("default");
    }
    for (alias, model) in &found.aliases {
        names.entry(model).or_default().push(alias);
    }
    names
}

/// Formats a price with up to four decimals and no trailing zeros: `3`, `0.25`.
fn format_price(amount: f64) -> String {
    let text = format!("{amount:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_have_the_digits_they_need() {
        assert_eq!([3.0, 0.25, 0.0, 75.0, 0.00004].map(format_price), ["3", "0.25", "0", "75", "0"]);
    }
}
