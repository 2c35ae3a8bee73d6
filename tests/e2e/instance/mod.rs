//! One home, one daemon, whatever is removed (P24); and a client finds it wherever it listens, and nobody else's (P23).

mod elsewhere;
mod foreign;
mod locks;
mod lost;
mod unreachable;
