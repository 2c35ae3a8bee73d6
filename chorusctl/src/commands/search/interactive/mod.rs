//! `chorusctl search` without a query: results as one types, on the whole screen.

mod actions;
mod layout;
mod preview;
mod query_line;
mod requests;
mod state;
mod view;

use std::io;

use chorus_proto::methods::search::{SearchHit, SearchParams};
use ratatui_core::layout::Rect;

use super::Args;
use crate::app::App;
use crate::error::{Error, os_error_text};
use crate::ui::full_screen::FullScreen;
use crate::ui::sanitize;
use crate::ui::time::Clock;
use layout::Layout;
use requests::RequestThread;
use state::{Effect, State};
use view::View;

/// Number of results unless --limit is given.
const DEFAULT_LIMIT: u64 = 50;

/// How a conversation is continued from a hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Restore,
    Branch,
}

/// Searches until the user leaves, then carries out what was chosen.
pub(super) fn run(args: Args, app: &mut App) -> Result<(), Error> {
    // Starts the daemon if none is running, and reports errors before the screen is taken.
    app.client()?;
    let is_filtered = args.has_filter() || app.global.conversation.is_some();
    let mut search = args.params(String::new(), app);
    search.limit.get_or_insert(DEFAULT_LIMIT);
    let view = View { clock: Clock::now(), scope: scope(&search), stderr: app.stderr };
    let mut state = State::new(search.clone(), is_filtered, app.global.agent.clone());
    let mut screen = FullScreen::enter(app.stdout.has_color()).map_err(|error| terminal_error(&error))?;
    let requests = RequestThread::start(app.global.clone(), search, screen.waker())?;
    let chosen = show_until_left(&mut screen, &requests, &view, &mut state, app)?;
    drop(screen);
    match chosen {
        Some((step, hit)) => actions::continue_from(step, &hit, state.agent_of(&hit), app),
        None => Ok(()),
    }
}

/// Handles keys and answers. Returns what to do after the screen was left.
fn show_until_left(
    screen: &mut FullScreen,
    requests: &RequestThread,
    view: &View,
    state: &mut State,
    app: &mut App,
) -> Result<Option<(Step, Box<SearchHit>)>, Error> {
    let failed = |error: io::Error| terminal_error(&error);
    let mut effects = Vec::new();
    loop {
        let mut area = Rect::default();
        let draw = |frame: &mut ratatui_core::terminal::Frame<'_>| {
            area = frame.area();
            view.draw(frame, state);
        };
        screen.draw(draw).map_err(failed)?;
        let layout = Layout::of(area);
        if let Some(request) = state.next_request(layout.has_preview()) {
            requests.send(request)?;
        }
        for key in screen.wait_for_keys().map_err(failed)? {
            effects.extend(state.on_key(key, layout.hits()));
        }
        if let Some(answer) = requests.answer()? {
            effects.extend(state.on_answer(answer));
        }
        for effect in effects.drain(..) {
            match effect {
                Effect::Leave => return Ok(None),
                Effect::Continue(step, hit) => return Ok(Some((step, hit))),
                Effect::Suspend => screen.suspend().map_err(failed)?,
                Effect::Redraw => screen.redraw().map_err(failed)?,
                Effect::Show(hit) => {
                    let agent = state.agent_of(&hit);
                    let shown = screen.while_left(|paging| actions::show(&hit, agent, app, paging)).map_err(failed)?;
                    if let Err(error) = shown {
                        // The connection itself may have failed.
                        app.disconnect();
                        state.report(&error);
                    }
                }
            }
        }
    }
}

fn terminal_error(error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => Error::failed("the terminal was closed"),
        _ => Error::failed(format!("cannot use the terminal: {}", os_error_text(error))),
    }
}

/// Returns the options that select what is searched, as they were typed.
fn scope(search: &SearchParams) -> Vec<String> {
    let role = search.role.and_then(|role| serde_json::to_value(role).ok());
    let role = role.as_ref().and_then(|role| role.as_str());
    let all_agents = search.all_agents.then(|| "all agents".to_owned());
    let options = [
        ("-C", search.conversation.as_deref()),
        ("--since", search.since.as_deref()),
        ("--until", search.until.as_deref()),
        ("--tag", search.tag.as_deref()),
        ("--role", role),
        ("--tool", search.tool.as_deref()),
        ("--source", search.source.as_deref()),
        ("--model", search.model.as_deref()),
        ("--project", search.project.as_deref()),
    ];
    let options =
        options.into_iter().filter_map(|(name, value)| Some(format!("{name} {}", sanitize::one_line(value?))));
    all_agents.into_iter().chain(options).collect()
}
