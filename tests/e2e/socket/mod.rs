//! What may come over the socket, and what may lie in its place.

mod fuzz;
mod limits;
mod numbers;
mod owner;
mod place;
mod requests;
mod stream;
mod text;
mod unfinished;
