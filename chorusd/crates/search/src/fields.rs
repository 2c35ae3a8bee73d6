//! The fields of the documents.

use tantivy::schema::{
    BytesOptions, FAST, Field, INDEXED, IndexRecordOption, STORED, STRING, Schema, TextFieldIndexing, TextOptions,
};

/// Name of the tokenizer of texts.
pub(crate) const TOKENIZER: &str = "chorus";

/// Names of the fields that are read as columns.
pub(crate) mod column {
    pub(crate) const GROUP: &str = "group";
    pub(crate) const NUMBER: &str = "number";
    pub(crate) const AGENT: &str = "agent";
    pub(crate) const ROLE: &str = "role";
    pub(crate) const AT: &str = "at";
    pub(crate) const SHORT_KEY: &str = "short_key";
}

/// The fields. A document is a message or a source; each has some of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields {
    /// Of a message: hash of its key and agent.
    pub(crate) key: Field,
    /// The first eight bytes of it, big-endian: under it a message has its vector.
    pub(crate) short_key: Field,
    pub(crate) group: Field,
    /// The place of the message in its sources, from 1.
    pub(crate) number: Field,
    /// Of both: a number made of the agent's id.
    pub(crate) agent: Field,
    pub(crate) role: Field,
    /// Microseconds since 1970: of the message, or of the source.
    pub(crate) at: Field,
    /// Words of the message: its speaker, text and commands.
    pub(crate) text: Field,
    pub(crate) tool: Field,
    pub(crate) origin: Field,
    /// Speaker and text as they are shown, as JSON.
    pub(crate) shown: Field,
    /// Of a source: its id.
    pub(crate) source: Field,
    /// The groups that the source holds.
    pub(crate) held: Field,
    /// Words of the source: title, summary, name, tags.
    pub(crate) title: Field,
    pub(crate) tag: Field,
    pub(crate) model: Field,
    /// Id of the conversation; that of the agent for `main`.
    pub(crate) conversation: Field,
    /// The source with its holdings, as JSON.
    pub(crate) header: Field,
}

impl Fields {
    pub(crate) fn new() -> (Self, Schema) {
        let mut schema = Schema::builder();
        let words = |options: IndexRecordOption| {
            let indexing = TextFieldIndexing::default().set_tokenizer(TOKENIZER).set_index_option(options);
            TextOptions::default().set_indexing_options(indexing)
        };
        let bytes = || BytesOptions::default().set_indexed();
        let fields = Self {
            key: schema.add_bytes_field("key", bytes()),
            short_key: schema.add_u64_field(column::SHORT_KEY, FAST),
            group: schema.add_u64_field(column::GROUP, INDEXED | FAST),
            number: schema.add_u64_field(column::NUMBER, INDEXED | FAST),
            agent: schema.add_u64_field(column::AGENT, INDEXED | FAST),
            role: schema.add_u64_field(column::ROLE, INDEXED | FAST),
            at: schema.add_i64_field(column::AT, FAST),
            text: schema.add_text_field("text", words(IndexRecordOption::WithFreqsAndPositions)),
            tool: schema.add_text_field("tool", STRING),
            origin: schema.add_text_field("origin", STRING),
            shown: schema.add_bytes_field("shown", STORED),
            source: schema.add_bytes_field("source", bytes()),
            held: schema.add_u64_field("held", INDEXED),
            title: schema.add_text_field("title", words(IndexRecordOption::WithFreqsAndPositions)),
            tag: schema.add_text_field("tag", STRING),
            model: schema.add_text_field("model", STRING),
            conversation: schema.add_bytes_field("conversation", bytes()),
            header: schema.add_bytes_field("header", STORED),
        };
        (fields, schema.build())
    }
}
