//! Judges an action by a profile, which is a preset or an inline profile in JSON, and prints the verdict as JSON:
//!
//! ```text
//! cargo run -p chorus-permissions --example judge_action -- standard 'tool:bash:git push'
//! cargo run -p chorus-permissions --example judge_action -- '{"deny":["tool:bash:rm .*"]}' 'tool:bash:ls && rm -r x'
//! ```

use std::error::Error;
use std::io::{self, Write as _};

use chorus_permissions::Profiles;
use chorus_proto::methods::permissions::Verdict;
use serde_json::Value;

fn judge(permissions: &str, action: &str) -> Result<Verdict, Box<dyn Error>> {
    let permissions =
        if permissions.starts_with('{') { serde_json::from_str(permissions)? } else { Value::from(permissions) };
    Ok(Profiles::default().resolve(&permissions)?.judge(action))
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(permissions), Some(action), None) = (args.next(), args.next(), args.next()) else {
        return Err("usage: judge_action PROFILE ACTION".into());
    };
    writeln!(io::stdout(), "{}", serde_json::to_string_pretty(&judge(&permissions, &action)?)?)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use chorus_proto::methods::permissions::Decision;

    use super::judge;

    #[test]
    fn presets_and_inline_profiles_judge() {
        assert_eq!(judge("standard", "tool:git:push").unwrap().decision, Decision::Ask);
        let verdict = judge(r#"{"deny":["tool:bash:rm .*"]}"#, "tool:bash:ls && rm -r x").unwrap();
        assert_eq!(verdict.decision, Decision::Deny);
        assert!(judge("unheard-of", "tool:git:push").is_err());
    }
}
