//! The context meter: how many tokens the next request of an agent would have, of those that its model takes.

use std::collections::HashMap;
use std::sync::Arc;

use chorus_proto::Meter;
use uuid::Uuid;

use super::{Ops, blocking};
use crate::agent::directory::Entry;
use crate::agent::prompt::{estimated, fits, room_for_tools};
use crate::agent::{Facts, memories, meter};
use crate::failure::Result;
use crate::tools;

/// What is known of a model.
#[derive(Clone, Copy)]
struct Model {
    /// Tokens that it takes.
    window: Option<u64>,
    /// Tokens that it counts for each that is estimated.
    ratio: Option<f64>,
}

/// The meters of those that have a live context and a model. No request is built: a thousand cost some milliseconds.
///
/// # Errors
/// A database that cannot be read.
pub async fn read(ops: &Ops, entries: &[Arc<Entry>]) -> Result<HashMap<Uuid, Meter>> {
    let shown = ops.registry.shown(entries.iter().map(|entry| (entry.facts.id, entry.facts.window)));
    let live: Vec<_> =
        entries.iter().zip(shown).filter_map(|(entry, shown)| Some((entry.facts.clone(), shown?))).collect();
    if live.is_empty() {
        return Ok(HashMap::new());
    }
    let remembered =
        memories::shown(&ops.store.catalog, live.iter().map(|(facts, _)| memories::whose(facts)).collect()).await?;
    let measured = blocking(move || {
        let fixed = |((facts, shown), remembered): ((Arc<Facts>, u64), Option<String>)| {
            (meter::fixed(&facts, remembered.as_deref()), shown, facts)
        };
        Ok(live.into_iter().zip(remembered).map(fixed).collect::<Vec<_>>())
    });
    let (mut models, mut meters) = (HashMap::new(), HashMap::new());
    for (fixed, shown, facts) in measured.await? {
        let Some(name) = &facts.model else { continue };
        if !models.contains_key(name) {
            models.insert(name.clone(), look_up(ops, name).await?);
        }
        let Some(Some(Model { window, ratio })) = models.get(name).copied() else { continue };
        // As the prompt is cut for a model that takes little.
        let takes = window.map(|window| estimated(window, ratio));
        let tools = tools::offer(facts.rules(), room_for_tools(takes, fixed));
        let shown = shown.min(fits(&facts, takes, fixed + tools.tokens));
        let due = fixed + tools.tokens + shown;
        // Far below what a float counts exactly.
        let used = (due as f64 * ratio.unwrap_or(1.0)).round() as u64;
        meters.insert(facts.id, Meter { used, window, calibrated: ratio.is_some(), tools: tools.cut });
    }
    Ok(meters)
}

/// `None` where no model has the name.
async fn look_up(ops: &Ops, name: &str) -> Result<Option<Model>> {
    let Ok(target) = ops.models.resolve(name) else { return Ok(None) };
    let ratio = ops.usage.ratio(&target.to_string()).await?;
    Ok(Some(Model { window: ops.models.window_of(&target), ratio }))
}
