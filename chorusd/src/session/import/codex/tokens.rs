//! What calls cost: a rollout tells it in events of their own (`token_count`), of the last call and of all so far.

use chorus_proto::Usage;

use super::super::fields::Fields;

/// What was told so far.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    total: Option<Counts>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counts {
    input: u64,
    cached: u64,
    output: u64,
}

impl Tokens {
    /// What the last call cost. An event whose total did not move repeats what is known, and older ones tell only the total.
    pub fn of_event(&mut self, payload: &Fields<'_>) -> Option<Usage> {
        let info = payload.get("info").and_then(Fields::of)?;
        let counts = |name| info.get(name).and_then(Fields::of).map(|counts| Counts::read(&counts));
        let last = counts("last_token_usage");
        let Some(total) = counts("total_token_usage") else { return last.map(Counts::usage) };
        let before = self.total.replace(total);
        if before == Some(total) {
            return None;
        }
        Some(last.unwrap_or_else(|| before.map_or(total, |before| total.since(before))).usage())
    }
}

impl Counts {
    fn read(fields: &Fields<'_>) -> Self {
        let count = |name| fields.count(name).unwrap_or_default();
        Self { input: count("input_tokens"), cached: count("cached_input_tokens"), output: count("output_tokens") }
    }

    fn since(self, before: Self) -> Self {
        Self {
            input: self.input.saturating_sub(before.input),
            cached: self.cached.saturating_sub(before.cached),
            output: self.output.saturating_sub(before.output),
        }
    }

    fn usage(self) -> Usage {
        Usage {
            input_tokens: Some(self.input),
            output_tokens: Some(self.output),
            cache_read_tokens: Some(self.cached),
            ..Usage::default()
        }
    }
}

/// What a call cost, together with those before it.
pub(super) fn sum(before: Option<Usage>, usage: Usage) -> Usage {
    let Some(before) = before else { return usage };
    let add = |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).reduce(u64::saturating_add);
    Usage {
        input_tokens: add(before.input_tokens, usage.input_tokens),
        output_tokens: add(before.output_tokens, usage.output_tokens),
        cache_read_tokens: add(before.cache_read_tokens, usage.cache_read_tokens),
        ..usage
    }
}
