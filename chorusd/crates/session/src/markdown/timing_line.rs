//! The line with the duration and tokens of a query: `*Time: 3.2s | Tokens: 345 (in: 123, out: 222)*`.

use chorus_proto::{TokenPair, Usage};

/// Duration and tokens, as far as they are known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Timing {
    pub duration_ms: Option<u64>,
    pub tokens: Option<TokenPair>,
}

impl Timing {
    /// Adds the usage of a model call.
    pub(crate) fn add_usage(&mut self, usage: &Usage) {
        if let Some(duration) = usage.duration_ms {
            self.duration_ms = Some(self.duration_ms.unwrap_or(0).saturating_add(duration));
        }
        if usage.input_tokens.is_some() || usage.output_tokens.is_some() {
            let tokens = self.tokens.get_or_insert_default();
            tokens.input = tokens.input.saturating_add(usage.input_tokens.unwrap_or(0));
            tokens.output = tokens.output.saturating_add(usage.output_tokens.unwrap_or(0));
        }
    }

    /// Formats the line, or returns `None` if nothing is known.
    #[must_use]
    pub(crate) fn to_line(self) -> Option<String> {
        let time = self.duration_ms.map(|ms| format!("Time: {}.{}s", ms / 1000, ms % 1000 / 100));
        let tokens = self.tokens.map(|TokenPair { input, output }| {
            format!("Tokens: {} (in: {input}, out: {output})", input.saturating_add(output))
        });
        let parts: Vec<_> = time.into_iter().chain(tokens).collect();
        (!parts.is_empty()).then(|| format!("*{}*", parts.join(" | ")))
    }

    /// Parses the line.
    #[must_use]
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let inside = line.trim_end().strip_prefix('*')?.strip_suffix('*')?;
        let mut times = Self::default();
        for part in inside.split(" | ") {
            let (name, value) = part.split_once(": ")?;
            match name {
                "Time" => times.duration_ms = Some(parse_milliseconds(value)?),
                "Tokens" => times.tokens = Some(parse_tokens(value)?),
                _ => return None,
            }
        }
        Some(times)
    }

    /// Converts to the usage of a message.
    #[must_use]
    pub(crate) fn to_usage(self) -> Usage {
        Usage {
            input_tokens: self.tokens.map(|tokens| tokens.input),
            output_tokens: self.tokens.map(|tokens| tokens.output),
            duration_ms: self.duration_ms,
            ..Usage::default()
        }
    }
}

fn parse_milliseconds(value: &str) -> Option<u64> {
    let seconds: f64 = value.strip_suffix('s')?.parse().ok()?;
    let fits = (0.0..1e12).contains(&seconds);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
    fits.then(|| (seconds * 1000.0).round() as u64)
}

/// Parses `345 (in: 123, out: 222)`. A sum alone counts as output tokens.
fn parse_tokens(value: &str) -> Option<TokenPair> {
    let number = |text: &str| text.replace(',', "").parse::<u64>().ok();
    let Some((_, parts)) = value.split_once(" (in: ") else {
        return Some(TokenPair { input: 0, output: number(value)? });
    };
    let (input, output) = parts.strip_suffix(')')?.split_once(", out: ")?;
    Some(TokenPair { input: number(input)?, output: number(output)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_they_are_written() {
        let line = "*Time: 3.2s | Tokens: 345 (in: 123, out: 222)*";
        let times = Timing::parse(line).unwrap();
        assert_eq!((times.duration_ms, times.tokens), (Some(3200), Some(TokenPair { input: 123, output: 222 })));
        assert_eq!(times.to_line().as_deref(), Some(line));
        assert_eq!(Timing::default().to_line(), None);
        assert_eq!(Timing::parse("*Tokens: 1,234*").unwrap().tokens, Some(TokenPair { input: 0, output: 1234 }));
        for line in ["*Time: long*", "*Time: -1s*", "*emphasis*", "**Time: 1s**", "*", "*Time: 1e99s*"] {
            assert_eq!(Timing::parse(line), None, "{line}");
        }
    }
}
