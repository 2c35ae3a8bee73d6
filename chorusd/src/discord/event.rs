//! What the gateway tells.

use serenity::model::event::Event as Dispatch;

/// One thing that the gateway told, in the order it did.
#[derive(Debug)]
pub enum GatewayEvent {
    Dispatch(Box<Dispatch>),
    /// The connection is new or taken up again, and is one for verbs once this is dealt with: what happened meanwhile may have to
    /// be looked for.
    Connected {
        resumed: bool,
    },
    Disconnected,
}
