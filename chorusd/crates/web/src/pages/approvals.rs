//! The pending approvals, each with its answers.

use std::sync::Arc;

use axum::extract::State;
use chorus_proto::approval_text::{describe_action, reach_line};
use chorus_proto::methods::approvals::{Approval, List, ListParams};
use chorus_proto::visible_text::make_visible;
use chorus_terminal_text::duration::format_rounded;
use jiff::Timestamp;
use maud::{Markup, html};
use serde::Deserialize;

use crate::app::App;
use crate::extract::QueryParams;
use crate::failure_page::{PageResult, page};
use crate::layout::{self, Frame, Section};
use crate::prefix::at;
use crate::text::{line, live_path, query, segment, short};

/// Approvals on a page.
const APPROVALS: u64 = 50;

#[derive(Debug, Deserialize)]
pub(crate) struct Params {
    offset: Option<u64>,
}

pub(crate) async fn show(State(app): State<Arc<App>>, QueryParams(params): QueryParams<Params>) -> PageResult {
    let frame = Frame::new(&app, "Approvals", Section::Approvals);
    let mut daemon = app.connect().await?;
    let overview = daemon.status(0).await?;
    let list = ListParams { offset: params.offset, limit: Some(APPROVALS), ..Default::default() };
    let list = daemon.call::<List>(list).await?;
    let main = html! {
        h1 { "Pending approvals" }
        div #approvals data-live data-on="approval." {
            @if list.approvals.is_empty() { p.none { "No pending approvals." } }
            @for approval in &list.approvals { (render_approval(&app, approval, overview.now, &at("/approvals"))) }
            @if let Some(next) = list.next {
                p { a href=(query(&[("offset", Some(&next.to_string()))])) { "More" } }
            }
        }
    };
    Ok(page(layout::page(&frame, &overview, &main)))
}

/// Renders an approval with everything that is known of its action, and all characters visible. A browser without the script continues
/// at `back`.
pub(super) fn render_approval(app: &App, approval: &Approval, now: Timestamp, back: &str) -> Markup {
    let action = describe_action(&approval.action);
    let directory = approval.directory.as_deref().map(line);
    let reach = directory.and_then(|directory| reach_line(approval, &directory));
    let left = approval.expires_at.as_second().saturating_sub(now.as_second()).max(0);
    html! {
        article.approval #(format!("a{}", segment(&approval.id))) data-item tabindex="0" {
            h2 {
                span.who {
                    a href=(live_path(&approval.agent, approval.conversation.as_deref())) {
                        (short(&approval.agent, 64))
                        @if let Some(conversation) = &approval.conversation { " / " (short(conversation, 64)) }
                    }
                    " wants to " (action.wish)
                }
                span.at { "expires in " (format_rounded(left.unsigned_abs())) }
            }
            @if !action.subject.is_empty() { pre { (make_visible(action.subject)) } }
            @for detail in &approval.details {
                p.line { (make_visible(&detail.name)) }
                pre { (make_visible(&detail.text)) }
            }
            @if let Some(reach) = reach { p.line { (line(&reach)) } }
            @if let Some(reason) = &approval.reason { p.line { "Asked because " (line(reason)) "." } }
            @if let Some(never) = &approval.not_always { p.line { "It cannot be allowed permanently: " (line(never)) "." } }
            @if !app.is_read_only { (render_answers(approval, back)) }
        }
    }
}

/// Renders the answers. Denying has a form of its own: Enter in the box of the reason presses the first button of its form.
fn render_answers(approval: &Approval, back: &str) -> Markup {
    let choice = |value: &str, text: &str| html! { button name="decision" value=(value) { (text) } };
    let action = at(&format!("/approvals/{}", segment(&approval.id)));
    let hidden = html! {
        input type="hidden" name="hash" value=(approval.hash);
        input type="hidden" name="back" value=(back);
    };
    html! {
        form.answers method="post" action=(action) data-post {
            (hidden)
            div.choices {
                button.yes name="decision" value="once" { "Approve" }
                @if approval.turn_allowed { (choice("turn", "All of this turn")) }
                @if approval.not_always.is_none() { (choice("always", "Always exactly this")) }
                @if !approval.patterns.is_empty() {
                    (choice("pattern", &format!("Always {}", make_visible(&approval.patterns.join(", ")))))
                }
            }
            p.problem role="alert" {}
        }
        form.answers method="post" action=(action) data-post {
            (hidden)
            div.choices {
                input name="reason" placeholder="Reason, for the model" aria-label="Reason for denying" maxlength="1000" autocomplete="off";
                button.no name="decision" value="deny" { "Deny" }
            }
            p.problem role="alert" {}
        }
    }
}
