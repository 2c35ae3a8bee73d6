//! Daily usage limits of an agent.

use chorus_agent_core::UsageLimits;
use chorus_base::error::{Error, Result};
use chorus_proto::ErrorKind;
use jiff::Zoned;

use super::Spending;

/// Checks whether the agent `name`, which has used `spent`, may use more before `end`.
///
/// # Errors
/// `limit_reached`, with the limit, what was used, when the limit ends and how to raise it.
pub(super) fn check_limits(limits: &UsageLimits, name: &str, spent: &Spending, end: &Zoned) -> Result<()> {
    let (what, key) = if limits.daily_tokens > 0 && spent.tokens >= limits.daily_tokens {
        let what = format!("{} tokens today; its daily_token_limit is {}", spent.tokens, limits.daily_tokens);
        (what, "daily_token_limit")
    } else if limits.daily_cost > 0.0 && spent.cost >= limits.daily_cost {
        let what = format!("${:.4} today; its daily_cost_limit is ${}", spent.cost, limits.daily_cost);
        (what, "daily_cost_limit")
    } else {
        return Ok(());
    };
    Err(Error::new(ErrorKind::LimitReached, format!("{name} used {what}")).hint(format!(
        "the limit resets at midnight ({}); to raise it: chorusctl agent config {name} {key} N (0 = no limit)",
        end.strftime("%Y-%m-%d %H:%M %Z")
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cap_is_named_with_what_was_used_and_how_it_is_raised() {
        let end = "2026-02-28T00:00:00[UTC]".parse().unwrap();
        let check = |daily_tokens, daily_cost, tokens, cost| {
            let spent = Spending { tokens, cost, ..Spending::default() };
            let failure = check_limits(&UsageLimits { daily_tokens, daily_cost }, "atlas", &spent, &end).err();
            failure.map(|failure| (failure.kind, failure.message, failure.hint.unwrap()))
        };
        assert_eq!([check(0, 0.0, 9, 9.0), check(10, 2.0, 9, 1.9)], [None, None]);
        let (kind, said, hint) = check(10, 2.0, 10, 2.0).unwrap();
        assert_eq!(kind, ErrorKind::LimitReached);
        assert_eq!(said, "atlas used 10 tokens today; its daily_token_limit is 10");
        assert_eq!(
            hint,
            "the limit resets at midnight (2026-02-28 00:00 UTC); to raise it: chorusctl agent config atlas daily_token_limit N (0 = no limit)"
        );
        let (_, said, hint) = check(0, 2.5, 10, 2.50012).unwrap();
        assert_eq!(said, "atlas used $2.5001 today; its daily_cost_limit is $2.5");
        assert!(hint.contains("daily_cost_limit N"), "{hint}");
    }
}
