//! Finds the price of a model by the name that another program gives it.
//!
//! Programs leave out the provider, name another one, or name a snapshot (`claude-opus-4-5-20251101`). The price table may
//! have the plain name with the provider (`anthropic/claude-opus-4-5`), or that of a router (`anthropic/claude-opus-4.5`).

use chorus_config::Price;

/// Returns the price of the model `name`, and the name that the table has for it: that of the same name, otherwise that of the same
/// model. `None` if several with different prices fit.
pub(crate) fn find<'a>(name: &str, prices: impl Iterator<Item = (&'a str, Price)> + Clone) -> Option<(&'a str, Price)> {
    let model = last_part(name);
    let same_name = prices.clone().filter(|(other, _)| last_part(other) == model);
    match only_price(same_name) {
        Match::None => {}
        Match::One(found) => return Some(found),
        Match::Several => return None,
    }
    let wanted = plain_name(model);
    match only_price(prices.filter(|(other, _)| plain_name(last_part(other)) == wanted)) {
        Match::One(found) => Some(found),
        Match::None | Match::Several => None,
    }
}

/// Returns a name by which a price for the model `name` can be set, so that [`find`] finds it for all snapshots of the model.
pub(crate) fn settable_name(name: &str) -> String {
    let model = plain_name(last_part(name));
    let begins_with = |prefixes: &[&str]| prefixes.iter().any(|prefix| model.starts_with(prefix));
    let provider = if begins_with(&["claude"]) {
        "anthropic"
    } else if begins_with(&["gpt", "codex", "chatgpt", "o1", "o3", "o4"]) {
        "openai"
    } else if begins_with(&["gemini"]) {
        "google"
    } else {
        name.split('/').next().filter(|provider| *provider != name && !provider.is_empty()).unwrap_or("any")
    };
    format!("{provider}/{model}")
}

enum Match<'a> {
    None,
    One((&'a str, Price)),
    Several,
}

fn only_price<'a>(mut prices: impl Iterator<Item = (&'a str, Price)>) -> Match<'a> {
    let Some(first) = prices.next() else { return Match::None };
    if prices.all(|(_, price)| price == first.1) { Match::One(first) } else { Match::Several }
}

/// Returns the name without providers.
fn last_part(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// Returns the name in lowercase letters, with hyphens, and without a date or a variant.
fn plain_name(model: &str) -> String {
    let model = model.split(['[', ':', '@']).next().unwrap_or(model);
    let mut plain = model.to_ascii_lowercase().replace(['.', '_'], "-");
    if let Some(short) = plain.strip_suffix("-latest") {
        plain.truncate(short.len());
    }
    let parts: Vec<_> = plain.split('-').collect();
    let is_digits = |part: &str, count: usize| part.len() == count && part.bytes().all(|byte| byte.is_ascii_digit());
    let dated = match parts[..] {
        [.., date] if is_digits(date, 8) => date.len() + 1,
        [.., year, month, day] if is_digits(year, 4) && is_digits(month, 2) && is_digits(day, 2) => 11,
        _ => 0,
    };
    plain.truncate(plain.len().saturating_sub(dated));
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price(input: f64) -> Price {
        Price { input, output: 1.0, ..Price::default() }
    }

    #[test]
    fn a_model_is_found_whatever_name_a_program_gives_it() {
        let table = [
            ("anthropic/claude-opus-4-5", price(5.0)),
            ("anthropic/claude-opus-4", price(15.0)),
            ("openai/gpt-5-codex", price(1.0)),
            ("router/google/gemini-2.5-pro", price(2.0)),
        ];
        let find = |name| find(name, table.iter().copied()).map(|(_, price)| price.input);
        for (name, input) in [
            ("claude-opus-4-5", Some(5.0)),
            ("claude-opus-4-5-20251101", Some(5.0)),
            ("bedrock/anthropic/Claude-Opus-4.5", Some(5.0)),
            ("claude-opus-4-5[1m]", Some(5.0)),
            ("claude-opus-4-20250514", Some(15.0)),
            ("claude-opus-4-1", None),
            ("gpt-5-codex-2025-09-23", Some(1.0)),
            ("gpt-5", None),
            ("gemini-2.5-pro-latest", Some(2.0)),
            ("unknown", None),
            ("", None),
        ] {
            assert_eq!(find(name), input, "{name}");
        }
    }

    #[test]
    fn of_several_models_with_a_name_none_is_chosen_unless_they_cost_the_same() {
        let table = |other| [("a/m", price(1.0)), ("b/m", price(other))];
        assert_eq!(find("m", table(2.0).into_iter()), None);
        assert_eq!(find("m", table(1.0).into_iter()), Some(("a/m", price(1.0))));
        // The exact name comes first.
        let dated = [("a/m-20250101", price(3.0)), ("a/m", price(1.0))];
        assert_eq!(find("m-20250101", dated.into_iter()), Some(("a/m-20250101", price(3.0))));
    }

    #[test]
    fn a_price_is_found_by_the_name_under_which_it_can_be_set() {
        for (name, settable) in [
            ("claude-opus-4-5-20251101", "anthropic/claude-opus-4-5"),
            ("bedrock/anthropic/Claude-Opus-4.5", "anthropic/claude-opus-4-5"),
            ("gpt-5-codex", "openai/gpt-5-codex"),
            ("gemini-2.5-pro", "google/gemini-2-5-pro"),
            ("fake/fake-1", "fake/fake-1"),
            ("big-pickle", "any/big-pickle"),
        ] {
            assert_eq!(settable_name(name), settable);
            let table = [(settable, price(2.0))];
            assert_eq!(find(name, table.into_iter()), Some((settable, price(2.0))), "{name}");
        }
    }
}
