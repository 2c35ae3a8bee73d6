//! One home, one daemon, whatever is removed (P24); and a client finds it wherever it listens, and nobody else's (P23).

mod locks;
mod other_environments;
mod other_users;
mod removed_files;
mod single;
mod unreachable;
