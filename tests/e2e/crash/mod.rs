//! P1: what was acknowledged survives `kill -9`: nothing lost, nothing doubled, nothing reordered.

mod keys;
mod oracle;
mod rounds;
mod solo;
