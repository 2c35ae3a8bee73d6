//! What may come over the socket, and what may lie in its place.

mod frame_memory;
mod framing;
mod fuzz;
mod limits;
mod numbers;
mod owner;
mod partial_frames;
mod path;
mod requests;
mod text;
