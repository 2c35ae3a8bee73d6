//! What aider itself says in its history: the model, and what a reply used.

use chorus_proto::Usage;

/// The meaning of a notice.
#[derive(Debug, PartialEq)]
pub(super) enum Notice<'a> {
    Model(&'a str),
    Usage(Usage),
    /// Applied edits, commits, files that were added.
    Other(&'a str),
}

impl<'a> Notice<'a> {
    pub(super) fn parse(text: &'a str) -> Self {
        let model = text.strip_prefix("Model: ").or_else(|| text.strip_prefix("Main model: "));
        if let Some(model) = model {
            return Self::Model(model.split(" with ").next().unwrap_or(model).trim());
        }
        text.strip_prefix("Tokens: ").and_then(parse_usage).map_or(Self::Other(text), Self::Usage)
    }
}

/// Parses `2.4k sent, 1.1k cache hit, 350 received. Cost: $0.0012 message, $0.0034 session.`
fn parse_usage(text: &str) -> Option<Usage> {
    let (tokens, cost) = text.split_once("Cost: $").unwrap_or((text, ""));
    let count = |of: &str| {
        let part = tokens.split(", ").find_map(|part| part.trim().trim_end_matches('.').strip_suffix(of))?;
        parse_count(part.trim())
    };
    let usage = Usage {
        input_tokens: count("sent"),
        output_tokens: count("received"),
        cache_read_tokens: count("cache hit"),
        cost_usd: cost.split(' ').next().and_then(|cost| cost.parse().ok()),
        ..Usage::default()
    };
    usage.input_tokens.is_some().then_some(usage)
}

/// Parses a number, which aider rounds to thousands if it is large.
fn parse_count(text: &str) -> Option<u64> {
    let (number, factor) = text.strip_suffix('k').map_or((text, 1.0), |number| (number, 1000.0));
    let number: f64 = number.replace(',', "").parse().ok()?;
    (0.0..1e12).contains(&number).then_some((number * factor).round() as u64)
}
