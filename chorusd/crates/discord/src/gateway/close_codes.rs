//! Close codes of the gateway.

/// A reason not to connect again, and what a person can do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PermanentClose {
    pub why: &'static str,
    pub hint: &'static str,
}

/// Discord refuses the token.
pub(super) const INVALID_TOKEN: PermanentClose = PermanentClose {
    why: "Discord rejected the token",
    hint: "create a new token in Discord's developer portal (Bot > Reset Token), set it in the daemon's environment, then run `chorusctl daemon restart`",
};

/// Returns the reason if another try would end with the same code.
pub(super) fn permanent_close(code: u16) -> Option<PermanentClose> {
    Some(match code {
        4004 => INVALID_TOKEN,
        4010 => PermanentClose {
            why: "Discord rejected the number of a shard",
            hint: "set `shards` in [discord] to \"auto\", the same on all nodes, then run `chorusctl daemon restart`",
        },
        4011 => PermanentClose {
            why: "the application is in too many servers for its number of shards",
            hint: "set `shards = \"auto\"` in [discord], or a larger number, then run `chorusctl daemon restart`",
        },
        4012 => PermanentClose {
            why: "Discord no longer supports this version of its API",
            hint: "install a newer version of Chorus",
        },
        4013 => {
            PermanentClose { why: "Discord rejected the requested intents", hint: "install a newer version of Chorus" }
        }
        4014 => PermanentClose {
            why: "the Message Content intent is not enabled",
            hint: "enable it in Discord's developer portal (Bot > Privileged Gateway Intents > Message Content Intent), then run `chorusctl daemon restart`",
        },
        _ => return None,
    })
}

/// Returns whether the session cannot be resumed after this code.
pub(super) fn ends_session(code: u16) -> bool {
    matches!(code, 4003 | 4007 | 4009)
}

/// Describes a close code.
pub(super) fn describe_close(code: Option<u16>) -> String {
    let why = match code {
        None => return "Discord closed the connection".to_owned(),
        Some(1006) => return "the connection was lost".to_owned(),
        Some(1000 | 1001) => "Discord closed the connection",
        Some(4000) => "Discord reported an error",
        Some(4007 | 4009) => "the session ended",
        Some(4008) => "Discord's rate limit was reached",
        Some(_) => "Discord closed the connection",
    };
    code.map_or_else(|| why.to_owned(), |code| format!("{why} ({code})"))
}
