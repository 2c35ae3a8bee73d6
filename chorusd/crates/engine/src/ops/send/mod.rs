//! The operations `send` and `send.cancel`.

pub mod cancel;
mod turn;

pub use cancel::cancel_queued;
pub use turn::{
    MessageOrigin, MessageSender, attachment_problem, ensure_can_begin, max_message_bytes, send, send_to_conversation,
};
