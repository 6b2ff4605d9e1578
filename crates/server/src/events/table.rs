//! The event API: every event that a client may send and every event that the server sends, one row each.
//!
//! A row is all there is to an event beside its payload type and its handler, which live together in a file of `commands`.
//! `protocol` says what the columns mean.

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use ts_rs::{Config, TS, TypeVisitor};

use super::commands::{
    decisions, delete, fork, history, hooks, inquire, list, prompts, start, statistics, steer,
};
use super::parse;
use super::protocol::{
    ClientRow, Frame, Ordering, Scope, ServerRow, TYPESCRIPT, client_events, schemas_of, serialize_frame,
    server_events, typescript_comment, typescript_frame,
};
use super::request::{Handled, Request};
use super::socket::Connection;
use super::wire::{
    History, PermissionRequest, PermissionResolved, RunnerError, SessionRef, SessionReset, StatusChange,
    StreamMessage, StreamUserPrompt,
};

client_events! {
    /// Lists sessions, the last changed first: all of them, or a page.
    SessionList(list::SessionList) = "session.list" {
        chinese: "列出会话，最近变化的在前：全部，或其中一页",
        session: none,
        scope: See,
        order: Beside,
        answers: [SessionList],
        connection: list::list,
    }
    /// Starts a session with its first prompt, or resumes a conversation.
    SessionStart(start::SessionStart) = "session.start" {
        chinese: "用第一条消息开始一个会话，或恢复一个对话",
        session: none,
        scope: Run,
        order: Command,
        answers: [SessionStarted, SessionStatus, SessionDeleted],
        connection: start::start,
    }
    /// Sends a prompt to a session. While a turn runs, the prompt is queued.
    SessionContinue(prompts::SessionContinue) = "session.continue" {
        chinese: "向会话发送一条消息；回合进行中时排队",
        session: session_id,
        scope: Run,
        order: Command,
        answers: [SessionStatus, SessionQueue],
        handler: prompts::send,
    }
    /// Stops the running turn. Without one, nothing happens.
    SessionStop(SessionRef) = "session.stop" {
        chinese: "停止正在进行的回合；没有回合时不做任何事",
        session: session_id,
        scope: Run,
        order: Command,
        answers: [],
        handler: steer::stop,
    }
    /// Deletes a session, at once or after a delay.
    SessionDelete(delete::SessionDelete) = "session.delete" {
        chinese: "删除会话，立即或延迟",
        session: session_id,
        scope: Run,
        order: Command,
        answers: [SessionDeleted],
        connection: delete::delete,
    }
    /// Cancels a deletion whose time has not come.
    SessionUndelete(SessionRef) = "session.undelete" {
        chinese: "撤销尚未执行的删除",
        session: session_id,
        scope: Run,
        order: Command,
        answers: [],
        handler: delete::undelete,
    }
    /// Changes a session's settings.
    SessionConfigure(steer::SessionConfigure) = "session.configure" {
        chinese: "更改会话设置",
        session: session_id,
        scope: Run,
        order: Command,
        answers: [],
        handler: steer::configure,
    }
    /// Gives a session another title.
    SessionRename(steer::SessionRename) = "session.rename" {
        chinese: "重命名会话",
        session: session_id,
        scope: Run,
        order: Command,
        answers: [],
        handler: steer::rename,
    }
    /// Archives a session, or takes it out of the archive.
    SessionArchive(steer::SessionArchive) = "session.archive" {
        chinese: "归档会话，或取消归档",
        session: session_id,
        scope: Run,
        order: Command,
        answers: [],
        handler: steer::archive,
    }
    /// Replaces the queued prompts.
    SessionQueue(prompts::ReplaceQueue) = "session.queue" {
        chinese: "替换排队中的消息",
        session: session_id,
        scope: Run,
        order: Command,
        answers: [SessionQueue],
        handler: prompts::replace_queue,
    }
    /// Sends the first queued prompt, if no turn runs.
    SessionFlush(SessionRef) = "session.flush" {
        chinese: "没有回合进行时，发送排队中的第一条消息",
        session: session_id,
        scope: Run,
        order: Command,
        answers: [SessionStatus, SessionQueue],
        handler: prompts::flush,
    }
    /// Forks a session: the new one begins with the conversation so far.
    SessionFork(fork::SessionFork) = "session.fork" {
        chinese: "分叉会话：新会话从当前对话继续",
        session: session_id,
        scope: Run,
        order: Command,
        answers: [SessionForked],
        handler: fork::fork,
    }
    /// Restores the files as they were before a prompt. A dry run only tells what would change, and nothing waits for it.
    SessionRewind(fork::SessionRewind) = "session.rewind" {
        chinese: "把文件恢复到某条消息之前；试运行只说明将改变什么",
        session: session_id,
        scope: Run,
        order: Command by fork::rewind_order,
        answers: [SessionRewound],
        handler: fork::rewind,
    }
    /// Asks something of a session's agent beside its work.
    SessionInquire(inquire::SessionInquire) = "session.inquire" {
        chinese: "在工作之外向会话的代理查询信息",
        session: session_id,
        scope: Read,
        order: Question,
        answers: [SessionAnswer],
        connection: inquire::inquire,
    }
    /// Ends the foreign process that drives the session's conversation.
    SessionTakeover(SessionRef) = "session.takeover" {
        chinese: "结束正在别处驱动该对话的进程",
        session: session_id,
        scope: Run,
        order: Command,
        answers: [SessionUpdated],
        handler: steer::take_over,
    }
    /// Reads a session's messages, all of them or a page.
    SessionHistory(history::HistoryRequest) = "session.history" {
        chinese: "读取会话的消息，全部或一页",
        session: session_id,
        scope: Read,
        order: Question,
        answers: [SessionHistory, PermissionRequest],
        connection: history::history,
    }
    /// Replays a session's events after `afterSeq`, and goes on live.
    SessionSubscribe(history::Subscribe) = "session.subscribe" {
        chinese: "重放 afterSeq 之后的事件，并继续实时接收",
        session: session_id,
        scope: See,
        order: Question,
        answers: [PermissionRequest],
        connection: history::subscribe,
    }
    /// Answers a decision that waits. `permission.resolved` acknowledges the answer.
    PermissionResponse(decisions::PermissionResponse) = "permission.response" {
        chinese: "回答等待中的决定；以 permission.resolved 确认",
        session: session_id,
        scope: Approve,
        order: Command,
        answers: [],
        handler: decisions::answer,
    }
    /// Registers for `hook.callback` on these events, from the next turn on, in place of those registered before.
    SessionHooks(hooks::SessionHooks) = "session.hooks" {
        chinese: "登记这些事件的 hook.callback，从下一回合开始，替换之前的登记",
        session: session_id,
        scope: Approve,
        order: Command,
        answers: [],
        handler: hooks::register,
    }
    /// Answers a `hook.callback`.
    HookResponse(hooks::HookResponse) = "hook.response" {
        chinese: "回答 hook.callback",
        session: session_id,
        scope: Approve,
        order: Command,
        answers: [],
        handler: hooks::answer,
    }
    /// From then on, `statistics` once a second.
    StatisticsSubscribe(statistics::StatisticsSubscribe) = "statistics.subscribe" {
        chinese: "此后每秒接收一次 statistics",
        session: none,
        scope: Read,
        order: InLoop,
        answers: [],
        connection: statistics::subscribe,
    }
}

server_events! {
    /// The sessions.
    SessionList(list::SessionListed) = "session.list" { chinese: "会话列表", seq: false }
    /// A session's messages.
    SessionHistory(History) = "session.history" { chinese: "会话的消息", seq: false }
    /// Which session a `session.start` with a `requestId` became; for that client alone.
    SessionStarted(start::SessionStarted) = "session.started" {
        chinese: "带 requestId 的 session.start 成为了哪个会话，仅发给该客户端",
        seq: false,
    }
    /// A session's status changed.
    SessionStatus(StatusChange) = "session.status" { chinese: "会话状态变化", seq: true }
    /// A session was deleted.
    SessionDeleted(delete::SessionDeleted) = "session.deleted" { chinese: "会话已删除", seq: false }
    /// The prompts that wait for the running turn to end.
    SessionQueue(prompts::SessionQueue) = "session.queue" { chinese: "等待当前回合结束的消息", seq: false }
    /// A session's entry in the list changed in a way that `session.status` does not tell.
    SessionUpdated(list::SessionUpdated) = "session.updated" {
        chinese: "会话在列表中的条目有 session.status 未说明的变化",
        seq: false,
    }
    /// The session that a `session.fork` made.
    SessionForked(fork::SessionForked) = "session.forked" { chinese: "session.fork 产生的会话", seq: false }
    /// What a `session.rewind` changed, or would change.
    SessionRewound(fork::SessionRewound) = "session.rewound" {
        chinese: "session.rewind 改变了（或将改变）什么",
        seq: false,
    }
    /// The answer to a `session.inquire`: either `data`, in the agent's own form, or `error`.
    SessionAnswer(inquire::SessionAnswer) = "session.answer" {
        chinese: "对 session.inquire 的回答：data（代理自己的格式）或 error",
        seq: false,
    }
    /// This client fell behind. It asks again for what it missed.
    SessionReset(SessionReset) = "session.reset" { chinese: "客户端读取过慢，需重新请求错过的内容", seq: false }
    /// A prompt, when it is sent to the agent.
    StreamUserPrompt(StreamUserPrompt) = "stream.user_prompt" { chinese: "发送给代理的消息", seq: true }
    /// A message of the agent.
    StreamMessage(StreamMessage) = "stream.message" { chinese: "代理的消息", seq: true }
    /// A decision waits for the user.
    PermissionRequest(PermissionRequest) = "permission.request" { chinese: "有一个决定等待用户", seq: true }
    /// A decision was made, here or elsewhere, or withdrawn.
    PermissionResolved(PermissionResolved) = "permission.resolved" {
        chinese: "决定已作出（在此或别处），或已撤回",
        seq: true,
    }
    /// The agent waits for a `hook.response`, for a minute at most; then it goes on without a decision.
    HookCallback(hooks::HookCallback) = "hook.callback" {
        chinese: "代理等待 hook.response，最多一分钟，之后不带决定继续",
        seq: false,
    }
    /// The callback waits no longer: it was answered here or elsewhere, or its agent went on by itself.
    HookResolved(hooks::HookResolved) = "hook.resolved" {
        chinese: "回调不再等待：已被回答，或代理已自行继续",
        seq: false,
    }
    /// The load of the machine.
    Statistics(statistics::MachineLoad) = "statistics" { chinese: "机器负载", seq: false }
    /// Something failed: a frame was refused, or a session can't go on.
    RunnerError(RunnerError) = "runner.error" { chinese: "出错：某一帧被拒绝，或会话无法继续", seq: false }
}
