//! Makes the text of a message readable for a model. Pure.

use std::collections::HashMap;

/// Digits of the shortest id of Discord.
const MIN_ID_DIGITS: usize = 15;

/// Names of the channels of the guilds.
pub(crate) trait ChannelNames: std::fmt::Debug {
    /// Returns the name of a channel.
    fn channel_name(&self, channel: u64) -> Option<String>;
}

/// Names of what a text may mention, by id.
#[derive(Debug, Clone, Default)]
pub(super) struct MentionNames<'k> {
    pub people: HashMap<u64, String>,
    pub roles: HashMap<u64, String>,
    pub channels: HashMap<u64, String>,
    /// Names of the channels that are not in `channels`.
    pub cached_channels: Option<&'k dyn ChannelNames>,
}

/// Replaces mentions and custom emojis by names where these are known; everything else is unchanged.
#[must_use]
pub(super) fn resolve_mentions(content: &str, names: &MentionNames<'_>) -> String {
    let (mut text, mut rest) = (String::with_capacity(content.len()), content);
    while let Some(at) = rest.find('<') {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        let said = rest.find('>').and_then(|end| Some((end + 1, mention_text(&rest[1..end], names)?)));
        let (taken, said) = said.unwrap_or_else(|| (1, "<".to_owned()));
        text.push_str(&said);
        rest = &rest[taken..];
    }
    text.push_str(rest);
    text
}

/// Converts what stands between the angle brackets to text.
fn mention_text(inside: &str, names: &MentionNames<'_>) -> Option<String> {
    let id = |text: &str| {
        let digits = text.len() <= 20 && !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        digits.then(|| text.parse::<u64>().ok()).flatten()
    };
    if let Some(role) = inside.strip_prefix("@&") {
        return names.roles.get(&id(role)?).map(|name| format!("@{name}"));
    }
    if let Some(person) = inside.strip_prefix("@!").or_else(|| inside.strip_prefix('@')) {
        return names.people.get(&id(person)?).map(|name| format!("@{name}"));
    }
    if let Some(channel) = inside.strip_prefix('#') {
        let id = id(channel)?;
        let named = names.channels.get(&id).cloned().or_else(|| names.cached_channels?.channel_name(id));
        return named.map(|name| format!("#{}", one_line(&name)));
    }
    let emoji = inside.strip_prefix("a:").or_else(|| inside.strip_prefix(':'))?;
    let (name, number) = emoji.split_once(':')?;
    let plain = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    (plain && number.len() >= MIN_ID_DIGITS && id(number).is_some()).then(|| format!(":{name}:"))
}

/// Quotes a text with `>` before each line.
#[must_use]
pub(super) fn quote(text: &str) -> String {
    text.trim_end().lines().map(|line| format!("> {line}")).collect::<Vec<_>>().join("\n")
}

/// Replaces control characters by spaces, so that a name stays on one line.
#[must_use]
pub(super) fn one_line(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Formats a size.
#[must_use]
pub(super) fn format_size(bytes: u64) -> String {
    // Sizes are far below the range in which floats lose precision.
    match bytes {
        1 => "1 byte".to_owned(),
        0..1024 => format!("{bytes} bytes"),
        1024..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Nine;

    impl ChannelNames for Nine {
        fn channel_name(&self, channel: u64) -> Option<String> {
            (channel == 9).then(|| "maps".to_owned())
        }
    }

    #[test]
    fn mentions_have_names_where_they_are_known_and_nothing_else_changes() {
        let names = MentionNames {
            people: [(80_351_110_224_678_912, "Mara".into())].into(),
            roles: [(7, "crew".into())].into(),
            channels: [(8, "general".into())].into(),
            cached_channels: Some(&Nine),
        };
        for (content, due) in [
            ("<@80351110224678912> and <@!80351110224678912>!", "@Mara and @Mara!"),
            ("<@1> <@&7> <@&8> <#8> <#7>", "<@1> @crew <@&8> #general <#7>"),
            ("<#9>", "#maps"),
            ("<:wave:123456789012345678> <a:Wave_2:123456789012345678>", ":wave: :Wave_2:"),
            ("Vec<:x:1> a<b <@> <@x> < <<@&7>> <t:1:R>", "Vec<:x:1> a<b <@> <@x> < <@crew> <t:1:R>"),
            ("<@99999999999999999999999>", "<@99999999999999999999999>"),
            ("🎉<", "🎉<"),
            ("", ""),
        ] {
            assert_eq!(resolve_mentions(content, &names), due);
        }
    }

    #[test]
    fn sizes_are_short() {
        let sizes = [0, 1, 1023, 1024, 1500, 1 << 20, 5 << 20].map(format_size);
        assert_eq!(sizes, ["0 bytes", "1 byte", "1023 bytes", "1.0 KiB", "1.5 KiB", "1.0 MiB", "5.0 MiB"]);
    }
}
