//! The macro of commands that only group others.

/// Defines a command that only groups others: its `Args`, the subcommands, and `run`. Each subcommand has a module with
/// `Args` and `run`. `or MODULE` names the one that runs, with its options, if none is given; `or only MODULE` one whose
/// options need its name, because they have words that could be a mistyped subcommand. The doc comments are the help.
macro_rules! group {
    ($(#[$about:meta])+ enum Verb { $($verbs:tt)+ }) => {
        $(#[$about])+
        #[derive(Debug, clap::Args)]
        pub struct Args {
            #[command(subcommand)]
            verb: Verb,
        }

        pub fn run(args: Args, app: &mut $crate::app::App) -> Result<(), $crate::error::Error> {
            args.verb.run(app)
        }

        group!(@verbs $($verbs)+);
    };
    ($(#[$about:meta])+ enum Verb or $default:ident { $($verbs:tt)+ }) => {
        $(#[$about])+
        #[derive(Debug, clap::Args)]
        #[command(args_conflicts_with_subcommands = true)]
        #[group(skip)]
        pub struct Args {
            #[command(subcommand)]
            verb: Option<Verb>,
            #[command(flatten)]
            default: $default::Args,
        }

        pub fn run(args: Args, app: &mut $crate::app::App) -> Result<(), $crate::error::Error> {
            match args.verb {
                None => $default::run(args.default, app),
                Some(verb) => verb.run(app),
            }
        }

        group!(@verbs $($verbs)+);
    };
    ($(#[$about:meta])+ enum Verb or only $default:ident { $($verbs:tt)+ }) => {
        $(#[$about])+
        #[derive(Debug, clap::Args)]
        pub struct Args {
            #[command(subcommand)]
            verb: Option<Verb>,
        }

        pub fn run(args: Args, app: &mut $crate::app::App) -> Result<(), $crate::error::Error> {
            match args.verb {
                None => $default::run($default::Args::default(), app),
                Some(verb) => verb.run(app),
            }
        }

        group!(@verbs $($verbs)+);
    };
    (@verbs $($(#[$about:meta])+ $verb:ident($module:ident::Args),)+) => {
        #[derive(Debug, clap::Subcommand)]
        #[command(defer = true)]
        enum Verb {
            $($(#[$about])+ $verb($module::Args),)+
        }

        impl Verb {
            fn run(self, app: &mut $crate::app::App) -> Result<(), $crate::error::Error> {
                match self {
                    $(Self::$verb(args) => $module::run(args, app),)+
                }
            }
        }
    };
}
