//! The ids of conversations that are written for a tool: the same for the same session and number, so that a conversation that is
//! exported twice is one conversation there.

use uuid::Builder;

use super::{CodingTool, ToolSession, opencode};

impl CodingTool {
    /// Returns the id for a conversation that the tool does not have yet. It begins with other digits than that of the session, so that the
    /// start of one does not mean both.
    #[must_use]
    pub fn new_id(self, session: &ToolSession, number: u32) -> String {
        if self == Self::Opencode {
            return self.earlier_id(session, number);
        }
        let mut bytes = *session.base.id.as_bytes();
        // The id of a session is random, so each mask makes another random one.
        let mask = hash(self.format().as_str(), number).to_be_bytes();
        for (byte, of) in bytes.iter_mut().zip(mask.iter().chain(&mask)) {
            *byte ^= of;
        }
        bytes[0] = session.base.id.as_bytes()[0] ^ (mask[0] | 0x80);
        Builder::from_random_bytes(bytes).into_uuid().to_string()
    }

    /// Returns the id that earlier releases gave the conversation. It begins like that of the session, or that of the time.
    #[must_use]
    pub(super) fn earlier_id(self, session: &ToolSession, number: u32) -> String {
        let mut bytes = *session.base.id.as_bytes();
        for (byte, of) in bytes[8..12].iter_mut().zip(self.format().as_str().as_bytes()) {
            *byte ^= of;
        }
        for (byte, of) in bytes[12..].iter_mut().zip(number.to_be_bytes()) {
            *byte ^= of;
        }
        let millis = u64::try_from(session.started_at.as_millisecond()).unwrap_or_default();
        match self {
            Self::ClaudeCode | Self::Gemini => Builder::from_random_bytes(bytes).into_uuid().to_string(),
            Self::Codex => {
                let mut random = [0; 10];
                random.copy_from_slice(&bytes[6..]);
                Builder::from_unix_timestamp_millis(millis, &random).into_uuid().to_string()
            }
            Self::Opencode => opencode::conversation_id(millis, &bytes[2..]),
        }
    }
}

/// Returns the FNV-1a hash of a name and a number.
fn hash(name: &str, number: u32) -> u64 {
    let bytes = name.bytes().chain(number.to_be_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
