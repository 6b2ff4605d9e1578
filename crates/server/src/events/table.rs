//! The event API: every event that a client may send and every event that the server sends, one row each.
//!
//! A row has everything about an event except its payload type and its handler, which are together in a file of
//! `commands`. `protocol` says what the columns mean.

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use ts_rs::{Config, TS, TypeVisitor};

use super::commands::prompts::FlushQueue;
use super::commands::{
    arrange, credentials, decisions, delete, find, fork, history, hooks, inquire, list, prompts, start,
    statistics, steer,
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
    /// Lists sessions, the most recently changed first: all of them, or a page.
    SessionList(list::SessionList) = "session.list" {
        chinese: "列出会话，最近更新的在前；可以全部列出，也可以分页",
        session: none,
        scope: See,
        order: Beside,
        answers: [SessionList],
        connection: list::list,
    }
    /// Starts a session with its first prompt, or resumes a conversation.
    SessionStart(start::SessionStart) = "session.start" {
        chinese: "用第一条消息新建会话，或恢复已有对话",
        session: none,
        scope: Run,
        order: Command,
        answers: [SessionStarted, SessionStatus, SessionDeleted],
        connection: start::start,
    }
    /// Sends a prompt to a session. While a turn runs, the prompt is queued.
    SessionContinue(prompts::SessionContinue) = "session.continue" {
        chinese: "向会话发送一条消息；轮次进行中时排队",
        session: session_id,
        scope: Run,
        order: Command,
        answers: [SessionStatus, SessionQueue],
        handler: prompts::send,
    }
    /// Stops the running turn. Without a running turn, nothing happens.
    SessionStop(SessionRef) = "session.stop" {
        chinese: "停止当前轮次；没有进行中的轮次时无效果",
        session: session_id,
        scope: Run,
        order: Command,
        answers: [],
        handler: steer::stop,
    }
    /// Deletes a session, at once or after a delay.
    SessionDelete(delete::SessionDelete) = "session.delete" {
        chinese: "立即或延迟删除会话",
        session: session_id,
        scope: Run,
        order: Command,
        answers: [SessionDeleted],
        connection: delete::delete,
    }
    /// Cancels a scheduled deletion.
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
    /// Changes a session's title.
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
    SessionFlush(FlushQueue) = "session.flush" {
        chinese: "没有轮次进行时，发送排队中的第一条消息",
        session: session_id,
        scope: Run,
        order: Command,
        answers: [SessionStatus, SessionQueue],
        handler: prompts::flush,
    }
    /// Forks a session: the new one begins with the conversation so far, or up to a message.
    SessionFork(fork::SessionFork) = "session.fork" {
        chinese: "分叉会话：新会话以当前对话或其中某条消息为起点",
        session: session_id,
        scope: Run,
        order: Command,
        answers: [SessionForked],
        handler: fork::fork,
    }
    /// Restores files, conversation or both as they were before a prompt. A dry run only tells what would change, and
    /// nothing waits for it.
    SessionRewind(fork::SessionRewind) = "session.rewind" {
        chinese: "把文件、对话或两者恢复到某条消息之前；试运行只说明将改变什么",
        session: session_id,
        scope: Run,
        order: Command by fork::rewind_order,
        answers: [SessionRewound],
        handler: fork::rewind,
    }
    /// Undoes the last rewind of a conversation, with its files, if no prompt came since.
    SessionUnrewind(SessionRef) = "session.unrewind" {
        chinese: "撤销上一次对话回退（含文件），前提是之后没有发送过消息",
        session: session_id,
        scope: Run,
        order: Command,
        answers: [SessionUnrewound],
        handler: fork::undo_rewind,
    }
    /// Finds words in all of a session's messages.
    SessionFind(find::SessionFind) = "session.find" {
        chinese: "在会话的全部消息中查找文字",
        session: session_id,
        scope: Read,
        order: Question,
        answers: [SessionFound],
        handler: find::find,
    }
    /// Asks a session's agent a question about itself, beside its work.
    SessionInquire(inquire::SessionInquire) = "session.inquire" {
        chinese: "向会话的智能体查询其自身信息，不影响当前工作",
        session: session_id,
        scope: Read,
        order: Question,
        answers: [SessionAnswer],
        connection: inquire::inquire,
    }
    /// Ends the process outside of Tiller that uses the session's conversation.
    SessionTakeover(SessionRef) = "session.takeover" {
        chinese: "结束在 Tiller 之外使用该对话的进程",
        session: session_id,
        scope: Run,
        order: Command,
        answers: [SessionUpdated],
        handler: steer::take_over,
    }
    /// Reads a session's messages, all of them or a page.
    SessionHistory(history::HistoryRequest) = "session.history" {
        chinese: "读取会话的消息，可分页",
        session: session_id,
        scope: Read,
        order: Question,
        answers: [SessionHistory, PermissionRequest],
        connection: history::history,
    }
    /// Replays a session's events after `afterSeq` and continues live.
    SessionSubscribe(history::Subscribe) = "session.subscribe" {
        chinese: "重放 afterSeq 之后的事件，然后继续实时接收",
        session: session_id,
        scope: See,
        order: Question,
        answers: [PermissionRequest],
        connection: history::subscribe,
    }
    /// Answers a pending decision. `permission.resolved` acknowledges the answer.
    PermissionResponse(decisions::PermissionResponse) = "permission.response" {
        chinese: "回答待处理的决定，由 permission.resolved 确认",
        session: session_id,
        scope: Approve,
        order: Command,
        answers: [],
        handler: decisions::answer,
    }
    /// Registers for `hook.callback` on these events, from the next turn on, replacing earlier registrations.
    SessionHooks(hooks::SessionHooks) = "session.hooks" {
        chinese: "登记这些事件的 hook.callback，自下一轮次起生效，并替换之前的登记",
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
    /// Asks how the viewer has arranged their sessions.
    ArrangementGet(arrange::ArrangementGet) = "arrangement.get" {
        chinese: "查询会话列表的排列方式",
        session: none,
        scope: Read,
        order: Command by arrange::in_order,
        answers: [Arrangement],
        handler: arrange::get,
    }
    /// Pins a session, puts it into a group, gives it tags, or moves it. `arrangement.changed` tells all of the viewer's clients.
    ArrangementSession(arrange::ArrangeSession) = "arrangement.session" {
        chinese: "置顶会话、放入分组、设置标签或移动位置；以 arrangement.changed 告知该用户的所有客户端",
        session: session_id,
        scope: Run,
        order: Command by arrange::in_order,
        answers: [],
        handler: arrange::session,
    }
    /// Makes a group of sessions, or gives one another name or place.
    ArrangementGroup(arrange::SessionGroupInfo) = "arrangement.group" {
        chinese: "新建会话分组，或更改其名称或位置",
        session: none,
        scope: Run,
        order: Command by arrange::in_order,
        answers: [],
        handler: arrange::group,
    }
    /// Removes a group. Its sessions stay, in no group.
    ArrangementRemoveGroup(arrange::RemoveGroup) = "arrangement.removeGroup" {
        chinese: "删除分组；其中的会话保留，不再属于任何分组",
        session: none,
        scope: Run,
        order: Command by arrange::in_order,
        answers: [],
        handler: arrange::remove_group,
    }
    /// Chooses the order of the sessions in a folder or group.
    ArrangementSort(arrange::SortSessions) = "arrangement.sort" {
        chinese: "选择文件夹或分组内会话的排序方式",
        session: none,
        scope: Run,
        order: Command by arrange::in_order,
        answers: [],
        handler: arrange::sort,
    }
    /// Subscribes to `statistics`, sent once a second.
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
    /// The session that a `session.start` with a `requestId` created; sent to that client only.
    SessionStarted(start::SessionStarted) = "session.started" {
        chinese: "带 requestId 的 session.start 所创建的会话，仅发给该客户端",
        seq: false,
    }
    /// A session's status changed.
    SessionStatus(StatusChange) = "session.status" { chinese: "会话状态变化", seq: true }
    /// A session was deleted.
    SessionDeleted(delete::SessionDeleted) = "session.deleted" { chinese: "会话已删除", seq: false }
    /// The session's queue: the prompts that wait for the running turn to end.
    SessionQueue(prompts::SessionQueue) = "session.queue" { chinese: "等待当前轮次结束的消息", seq: false }
    /// A session's entry in the list changed in a way that `session.status` does not report.
    SessionUpdated(list::SessionUpdated) = "session.updated" {
        chinese: "会话的列表条目发生了 session.status 未包含的变化",
        seq: false,
    }
    /// The session that a `session.fork` created.
    SessionForked(fork::SessionForked) = "session.forked" { chinese: "session.fork 创建的会话", seq: false }
    /// What a `session.rewind` changed, or would change.
    SessionRewound(fork::SessionRewound) = "session.rewound" {
        chinese: "session.rewind 已做出或将做出的改动",
        seq: false,
    }
    /// What a `session.unrewind` brought back.
    SessionUnrewound(fork::SessionUnrewound) = "session.unrewound" {
        chinese: "session.unrewind 恢复了什么",
        seq: false,
    }
    /// Where a `session.find` found the words.
    SessionFound(find::SessionFound) = "session.found" { chinese: "session.find 找到的位置", seq: false }
    /// The answer to a `session.inquire`: either `data`, in the agent's own format, or `error`.
    SessionAnswer(inquire::SessionAnswer) = "session.answer" {
        chinese: "对 session.inquire 的回答：data（智能体自己的格式）或 error",
        seq: false,
    }
    /// This client fell behind and has to ask again for what it missed.
    SessionReset(SessionReset) = "session.reset" { chinese: "客户端读取过慢，需重新请求错过的内容", seq: false }
    /// A prompt that was sent to the agent.
    StreamUserPrompt(StreamUserPrompt) = "stream.user_prompt" { chinese: "发送给智能体的消息", seq: true }
    /// A message of the agent.
    StreamMessage(StreamMessage) = "stream.message" { chinese: "智能体的消息", seq: true }
    /// A decision is pending.
    PermissionRequest(PermissionRequest) = "permission.request" { chinese: "有决定等待处理", seq: true }
    /// A decision was answered, by this or another client, or withdrawn.
    PermissionResolved(PermissionResolved) = "permission.resolved" {
        chinese: "决定已由某个客户端处理，或已撤回",
        seq: true,
    }
    /// The agent called a hook and waits for a `hook.response`; after a minute it continues without a decision.
    HookCallback(hooks::HookCallback) = "hook.callback" {
        chinese: "智能体等待 hook.response；一分钟内没有回答则自行继续",
        seq: false,
    }
    /// The hook call no longer waits: a client answered it, or the agent continued without an answer.
    HookResolved(hooks::HookResolved) = "hook.resolved" {
        chinese: "回调不再等待：已被回答，或智能体已自行继续",
        seq: false,
    }
    /// How the viewer has arranged their sessions.
    Arrangement(arrange::ArrangementInfo) = "arrangement" { chinese: "会话列表的排列方式", seq: false }
    /// The viewer has changed the arrangement, here or elsewhere.
    ArrangementChanged(arrange::ArrangementChanged) = "arrangement.changed" {
        chinese: "排列方式已更改（在此或别处）",
        seq: false,
    }
    /// Someone else can get in now: a browser has signed in, or a key was made, here or on the command line. Only the person at
    /// the machine hears of it.
    CredentialCreated(credentials::CredentialCreated) = "credential.created" {
        chinese: "有新的浏览器登录，或新建了密钥（在此处或命令行）；仅通知本机用户",
        seq: false,
    }
    /// The load of the machine.
    Statistics(statistics::MachineLoad) = "statistics" { chinese: "机器负载", seq: false }
    /// A frame was refused, or a session can't continue.
    RunnerError(RunnerError) = "runner.error" { chinese: "某一帧被拒绝，或会话无法继续", seq: false }
}
