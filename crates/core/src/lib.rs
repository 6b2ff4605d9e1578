//! The domain of Tiller: sessions, their events, and the decisions that wait for people.
//!
//! It owns the life of a session: each session has an actor that runs the pure function [`session::step`]. The crate
//! does not know HTTP, SQL, or the message format of any agent. It needs two traits: [`Store`], which stores sessions
//! and events, and [`Backend`], which starts agents.

mod arrangement;
pub mod audit;
pub mod backend;
pub mod credentials;
mod event;
mod hub;
mod ids;
mod json;
mod paths;
pub mod prompt;
pub mod redact;
mod registry;
mod repeat;
pub mod rights;
mod saved_files;
pub mod session;
mod store;
mod title;

pub use arrangement::{
    Arrange, Arranged, Arrangement, ArrangementRefused, Choice, GroupId, Placement, PlacementPatch,
    SessionGroup, Sorting,
};
pub use backend::{
    Backend, BackendInfo, Driver, HookCall, Inquiry, InquiryFailed, Offers, OptionChange, OptionRefused,
    Options,
};
pub use event::{Behavior, DecisionRequest, Event, EventBody, Notice, Reply, StatusChange, UnreadableLine};
pub use hub::{FeedPosition, Lagged, LiveFeed};
pub use ids::{Cause, PromptId, RequestId, SessionId, Timestamp};
pub use json::RawJson;
pub use paths::{FileText, FolderListing, PathPolicy, PathRefused};
pub use prompt::{Attachment, Image, NewImage, NewPrompt, Prompt, PromptRefused};
pub use registry::{
    Accepted, AgentUsage, BackendChoice, Census, CommandError, HibernationPolicy, HistoryPage,
    KnownConversation, Match, Matches, Page, Retention, RewindOutcome, RewindScope, SessionPage, Sessions,
    StartSession, TitlePolicy, UndoOutcome,
};
pub use repeat::repeated;
pub use session::{
    AgentStatus, Approval, DecisionAnswer, DecisionRef, QueueItem, Refusal, RewindUndo, RewoundPart,
    RunRecord, SessionRecord, SessionStatus, Settings, SettingsPatch, TitleSource, TurnRecord,
};
pub use store::{
    AcceptedPrompt, Commit, DamagedSession, Decided, Epoch, Extent, HistoryEntry, HistoryKind, InvalidCursor,
    ListFilter, ListedSession, Owners, SessionCursor, SessionQuery, Store, StoreError, StoreFuture,
    StoredSession, UnfinishedSession,
};
pub use title::{title_from_model, title_from_prompt};
