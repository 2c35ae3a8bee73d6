//! The contract between `chorusd` and its clients: wire types, framing and two small clients.
//!
//! This crate contains types and no policy. Each frame on the socket is a 4-byte big-endian length and that many bytes
//! of UTF-8 JSON ([`frame`]). The JSON is JSON-RPC 2.0 ([`rpc`]). Each method of the protocol is a [`Method`] with its
//! parameters and result in [`methods`].

#![warn(unreachable_pub)]

pub mod agent;
pub mod approval_text;
pub mod client;
#[cfg(feature = "async")]
pub mod client_async;
pub mod command_text;
pub mod error;
pub mod event;
pub mod frame;
#[cfg(feature = "async")]
pub mod frame_codec;
pub mod lock_file;
pub mod message;
pub mod methods;
pub mod paths;
pub mod peer_check;
pub mod pluralize;
pub mod rpc;
pub mod session;
pub mod shell_word;
pub mod tool_gist;
pub mod visible_text;
pub mod window;
pub mod working_set;

use chorus_proto_macros::wire;

pub use agent::{
    Agent, AgentState, AgentStatus, Blocked, ContextInfo, Meter, RunningTurn, SessionRef, TodayUsage, TokenSource,
    ToolsShown,
};
pub use client::{CallError, Client};
pub use error::{ErrorData, ErrorKind, RpcError};
pub use event::{Event, EventType};
pub use message::{Attachment, Author, Message, NewMessage, Role, Source, SourceKind, ToolCall, Usage};
pub use methods::Method;
pub use session::{ConversationRef, Session, SessionHeader, SessionSource, SummarySource, TokenPair, Trigger};
pub use window::{
    CountedTokens, Mend, MendKind, PieceKind, ShortMessage, Window, WindowBudget, WindowMessage, WindowPiece,
    WindowTool,
};
pub use working_set::{Item, ItemSource, Recall, RecalledPassage, Receipt, TokenBudget, WorkingSet};

/// Version of the protocol. It is independent of the release, and changes only when an older client or daemon could no
/// longer understand the other.
pub const PROTOCOL: u32 = 1;
