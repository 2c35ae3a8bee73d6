//! Hints that name an option of the command line outside of a command, so that a front door has to replace them as a
//! whole. A hint with a complete command needs no constant: `chorusctl WORDS` can be found and replaced.

/// No agent was named, and there are several.
pub const NAME_AGENT: &str = "pass --agent NAME, or set a default with `chorusctl agent use NAME`";
/// There is no pinned fact with this number.
pub const LIST_PINNED_FACTS: &str = "list them with their numbers: chorusctl context show";
/// An empty value resets a setting.
pub const RESET_SETTING: &str = "an empty value resets the setting";
/// An action cannot be approved for ever.
pub const APPROVE_ONCE: &str = "it is still pending: approve it once, without --always";
