//! `context compact`, and the compaction of long conversations while turns run.

mod edited_notes;
mod long;
mod model_notes;
mod random_histories;
mod resume;
mod triggers;
mod undo_by_hand;
