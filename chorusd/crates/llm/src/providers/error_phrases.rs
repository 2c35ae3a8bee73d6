//! Phrases in error messages of providers, the classes that they mean, and hints.

use super::super::error::{CallError, ErrorClass};

/// Limit of a quotation of a provider's message, in bytes.
const MAX_QUOTE_BYTES: usize = 400;

/// Phrases of servers that are loading their model: llama.cpp, Hugging Face and others.
const LOADING_PHRASES: [&str; 4] = ["loading model", "currently loading", "is loading", "still loading"];

/// Phrases about a prompt that is too long.
const CONTEXT_TOO_LONG_PHRASES: [&str; 29] = [
    "prompt is too long",
    "prompt too long",
    "prompt token count",
    "exceed context limit",
    "exceeds the context",
    "exceeds context size",
    "exceeds the available context",
    "exceed_context_size",
    "exceeds the maximum number of tokens",
    "exceeds the maximum allowed input length",
    "exceeded model token limit",
    "context_length_exceeded",
    "contextwindowexceedederror",
    "context length",
    "maximum context",
    "context window",
    "context size",
    "context overflow",
    "maximum model length",
    "maximum prompt length",
    "max_tokens must be at least 1, got -",
    ".content': string too long",
    "input is too long",
    "input length",
    "too many input tokens",
    "too many tokens",
    "request too large for model",
    "reduce the length of the messages",
    "request entity too large",
];

/// A prompt that exceeds the tokens of a whole minute comes with the status of a rate limit, but no waiting helps.
const EXCEEDS_RATE_PHRASE: &str = "request too large for";

/// Names of the parameter that limits the reply, and phrases that say that its value is too high.
const REPLY_LIMIT_PARAMS: [&str; 4] = ["max_tokens", "max_completion_tokens", "maxtokens", "maxoutputtokens"];
const REPLY_TOO_LONG_PHRASES: [&str; 7] = [
    "is too large",
    "maximum allowed number of output tokens",
    "less than or equal to",
    "above maximum value",
    "valid range of",
    "supported range is",
    "supports at most",
];

/// Phrases about an account without credit.
const SPEND_CAP_PHRASES: [&str; 13] = [
    "credit balance",
    "insufficient_quota",
    "insufficient credits",
    "insufficient balance",
    "exceeded your current quota",
    "plan and billing",
    "billing details",
    "billing hard limit",
    "billing is not",
    "enable billing",
    "usage limits",
    "spend limit",
    "spending limit",
];

/// Phrases of servers that do not support structured output.
const STRUCTURED_OUTPUT_PHRASES: [&str; 6] =
    ["response_format", "response format", "json_schema", "json schema", "structured output", "tool_choice"];

/// Phrases about a model that accepts no images: those of llama.cpp, vLLM, LM Studio, Ollama, OpenRouter, DeepSeek and
/// Groq, in this order.
const NO_IMAGES_PHRASES: [&str; 9] = [
    "image input is not supported",
    "unsupported content part type",
    "is not a multimodal model",
    "does not support image",
    "no endpoints found that support image",
    "unknown variant `image_url`",
    "unknown variant image_url",
    "invalid type: sequence, expected a string",
    ".content must be a string",
];

/// Returns whether a request was refused because of its output format.
pub(crate) fn refuses_structured_output(error: &CallError) -> bool {
    let words = error.message.to_lowercase();
    matches!(error.class, ErrorClass::BadRequest | ErrorClass::Server)
        && STRUCTURED_OUTPUT_PHRASES.iter().any(|part| words.contains(part))
}

/// Class of a status without further information.
pub(super) fn class_of_status(status: u16) -> ErrorClass {
    match status {
        401 => ErrorClass::Auth,
        402 => ErrorClass::SpendCap,
        403 => ErrorClass::Denied,
        404 => ErrorClass::NotFound,
        413 => ErrorClass::ContextTooLong,
        429 => ErrorClass::RateLimited,
        408 | 409 | 500..=502 | 504..=528 | 530..=599 => ErrorClass::Server,
        503 | 529 => ErrorClass::Overloaded,
        _ => ErrorClass::BadRequest,
    }
}

/// Returns the class of a request that cannot succeed as it is, if the message has a known phrase.
pub(super) fn class_of_request_error(status: u16, words: &str) -> Option<ErrorClass> {
    let words = words.to_lowercase();
    let any = |parts: &[&str]| parts.iter().any(|part| words.contains(part));
    match status {
        503 if any(&LOADING_PHRASES) => Some(ErrorClass::Loading),
        // Ids are not part of the prompt, although the same phrase calls them too long.
        400 | 422 | 500 if words.contains("id': string too long") => Some(ErrorClass::BadRequest),
        // OpenRouter sends this with 404, llama.cpp with 500.
        400 | 404 | 415 | 422 | 500 if any(&NO_IMAGES_PHRASES) => Some(ErrorClass::NoImages),
        400 | 422 | 500 if any(&REPLY_LIMIT_PARAMS) && any(&REPLY_TOO_LONG_PHRASES) => Some(ErrorClass::AnswerTooLong),
        429 if words.contains(EXCEEDS_RATE_PHRASE) => Some(ErrorClass::ContextTooLong),
        // Some versions of llama.cpp send this with 500.
        400 | 413 | 422 | 500 if any(&CONTEXT_TOO_LONG_PHRASES) => Some(ErrorClass::ContextTooLong),
        _ => None,
    }
}

/// Returns the class of an error about the account or its key, if the message has a known phrase.
pub(super) fn class_of_account_error(status: u16, words: &str) -> Option<ErrorClass> {
    let words = words.to_lowercase();
    let any = |parts: &[&str]| parts.iter().any(|part| words.contains(part));
    match status {
        // Gemini uses the same phrases for the limits of a minute and of a month; only the former has the time of the
        // next attempt.
        429 if words.contains("please retry in") => Some(ErrorClass::RateLimited),
        400 | 402 | 403 | 429 if any(&SPEND_CAP_PHRASES) => Some(ErrorClass::SpendCap),
        // A router passes on the refusal of a key by the server behind it.
        400 if words.contains("api key") && (words.contains("invalid") || words.contains("incorrect")) => {
            Some(ErrorClass::Auth)
        }
        _ => None,
    }
}

/// Hint for a server that refuses a request without a key.
pub(super) fn missing_key_hint(provider: &str, variable: &str) -> String {
    format!(
        "add `api_key_env = \"{variable}\"` (or the variable with this server's key) to [providers.{provider}] \
         in config.toml, then `chorusctl daemon restart`"
    )
}

/// Hint for an error of this class.
pub(super) fn hint(class: ErrorClass, provider: &str) -> Option<String> {
    Some(match class {
        ErrorClass::Auth => {
            format!("check the key of [providers.{provider}] in config.toml, then `chorusctl models validate`")
        }
        ErrorClass::Denied => {
            "the key is valid, but does not allow this: check the provider's console, or use another model".into()
        }
        ErrorClass::RateLimited => "try again in a moment, or use another model".into(),
        ErrorClass::Loading | ErrorClass::Overloaded | ErrorClass::Server => {
            "try again later, or use another model".into()
        }
        ErrorClass::SpendCap => "check the account's credit, budget and limits in the provider's console".into(),
        ErrorClass::ContextTooLong => {
            "start over with `chorusctl context clear --save`, or choose a model with a larger context".into()
        }
        ErrorClass::AnswerTooLong => "choose a model with a higher output limit".into(),
        ErrorClass::NoImages => "choose a model that accepts images, or describe the image in words".into(),
        ErrorClass::NotFound => "list models with `chorusctl models`; or check `base_url`".into(),
        _ => return None,
    })
}

/// Puts `text` on one line and limits its length.
pub(super) fn one_line(text: &str) -> String {
    let mut line = String::new();
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()) {
        if line.len() + word.len() > MAX_QUOTE_BYTES {
            line.extend(word.chars().take(MAX_QUOTE_BYTES.saturating_sub(line.len())));
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
    fn what_a_provider_says_stays_on_one_line() {
        assert_eq!(one_line(" <html>\n\t<b>no\u{1b}[2Jway "), "<html> <b>no [2Jway");
        assert!(one_line(&"x".repeat(10_000)).chars().count() <= MAX_QUOTE_BYTES + 1);
        assert!(one_line(&"é ".repeat(10_000)).len() <= MAX_QUOTE_BYTES + 8);
    }
}
