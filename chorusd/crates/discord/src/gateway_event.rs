//! Events that the gateway connection sends to the router.

use serenity::model::event::Event as Dispatch;

/// One event of the gateway connection. They arrive in the order in which the gateway sent them.
#[derive(Debug)]
pub(crate) enum GatewayEvent {
    Dispatch(Box<Dispatch>),
    /// The connection was opened or resumed. Operations may use it once this event is handled. Messages may have been
    /// missed before it, so channels are read again.
    Connected {
        resumed: bool,
    },
    Disconnected,
}
