//! Topic and welcome message of an agent's channel.

/// Characters of a topic, as Discord counts.
const MAX_TOPIC_CHARS: usize = 1024;

/// Characters of the system prompt that the welcome message shows.
const MAX_PROMPT_CHARS: usize = 1200;

/// Returns the topic of a channel: the beginning of the agent's system prompt on one line, up to the end of a sentence
/// or at least of a word.
#[must_use]
pub(super) fn channel_topic(prompt: &str) -> String {
    let line = prompt.split_whitespace().collect::<Vec<_>>().join(" ");
    shorten(&line, MAX_TOPIC_CHARS)
}

/// Returns the first message in the channel of an agent. `permissions` is the name of its profile, or `None` for a
/// profile of its own.
#[must_use]
pub(super) fn welcome_text(name: &str, prompt: Option<&str>, permissions: Option<&str>) -> String {
    let mut text = format!("**{name}** is ready. Write in this channel to talk to it.\n");
    if let Some(prompt) = prompt {
        // Quoted line by line, so that the prompt cannot imitate other lines of the message.
        let quoted: Vec<String> = prompt.trim().lines().map(|line| format!("> {line}")).collect();
        text.push_str("System prompt:\n");
        text.push_str(&shorten(&quoted.join("\n"), MAX_PROMPT_CHARS));
        text.push('\n');
    }
    let permissions = permissions.map_or_else(|| "custom".to_owned(), |name| format!("`{name}`"));
    text.push_str(&format!("Permission profile: {permissions}. Save the conversation with `/context save`."));
    text
}

/// Shortens a text to `most` characters, with an ellipsis: up to the end of a sentence in its second half, else of a
/// word.
fn shorten(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let cut: String = text.chars().take(most - 2).collect();
    let sentence = cut.rfind(". ").map(|at| at + 1).filter(|at| *at >= cut.len() / 2);
    let word = || cut.rfind(char::is_whitespace).filter(|at| *at >= cut.len() / 2);
    let end = sentence.or_else(word).unwrap_or(cut.len());
    format!("{} …", cut[..end].trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_is_one_line_that_fits() {
        assert_eq!(channel_topic("You keep\n  maps.  "), "You keep maps.");
        for long in ["Word. ".repeat(400), "ä".repeat(3000), format!("{} {}", "a".repeat(900), "b".repeat(900))] {
            let topic = channel_topic(&long);
            assert!(topic.chars().count() <= 1024 && topic.ends_with('…'), "{}", topic.chars().count());
        }
        assert!(channel_topic(&"Word. ".repeat(400)).ends_with("Word. …"));
        assert!(channel_topic(&format!("{} {}", "a".repeat(900), "b".repeat(900))).ends_with("a …"));
    }

    #[test]
    fn the_welcome_fits_and_quotes_the_prompt() {
        let text = welcome_text("maps", Some("You keep maps.\n**x**"), Some("standard"));
        assert!(text.contains("> You keep maps.\n> **x**\n") && text.contains("profile: `standard`"), "{text}");
        assert!(welcome_text("maps", None, None).contains("custom"));
        let lines = "x\n".repeat(5000);
        assert!(welcome_text(&"n".repeat(64), Some(&lines), Some("standard")).chars().count() <= 2000);
    }
}
