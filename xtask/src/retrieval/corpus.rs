//! Conversations with questions about them.

use jiff::Timestamp;

/// Sessions of one person or pair, and questions that are asked about nothing else.
#[derive(Debug, Default)]
pub struct Sample {
    pub sessions: Vec<Session>,
    pub questions: Vec<Question>,
}

#[derive(Debug)]
pub struct Session {
    pub id: String,
    pub at: Timestamp,
    pub turns: Vec<Turn>,
}

#[derive(Debug)]
pub struct Turn {
    /// Unique in the sample.
    pub id: String,
    pub speaker: String,
    pub is_assistant: bool,
    pub text: String,
}

#[derive(Debug)]
pub struct Question {
    pub text: String,
    pub category: String,
    /// When it is asked; by default after the last session.
    pub at: Option<Timestamp>,
    /// Ids of the turns that answer it. Empty if only the sessions are known.
    pub turns: Vec<String>,
    /// Ids of the sessions that answer it.
    pub sessions: Vec<String>,
}
