//! The error responses of all routes: `{"error":{"code":"…","message":"…"}}`, in the caller's language.

use axum::Json;
use axum::extract::Request;
use axum::http::header::{ACCEPT_LANGUAGE, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::json;
use tiller_core::{CommandError, repeated};

mod code;

pub use code::ErrorCode;

/// The table of errors: code, status, and the messages in English and Chinese.
macro_rules! refusals {
    ($($variant:ident = $code:ident, $status:ident, $english:literal, $chinese:literal;)+) => {
        #[derive(Clone, Copy, Debug, Eq, PartialEq)]
        pub(crate) enum ApiError { $($variant),+ }

        impl ApiError {
            fn parts(self) -> (ErrorCode, StatusCode, &'static str, &'static str) {
                match self { $(Self::$variant => (ErrorCode::$code, StatusCode::$status, $english, $chinese)),+ }
            }
        }
    };
}

refusals! {
    PromptEmpty = PromptEmpty, UNPROCESSABLE_ENTITY,
        "The task description is empty.", "任务描述不能为空";
    WorkingDirInvalid = WorkingDirInvalid, BAD_REQUEST,
        "The working directory does not exist or may not be used.", "工作目录不存在或无权限访问";
    PromptTooLong = PromptTooLong, UNPROCESSABLE_ENTITY,
        "The task description is too long. It may have at most 10,000 characters.", "任务描述超过最大长度限制";
    WorkingDirLocked = WorkingDirLocked, BAD_REQUEST,
        "A resumed session stays in its own working directory.", "恢复的会话不能更改工作目录";
    SessionNotFound = SessionNotFound, NOT_FOUND,
        "There is no such session.", "指定的会话不存在";
    SessionDamaged = SessionDamaged, CONFLICT,
        "This session can't be read. Its data is kept unchanged. You can delete the session.",
        "该会话的数据无法读取。数据已原样保留，可以删除该会话";
    QuestionNotFound = QuestionNotFound, NOT_FOUND,
        "There is no such question, or it was already answered.", "问题不存在（已超时或已回答）";
    InvalidAnswer = InvalidAnswer, BAD_REQUEST,
        "The answer must be a label, a list of labels, text, or null to cancel.", "答案格式无效：请填写选项、选项列表或文本，取消请用 null";
    TaskInterrupted = TaskInterrupted, BAD_REQUEST,
        "The task was interrupted.", "任务已被中断";
    Timeout = Timeout, GATEWAY_TIMEOUT,
        "The task reached its time limit and was stopped.", "任务超时，已被停止";
    RequestNotFound = RequestNotFound, NOT_FOUND,
        "No such request is waiting. It may have been withdrawn.", "没有这个待处理的请求，可能已被撤回";
    AlreadyAnswered = AlreadyAnswered, CONFLICT,
        "This request was already answered.", "该请求已有人处理";
    NotAsShown = NotAsShown, CONFLICT,
        "The request differs from what you were shown. Review it and answer again.",
        "请求内容与显示给您的不一致，请重新查看后再处理";
    AgentNotInstalled = AgentNotInstalled, CONFLICT,
        "The agent is not installed. GET /api/backends says how to install it.",
        "该智能体尚未安装，安装方法见 GET /api/backends";
    NotJson = InvalidRequest, BAD_REQUEST,
        "The body is not valid JSON.", "请求体不是有效的 JSON";
    WrongForm = InvalidRequest, UNPROCESSABLE_ENTITY,
        "A field is missing or invalid.", "字段缺失或格式不正确";
    TooLarge = InvalidRequest, PAYLOAD_TOO_LARGE,
        "The request is too large. The limit is 32 MiB.", "请求过大，上限为 32 MiB";
    HeadTooLarge = InvalidRequest, REQUEST_HEADER_FIELDS_TOO_LARGE,
        "The headers are too large. The limit is 64 KiB.", "请求头过大，上限为 64 KiB";
    BodyTimeout = Timeout, REQUEST_TIMEOUT,
        "The body of the request did not arrive in time. Send it again.", "请求体未在限定时间内到达，请重新发送";
    NotJsonType = InvalidRequest, UNSUPPORTED_MEDIA_TYPE,
        "Send JSON, with the content type application/json.", "请发送 JSON，内容类型为 application/json";
    NotAWebSocket = InvalidRequest, BAD_REQUEST,
        "This address is a WebSocket. Connect with a WebSocket client.", "此地址是 WebSocket，请使用 WebSocket 客户端连接";
    MethodNotAllowed = InvalidRequest, METHOD_NOT_ALLOWED,
        "This address does not support that method.", "此地址不支持该方法";
    NoSuchRoute = InvalidRequest, NOT_FOUND,
        "There is nothing at this address.", "此地址不存在";
    Unauthorized = Unauthorized, UNAUTHORIZED,
        "Sign in with the link from `tiller link`, or send a valid API key.", "API 密钥无效";
    NoSuchSignIn = InvalidRequest, NOT_FOUND,
        "There is no such sign-in. It may have ended in the meantime.", "找不到该登录，可能已经失效";
    NoSuchKey = InvalidRequest, NOT_FOUND,
        "There is no such key. It may have been revoked meanwhile.", "没有该密钥，可能已被吊销";
    KeyNameTaken = InvalidRequest, CONFLICT,
        "There is a key of that name already. Revoke it first, or choose another name.",
        "已有同名密钥，请先吊销它，或换一个名称";
    KeyNeedsApprove = InvalidRequest, UNPROCESSABLE_ENTITY,
        "A key whose sessions are approved automatically needs the scope approve.",
        "自动批准的密钥需要 approve 权限";
    Forbidden = Forbidden, FORBIDDEN,
        "Your API key does not allow this.", "当前密钥无权执行此操作";
    SandboxUnavailable = Forbidden, FORBIDDEN,
        "Your API key runs agents only in a sandbox, and this agent does not support one.",
        "当前密钥只允许在沙箱中运行智能体，而该智能体不支持沙箱";
    ShieldUnavailable = Forbidden, FORBIDDEN,
        "Your API key runs only shielded agents, and agents can't be shielded here. `tiller doctor` says why.",
        "当前密钥只允许运行受保护的代理，而这里无法启用保护，原因见 tiller doctor";
    ForeignHost = Forbidden, FORBIDDEN,
        "This host name is not allowed. To use it, add it to allowed_hosts in config.toml.",
        "此主机名未被允许。如需使用，请将其加入 config.toml 的 allowed_hosts";
    ForeignOrigin = Forbidden, FORBIDDEN,
        "Requests from other sites are refused.", "拒绝来自其他站点的请求";
    RateLimited = RateLimited, TOO_MANY_REQUESTS,
        "Too many requests. Try again later.", "请求过于频繁，请稍后再试";
    DiskFull = Internal, INSUFFICIENT_STORAGE,
        "The disk is full. Free some space, then try again.", "磁盘已满，请清理空间后重试";
    DatabaseDamaged = Internal, INTERNAL_SERVER_ERROR,
        "The database sessions.db is damaged. Stop Tiller, then put back a copy of the file, or move it away to begin \
         without sessions. `tiller doctor` names its folder.",
        "数据库 sessions.db 已损坏。请停止 Tiller，然后恢复该文件的备份，或将其移走以重新开始。所在目录见 tiller doctor";
    Internal = Internal, INTERNAL_SERVER_ERROR,
        "Something went wrong in the server. Try again later.", "服务内部错误，请稍后重试";
}

impl ApiError {
    pub(crate) fn code(self) -> ErrorCode {
        self.parts().0
    }

    pub(crate) fn text(self, language: Language) -> &'static str {
        let (_, _, english, chinese) = self.parts();
        match language {
            Language::English => english,
            Language::Chinese => chinese,
        }
    }

    fn render(self, language: Language, field: Option<&WrongField>) -> Response {
        let message = field.map_or_else(|| self.text(language).to_owned(), |field| field.text(language));
        let error = json!({ "code": self.code(), "message": message });
        (self.parts().1, Json(json!({ "error": error }))).into_response()
    }
}

/// An invalid field of a request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct WrongField {
    name: String,
    problem: FieldProblem,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum FieldProblem {
    Unknown,
    Missing,
    WrongForm,
}

/// How many characters a reason has at most that may repeat what a client sent.
const REASON: usize = 300;

/// A reason that is not understood at once is not understood any better in full.
pub(crate) fn shortened(text: &str) -> &str {
    text.char_indices()
        .nth(REASON)
        .map_or(text, |(end, _)| &text[..end])
}

impl WrongField {
    pub(crate) fn new(name: impl Into<String>, problem: FieldProblem) -> Self {
        Self {
            name: repeated(&name.into()),
            problem,
        }
    }

    fn text(&self, language: Language) -> String {
        let name = &self.name;
        match (self.problem, language) {
            (FieldProblem::Unknown, Language::English) => format!("Unknown field '{name}'."),
            (FieldProblem::Missing, Language::English) => format!("The field '{name}' is missing."),
            (FieldProblem::WrongForm, Language::English) => format!("The field '{name}' is invalid."),
            (FieldProblem::Unknown, Language::Chinese) => format!("未知字段：{name}"),
            (FieldProblem::Missing, Language::Chinese) => format!("缺少字段：{name}"),
            (FieldProblem::WrongForm, Language::Chinese) => format!("字段格式不正确：{name}"),
        }
    }
}

/// Rendered as [`ApiError`] is.
impl IntoResponse for WrongField {
    fn into_response(self) -> Response {
        let mut response = ApiError::WrongForm.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// Rendered by [`localize_errors`], which sees the request.
impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = self.parts().1.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl From<CommandError> for ApiError {
    fn from(error: CommandError) -> Self {
        match &error {
            CommandError::Store(error) => return Self::store(error),
            CommandError::SandboxUnavailable => return Self::SandboxUnavailable,
            CommandError::ShieldUnavailable => return Self::ShieldUnavailable,
            _ => {}
        }
        match ErrorCode::from(&error) {
            ErrorCode::SessionNotFound | ErrorCode::SessionDeleted => Self::SessionNotFound,
            ErrorCode::SessionDamaged => Self::SessionDamaged,
            ErrorCode::PromptEmpty => Self::PromptEmpty,
            ErrorCode::WorkingDirInvalid => Self::WorkingDirInvalid,
            ErrorCode::Forbidden => Self::Forbidden,
            ErrorCode::RequestNotFound => Self::RequestNotFound,
            ErrorCode::AlreadyAnswered => Self::AlreadyAnswered,
            ErrorCode::NotAsShown => Self::NotAsShown,
            ErrorCode::AgentNotInstalled => Self::AgentNotInstalled,
            ErrorCode::Storage | ErrorCode::Internal => Self::internal(&error),
            _ => Self::WrongForm,
        }
    }
}

impl ApiError {
    /// A full disk and a damaged file are reported as such, because the user can mend them.
    pub(crate) fn store(error: &tiller_core::StoreError) -> Self {
        tracing::error!(%error, "a request failed");
        match error {
            tiller_core::StoreError::Full => Self::DiskFull,
            tiller_core::StoreError::Damaged(_) => Self::DatabaseDamaged,
            _ => Self::Internal,
        }
    }

    /// The cause goes to the log, not to the client.
    pub(crate) fn internal(cause: &dyn std::fmt::Display) -> Self {
        tracing::error!(%cause, "a request failed");
        Self::Internal
    }
}

/// The language of messages to people.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Language {
    English,
    Chinese,
}

impl Language {
    /// The language tag for HTTP headers.
    pub(crate) fn tag(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::English => "en",
            Self::Chinese => "zh-CN",
        })
    }

    /// The first that we speak in order of preference; Chinese where nothing is said.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let Some(header) = headers.get(ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok()) else {
            return Self::Chinese;
        };
        let mut wanted: Vec<(f32, Self)> = header
            .split(',')
            .filter_map(|range| {
                let (tag, parameter) = range.split_once(';').unwrap_or((range, ""));
                let quality = parameter
                    .trim()
                    .strip_prefix("q=")
                    .map_or(Ok(1.0), str::parse)
                    .ok()?;
                let language = match tag.trim().split('-').next()?.to_ascii_lowercase().as_str() {
                    "zh" => Self::Chinese,
                    "en" => Self::English,
                    _ => return None,
                };
                (quality > 0.0).then_some((quality, language))
            })
            .collect();
        // Stable: of equal ones the first.
        wanted.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        // A reader of neither language is better served by English.
        wanted.first().map_or(Self::English, |(_, language)| *language)
    }
}

/// Gives refusals their words, and refusals of the libraries beneath us our form.
pub(crate) async fn localize_errors(request: Request, next: Next) -> Response {
    let language = Language::of(request.headers());
    let response = next.run(request).await;
    let Some(error) = response
        .extensions()
        .get::<ApiError>()
        .copied()
        .or_else(|| library_refusal(&response))
    else {
        return response;
    };
    let mut rendered = error.render(language, response.extensions().get());
    if error == ApiError::RateLimited {
        rendered
            .headers_mut()
            .insert(RETRY_AFTER, HeaderValue::from_static("60"));
    }
    for (name, value) in response.headers() {
        if name != axum::http::header::CONTENT_TYPE && name != axum::http::header::CONTENT_LENGTH {
            rendered.headers_mut().insert(name, value.clone());
        }
    }
    rendered
}

/// An extractor's own refusal, told by its status.
fn library_refusal(response: &Response) -> Option<ApiError> {
    let is_ours = response
        .headers()
        .get(axum::http::header::CONTENT_TYPE)
        .is_some_and(|kind| kind == "application/json");
    match response.status() {
        _ if is_ours => None,
        StatusCode::BAD_REQUEST => Some(ApiError::NotJson),
        StatusCode::UNPROCESSABLE_ENTITY => Some(ApiError::WrongForm),
        StatusCode::PAYLOAD_TOO_LARGE => Some(ApiError::TooLarge),
        StatusCode::UNSUPPORTED_MEDIA_TYPE => Some(ApiError::NotJsonType),
        StatusCode::UPGRADE_REQUIRED => Some(ApiError::NotAWebSocket),
        status if status.is_server_error() => Some(ApiError::Internal),
        _ => None,
    }
}

pub(crate) async fn method_not_allowed() -> ApiError {
    ApiError::MethodNotAllowed
}

#[cfg(test)]
mod tests {
    use tiller_core::StoreError;

    use super::*;

    fn language(header: Option<&str>) -> Language {
        let mut headers = HeaderMap::new();
        if let Some(header) = header {
            headers.insert(ACCEPT_LANGUAGE, header.parse().unwrap());
        }
        Language::of(&headers)
    }

    #[test]
    fn a_full_disk_and_a_damaged_file_are_named() {
        let full = ApiError::from(CommandError::Store(StoreError::Full));
        assert_eq!(full.parts().1, StatusCode::INSUFFICIENT_STORAGE);
        let damaged = ApiError::from(CommandError::Store(StoreError::Damaged("malformed".to_owned())));
        for (error, english, chinese) in [
            (full, "disk is full", "磁盘已满"),
            (damaged, "sessions.db", "sessions.db"),
        ] {
            assert!(error.text(Language::English).contains(english));
            assert!(error.text(Language::Chinese).contains(chinese));
        }
    }

    #[test]
    fn the_callers_language_is_found() {
        assert_eq!(language(None), Language::Chinese);
        assert_eq!(language(Some("zh-CN")), Language::Chinese);
        assert_eq!(language(Some("en-GB,en;q=0.9,zh;q=0.8")), Language::English);
        assert_eq!(language(Some("en;q=0.2, zh-CN;q=0.9")), Language::Chinese);
        assert_eq!(language(Some("de")), Language::English);
        assert_eq!(language(Some("zh;q=0, en")), Language::English);
        assert_eq!(language(Some(";;;,q=")), Language::English);
    }
}
