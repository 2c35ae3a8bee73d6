//! Sanitizes ids and names of tool calls for a server. A conversation that began with another provider or was imported
//! may have any, and a server refuses the whole conversation for an invalid one. The same id always becomes the same
//! result, so that results match their calls.

use std::borrow::Cow;

use sha2::{Digest as _, Sha256};

/// Form of call ids that a server accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IdForm {
    /// Letters, digits, `_` and `-`: Anthropic.
    Plain,
    /// At most 40 characters of any kind: OpenAI. Templates of local servers may expect the form that their model
    /// produced.
    Short,
    /// Nine letters and digits: Mistral.
    Nine,
}

/// Limit of the characters of a name, and of an id of the form `Plain`.
const MAX_NAME_CHARS: usize = 64;

/// Limit of the characters of an id of the form `Short`.
const MAX_SHORT_ID_CHARS: usize = 40;

/// Returns `id` in this form.
#[must_use]
pub(super) fn sanitize_id(id: &str, form: IdForm) -> Cow<'_, str> {
    let fits = match form {
        IdForm::Plain => is_plain(id),
        IdForm::Short => id.chars().count() <= MAX_SHORT_ID_CHARS,
        IdForm::Nine => id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()),
    };
    if fits {
        return Cow::Borrowed(id);
    }
    let hash: String = Sha256::digest(id).iter().map(|byte| format!("{byte:02x}")).collect();
    Cow::Owned(match form {
        IdForm::Nine => hash[..9].to_owned(),
        IdForm::Plain | IdForm::Short => format!("call_{}", &hash[..24]),
    })
}

/// Returns a tool name that every server accepts.
#[must_use]
pub(super) fn sanitize_name(name: &str) -> Cow<'_, str> {
    if is_plain(name) {
        return Cow::Borrowed(name);
    }
    let plain = |char: char| if char.is_ascii_alphanumeric() || char == '-' { char } else { '_' };
    let name: String = name.chars().take(MAX_NAME_CHARS).map(plain).collect();
    Cow::Owned(if name.is_empty() { "unknown".to_owned() } else { name })
}

fn is_plain(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=MAX_NAME_CHARS).contains(&text.len()) && text.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ids of real servers, and the forms that do not allow them.
    #[test]
    fn an_id_is_changed_only_where_it_is_refused() {
        let long = "ws_689e2d4880a0819d98acca37694989b00b15d90494fc6b87";
        for (given, refused) in [
            // Kimi K2, refused by Anthropic: vybestack/llxprt-code#964, langchain-ai/langchain#37756.
            ("functions.write_todos:0", vec![IdForm::Plain, IdForm::Nine]),
            // Refused by OpenAI: vercel/ai#8132.
            (long, vec![IdForm::Short, IdForm::Nine]),
            // Refused by Mistral: anomalyco/opencode#1680.
            ("call_PTLP8xhu3uwZk4l3nlnrrJha", vec![IdForm::Nine]),
            ("0fypS1hVX", vec![]),
            ("", vec![IdForm::Plain, IdForm::Nine]),
        ] {
            for form in [IdForm::Plain, IdForm::Short, IdForm::Nine] {
                let sent = sanitize_id(given, form);
                assert_eq!(sent != given, refused.contains(&form), "{given} {form:?}");
                assert_eq!(sanitize_id(&sent, form), sent, "twice is once");
            }
        }
        assert_ne!(sanitize_id("a.b", IdForm::Plain), sanitize_id("a:b", IdForm::Plain));
    }

    #[test]
    fn a_name_has_plain_characters() {
        assert_eq!(
            ["apply_patch", "mcp.files/read", "", "früh"].map(sanitize_name),
            ["apply_patch", "mcp_files_read", "unknown", "fr_h"]
        );
        assert_eq!(sanitize_name(&"x".repeat(80)).len(), MAX_NAME_CHARS);
    }
}
