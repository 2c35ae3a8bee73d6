//! `chorusctl chat`: a conversation at the terminal, or from piped lines.

use crate::app::App;
use crate::commands::send::interrupt::InterruptHandler;
use crate::conversation_select::MAIN;
use crate::error::Error;
use crate::ui::stdout::OutputFormat;
use crate::ui::{ChatCommands, terminal};

mod attach;
mod attach_resume;
mod attached_lines;
mod attached_output;
mod command_names;
mod editor;
mod history_path;
mod interactive;
mod mentions;
mod notices;
mod piped;
mod presence;
mod print_above;
mod slash;
mod start;
mod words;

/// Talk with an agent's model
///
/// Continues the live conversation. Each line is a message. A line that ends in `\` continues in the next one, and pasted text is one
/// message. Ctrl-C cancels the running turn or clears the line; Ctrl-D exits. Lines that start with `/` are commands: `/help` lists them.
/// Start a line with a space to send it as a message.
///
/// A word `@FILE` attaches that file; write `@"my file"` if its name has spaces, and `\@` for a literal @. Tab completes names. Idle saves and
/// what others write into the conversation are shown as they happen.
///
/// With --attach, Ctrl-C cancels the turn that is shown, whoever started it.
///
/// If standard input is not a terminal, each of its lines is a message, and the first one that fails ends the chat.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Start a new conversation; unsaved messages of the live one are saved first
    #[arg(long)]
    new: bool,
    /// Start from a saved conversation's summary; unsaved messages of the live one are saved first
    #[arg(long, value_name = "SESSION|FILE", conflicts_with = "new")]
    resume: Option<String>,
    /// Use this conversation, like --conversation; it is created if the agent has none of this name
    #[arg(long, value_name = "NAME", id = "conversation_name", conflicts_with = "conversation")]
    name: Option<String>,
    /// Also show what others say in the conversation as they say it, from the start of a running turn; without a terminal, only follow
    #[arg(long, conflicts_with_all = ["new", "resume"])]
    attach: bool,
    /// Also show the model's thinking
    #[arg(long)]
    thinking: bool,
}

/// Context with which the chat starts.
#[derive(Debug, Clone, Copy)]
enum StartMode<'a> {
    /// Continue the live context.
    Continue,
    New,
    /// Continue from this session's summary in a new context.
    Resume(&'a str),
}

impl<'a> StartMode<'a> {
    fn from_args(args: &'a Args) -> Self {
        match &args.resume {
            Some(session) => Self::Resume(session),
            None if args.new => Self::New,
            None => Self::Continue,
        }
    }
}

pub fn run(args: &Args, app: &mut App) -> Result<(), Error> {
    if args.name.is_some() {
        app.global.conversation.clone_from(&args.name);
    }
    // What a slash command prints stays above the prompt.
    app.global.no_pager = true;
    let person = terminal::can_chat() && app.stdout.format() == OutputFormat::Text;
    // To follow a conversation without saying anything creates none.
    app.begins_conversation = person || !args.attach;
    let commands = |agent| person.then_some(ChatCommands { agent, slash_name: command_names::slash_name });
    app.name_commands(app.global.conversation.clone(), commands(app.agent().unwrap_or_default()));
    let opened = start::open_conversation(app, StartMode::from_args(args), person)?;
    app.stdout.flush()?;
    let name = opened.conversation.as_ref().map(|conversation| conversation.name.clone());
    app.name_commands(name.or_else(|| app.global.conversation.clone()), commands(opened.agent.clone()));
    // Stay with this agent and conversation even if others are chosen elsewhere meanwhile.
    app.set_agent(opened.agent.clone());
    let main = || MAIN.to_owned();
    app.set_conversation(opened.conversation.as_ref().map_or_else(main, |conversation| conversation.id.to_string()));
    let interrupts = InterruptHandler::install(app)?;
    if person {
        interactive::run(app, &interrupts.warn_before_exit(), opened, args)
    } else if args.attach {
        attached_output::follow(app, piped::display_options(args.thinking))
    } else {
        piped::run(app, &interrupts, args.thinking)
    }
}
