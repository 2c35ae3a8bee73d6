//! The operation `approvals.list`.

use std::sync::Arc;

use chorus_base::error::{Error, Result};
use chorus_catalog::ApprovalTable;
use chorus_config::Config;
use chorus_proto::methods::approvals::{Approval, ListParams, ListResult};

use crate::approvals::Approvals;
use crate::ops::agent::AgentResolver;

/// The limit on decided approvals in a list.
const MAX_DECIDED: u32 = 100;

/// The limit on approvals in a page, and the default.
const MAX_PAGE: u64 = 200;

/// The limit on the bytes of a page; its first approval is included in any case.
const MAX_PAGE_BYTES: usize = 2 << 20;

/// Lists open approvals; with `all` also recently decided ones.
pub async fn list(
    agents: &AgentResolver,
    approvals: &Approvals,
    table: &Arc<dyn ApprovalTable>,
    config: &Config,
    params: ListParams,
) -> Result<ListResult> {
    let limit = params.limit.unwrap_or(MAX_PAGE);
    if limit == 0 {
        return Err(Error::invalid("`limit` must be at least 1").hint("use `offset` for more approvals"));
    }
    let agent = match &params.agent {
        Some(name) => Some(agents.resolve(Some(name)).await?.settings.id),
        None => None,
    };
    // Open ones are read last, so that an approval that is decided in between is listed once.
    let mut listed = if params.all { table.list_decided(agent, MAX_DECIDED).await? } else { Vec::new() };
    let open = approvals.open_approvals(agent);
    listed.retain(|decided| open.iter().all(|open| open.id != decided.id));
    listed.extend(open);
    if agent.is_none() {
        let elsewhere = table.list_open_elsewhere().await?;
        if !elsewhere.is_empty() {
            listed.extend(elsewhere);
            listed.sort_by(|one, other| (one.asked_at, &one.id).cmp(&(other.asked_at, &other.id)));
        }
    }
    Ok(build_page(listed, params.offset.unwrap_or(0), limit.min(MAX_PAGE), MAX_PAGE_BYTES.min(config.max_frame / 8)))
}

/// Returns the page from `offset` on, limited in number and bytes.
fn build_page(approvals: Vec<Approval>, offset: u64, limit: u64, most: usize) -> ListResult {
    let all = approvals.len() as u64;
    let mut bytes = 0;
    let fits = |approval: &Approval| {
        let first = bytes == 0;
        bytes += approx_bytes(approval);
        first || bytes <= most
    };
    let from = approvals.into_iter().skip(usize::try_from(offset).unwrap_or(usize::MAX));
    let approvals: Vec<Approval> = from.take(usize::try_from(limit).unwrap_or(usize::MAX)).take_while(fits).collect();
    let next = offset.saturating_add(approvals.len() as u64);
    ListResult { approvals, next: (next < all).then_some(next) }
}

/// Returns the approximate encoded size in bytes.
fn approx_bytes(approval: &Approval) -> usize {
    let details: usize = approval.details.iter().map(|detail| detail.name.len() + detail.text.len()).sum();
    let parts: usize = approval.parts.iter().map(|part| part.action.len() + 128).sum();
    512 + approval.action.len() + details + parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use chorus_agent_core::test_support;

    #[test]
    fn pages_have_every_approval_once_however_long_it_is() {
        let long = |id: u32| Approval { action: "x".repeat(3000), ..test_support::sample_approval(&id.to_string()) };
        for (limit, most, sizes) in
            [(200, 1 << 20, vec![7]), (3, 1 << 20, vec![3, 3, 1]), (200, 8000, vec![2, 2, 2, 1]), (5, 10, vec![1; 7])]
        {
            let (mut ids, mut pages, mut next) = (Vec::new(), Vec::new(), Some(0));
            while let Some(offset) = next {
                let found = build_page((0..7).map(long).collect(), offset, limit, most);
                pages.push(found.approvals.len());
                ids.extend(found.approvals.into_iter().map(|approval| approval.id));
                next = found.next;
            }
            assert_eq!((pages, ids.join("")), (sizes, "0123456".to_owned()));
        }
        assert_eq!(build_page(vec![long(0)], 9, 5, 10), ListResult { approvals: Vec::new(), next: None });
    }
}
