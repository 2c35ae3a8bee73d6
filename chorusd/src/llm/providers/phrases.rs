//! What providers say when they refuse, and what it means.

use super::super::error::{CallError, Class};

/// The longest piece of a provider's own words in an error.
const LONGEST: usize = 400;

/// Parts of messages by which a prompt that is too long is known, whoever says it.
const TOO_LONG: [&str; 16] = [
    "prompt is too long",
    "exceed context limit",
    "exceeds the context",
    "exceeds the available context",
    "exceed_context_size",
    "context_length_exceeded",
    "context length",
    "maximum context",
    "context window",
    "context size",
    "context overflow",
    "maximum model length",
    "input is too long",
    "input length",
    "too many tokens",
    "reduce the length of the messages",
];

/// Parts of messages by which an account without money is known.
const NO_MONEY: [&str; 9] = [
    "credit balance",
    "insufficient_quota",
    "insufficient credits",
    "insufficient balance",
    "exceeded your current quota",
    "billing",
    "usage limits",
    "spend limit",
    "spending limit",
];

/// Parts of messages by which a server is known that cannot hold an answer to a form.
const NO_FORM: [&str; 6] =
    ["response_format", "response format", "json_schema", "json schema", "structured output", "tool_choice"];

/// Whether a request was refused because its answer was to have a form.
pub fn refuses_form(error: &CallError) -> bool {
    let words = error.message.to_lowercase();
    matches!(error.class, Class::BadRequest | Class::Server) && NO_FORM.iter().any(|part| words.contains(part))
}

/// The class of a status alone.
pub fn of_status(status: u16) -> Class {
    match status {
        401 => Class::Auth,
        402 => Class::SpendCap,
        403 => Class::Denied,
        404 => Class::NotFound,
        413 => Class::ContextTooLong,
        429 => Class::RateLimited,
        408 | 409 | 500..=502 | 504..=528 | 530..=599 => Class::Server,
        503 | 529 => Class::Overloaded,
        _ => Class::BadRequest,
    }
}

/// The class that words tell, where they tell one.
pub fn of_words(status: u16, words: &str) -> Option<Class> {
    let words = words.to_lowercase();
    let any = |parts: &[&str]| parts.iter().any(|part| words.contains(part));
    match status {
        400 | 402 | 403 | 429 if any(&NO_MONEY) => Some(Class::SpendCap),
        // llama.cpp says it with 500 in some versions.
        400 | 413 | 422 | 500 if any(&TOO_LONG) => Some(Class::ContextTooLong),
        // A router passes on what a key is refused with by whoever is behind it.
        400 if words.contains("api key") && (words.contains("invalid") || words.contains("incorrect")) => {
            Some(Class::Auth)
        }
        _ => None,
    }
}

/// Returns the advice for a server that refuses a request that had no key.
pub fn name_a_key(provider: &str, variable: &str) -> String {
    format!(
        "add `api_key_env = \"{variable}\"` (or the variable that has this server's key) to [providers.{provider}] in config.toml, then `chorusctl daemon restart`"
    )
}

/// What to do about a refusal.
pub fn hint(class: Class, provider: &str) -> Option<String> {
    Some(match class {
        Class::Auth => {
            format!("check the key of [providers.{provider}] in config.toml, then `chorusctl models validate`")
        }
        Class::Denied => {
            "the key is good, but not for this: look at the provider's console, or use another model".into()
        }
        Class::RateLimited => "try again in a moment, or use another model".into(),
        Class::Overloaded | Class::Server => "try again later, or use another model".into(),
        Class::SpendCap => "look at the provider's console: credit, budget or limit of the account".into(),
        Class::ContextTooLong => {
            "`chorusctl context clear --save` and begin anew, or choose a model that takes more".into()
        }
        Class::NotFound => "`chorusctl models` lists what there is; `base_url` may be wrong too".into(),
        _ => return None,
    })
}

/// `text` on one line and not too long.
pub fn one_line(text: &str) -> String {
    let mut line = String::new();
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()) {
        if line.len() + word.len() > LONGEST {
            line.extend(word.chars().take(LONGEST.saturating_sub(line.len())));
            line.push('…');
            break;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_understood() {
        for (status, words, class) in [
            (400, "prompt is too long: 210000 tokens > 200000 maximum", Some(Class::ContextTooLong)),
            (400, "input length and `max_tokens` exceed context limit: 199000 + 8000", Some(Class::ContextTooLong)),
            (400, "This model's maximum context length is 8192 tokens", Some(Class::ContextTooLong)),
            (500, "the request exceeds the available context size. try increasing it", Some(Class::ContextTooLong)),
            (400, "Your credit balance is too low to access the Anthropic API", Some(Class::SpendCap)),
            (400, "You have reached your specified API usage limits", Some(Class::SpendCap)),
            (429, "You exceeded your current quota, please check your plan and billing", Some(Class::SpendCap)),
            (429, "Rate limit reached for gpt-4o", None),
            (400, "messages: at least one message is required", None),
        ] {
            assert_eq!(of_words(status, words), class, "{words}");
        }
    }

    #[test]
    fn what_a_provider_says_stays_on_one_line() {
        assert_eq!(one_line(" <html>\n\t<b>no\u{1b}[2Jway "), "<html> <b>no [2Jway");
        assert!(one_line(&"x".repeat(10_000)).chars().count() <= LONGEST + 1);
        assert!(one_line(&"é ".repeat(10_000)).len() <= LONGEST + 8);
    }
}
