//! What providers say when they refuse, and what it means.

use super::super::error::{CallError, ErrorClass};

/// The longest piece of a provider's own words in an error.
const MAX_QUOTE_BYTES: usize = 400;

/// Parts of messages by which a server is known that loads its model: those of llama.cpp, Hugging Face and others.
const LOADING_PHRASES: [&str; 4] = ["loading model", "currently loading", "is loading", "still loading"];

/// Parts of messages by which a prompt that is too long is known, whoever says it.
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

/// Of these, what is said with the status of a rate: no waiting helps a request that is more than a whole minute allows.
const EXCEEDS_RATE_PHRASE: &str = "request too large for";

/// Parts of messages that say that a number of tokens is at fault, and those that say that it is the answer's.
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

/// Parts of messages by which an account without money is known.
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

/// Parts of messages by which a server is known that cannot hold an answer to a form.
const STRUCTURED_OUTPUT_PHRASES: [&str; 6] =
    ["response_format", "response format", "json_schema", "json schema", "structured output", "tool_choice"];

/// Parts of messages by which a model is known that takes no images: those of llama.cpp, vLLM, LM Studio, Ollama, OpenRouter, DeepSeek
/// and Groq, in this order.
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

/// Whether a request was refused because its answer was to have a form.
pub fn refuses_structured_output(error: &CallError) -> bool {
    let words = error.message.to_lowercase();
    matches!(error.class, ErrorClass::BadRequest | ErrorClass::Server)
        && STRUCTURED_OUTPUT_PHRASES.iter().any(|part| words.contains(part))
}

/// The class of a status alone.
pub fn class_of_status(status: u16) -> ErrorClass {
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

/// Returns the class of a request that cannot be answered as it is, where words tell that.
pub fn class_of_request_error(status: u16, words: &str) -> Option<ErrorClass> {
    let words = words.to_lowercase();
    let any = |parts: &[&str]| parts.iter().any(|part| words.contains(part));
    match status {
        503 if any(&LOADING_PHRASES) => Some(ErrorClass::Loading),
        // An id is none of the prompt, though it is called too long in the same words.
        400 | 422 | 500 if words.contains("id': string too long") => Some(ErrorClass::BadRequest),
        // OpenRouter says it with 404, llama.cpp with 500.
        400 | 404 | 415 | 422 | 500 if any(&NO_IMAGES_PHRASES) => Some(ErrorClass::NoImages),
        400 | 422 | 500 if any(&REPLY_LIMIT_PARAMS) && any(&REPLY_TOO_LONG_PHRASES) => Some(ErrorClass::AnswerTooLong),
        429 if words.contains(EXCEEDS_RATE_PHRASE) => Some(ErrorClass::ContextTooLong),
        // llama.cpp says it with 500 in some versions.
        400 | 413 | 422 | 500 if any(&CONTEXT_TOO_LONG_PHRASES) => Some(ErrorClass::ContextTooLong),
        _ => None,
    }
}

/// Returns the class that words about the account or its key tell, where they tell one.
pub fn class_of_account_error(status: u16, words: &str) -> Option<ErrorClass> {
    let words = words.to_lowercase();
    let any = |parts: &[&str]| parts.iter().any(|part| words.contains(part));
    match status {
        // Gemini has the same words for a minute and for a month, and says with the former when it is over.
        429 if words.contains("please retry in") => Some(ErrorClass::RateLimited),
        400 | 402 | 403 | 429 if any(&SPEND_CAP_PHRASES) => Some(ErrorClass::SpendCap),
        // A router passes on what a key is refused with by whoever is behind it.
        400 if words.contains("api key") && (words.contains("invalid") || words.contains("incorrect")) => {
            Some(ErrorClass::Auth)
        }
        _ => None,
    }
}

/// Returns the advice for a server that refuses a request that had no key.
pub fn missing_key_hint(provider: &str, variable: &str) -> String {
    format!(
        "add `api_key_env = \"{variable}\"` (or the variable that has this server's key) to [providers.{provider}] in config.toml, then `chorusctl daemon restart`"
    )
}

/// What to do about a refusal.
pub fn hint(class: ErrorClass, provider: &str) -> Option<String> {
    Some(match class {
        ErrorClass::Auth => {
            format!("check the key of [providers.{provider}] in config.toml, then `chorusctl models validate`")
        }
        ErrorClass::Denied => {
            "the key is good, but not for this: look at the provider's console, or use another model".into()
        }
        ErrorClass::RateLimited => "try again in a moment, or use another model".into(),
        ErrorClass::Loading | ErrorClass::Overloaded | ErrorClass::Server => {
            "try again later, or use another model".into()
        }
        ErrorClass::SpendCap => "look at the provider's console: credit, budget or limit of the account".into(),
        ErrorClass::ContextTooLong => {
            "`chorusctl context clear --save` and begin anew, or choose a model that takes more".into()
        }
        ErrorClass::AnswerTooLong => "choose a model that may answer at greater length".into(),
        ErrorClass::NoImages => "choose a model that looks at images, or describe the image in words".into(),
        ErrorClass::NotFound => "`chorusctl models` lists what there is; `base_url` may be wrong too".into(),
        _ => return None,
    })
}

/// `text` on one line and not too long.
pub fn one_line(text: &str) -> String {
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
