//! Publishes the events of this node once they are stored.

use std::sync::Arc;

use chorus_journal::{EventPublisher, NewEvent};
use chorus_proto::event::Event;
use tokio_postgres::Row;

use crate::connection::Readers;
use crate::errors::read_failed;
use crate::node::Node;
use crate::rows::{count, read_event, to_bigint};
use crate::statement::read_once;

/// Publishes events with the numbers that the database gave them.
pub(crate) fn publish_stored<'a>(
    publisher: &EventPublisher,
    new: Vec<NewEvent>,
    rows: impl Iterator<Item = &'a Vec<Row>>,
) {
    publisher.publish(new.into_iter().zip(rows).filter_map(|(event, rows)| {
        let NewEvent { at, kind, agent, conversation, data } = event;
        Some(Arc::new(Event { seq: count(rows.first()?, 0), time: at, kind, agent, conversation, data, node: None }))
    }));
}

/// Publishes the events of this node that were stored while their numbers were lost.
pub(crate) async fn publish_missing(readers: &Readers, node: &Node, publisher: &EventPublisher) {
    let read = async {
        let client = readers.get().await?;
        let sql =
            "SELECT seq, at, type, agent, conversation, data FROM events WHERE node = $1 AND seq > $2 ORDER BY seq";
        let after = to_bigint(publisher.last_published());
        read_once(&client, sql, &[&node.id, &after]).await.map_err(|e| read_failed(&e))
    };
    match read.await {
        Ok(rows) => publisher.publish(rows.iter().map(|row| Arc::new(read_event(row)))),
        Err(failure) => tracing::warn!("events could not be read back after a lost connection: {failure}"),
    }
}
