//! Limits how long the body of a request may take to arrive. It does not look at the content, and does not limit
//! responses.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::{Request, State};
use axum::http::HeaderValue;
use axum::http::header::CONNECTION;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::error::ApiError;

/// The slowest acceptable sender.
#[derive(Clone, Copy)]
pub(crate) struct Pace {
    /// The longest pause between two pieces.
    silence: Duration,
    /// The body must be complete within this time, plus a second for each so many received bytes: a client that sends a
    /// byte now and then never pauses for long.
    head_start: Duration,
    bytes_per_second: u32,
}

impl Pace {
    /// Slower than any link over which anybody would want to work.
    pub(crate) const LEAST: Self = Self {
        silence: Duration::from_secs(30),
        head_start: Duration::from_mins(1),
        bytes_per_second: 8 << 10,
    };

    pub(crate) fn deadline(self, began: Instant, now: Instant, received: u64) -> Instant {
        let earned = Duration::from_secs(received / u64::from(self.bytes_per_second));
        (now + self.silence).min(began + self.head_start + earned)
    }
}

/// Answers a request whose body does not arrive, and closes its connection.
pub(crate) async fn in_time(State(pace): State<Pace>, request: Request, next: Next) -> Response {
    if request.body().is_end_stream() {
        return next.run(request).await;
    }
    let is_late = Arc::new(AtomicBool::new(false));
    let request = request.map(|body| {
        Body::new(Arriving {
            body,
            pace,
            began: None,
            received: 0,
            waiting: None,
            is_late: Arc::clone(&is_late),
        })
    });
    let response = next.run(request).await;
    // The reader of the body got an error in its place, and its response says something else.
    if !is_late.load(Ordering::Relaxed) {
        return response;
    }
    let mut refusal = ApiError::BodyTimeout.into_response();
    refusal
        .headers_mut()
        .insert(CONNECTION, HeaderValue::from_static("close"));
    refusal
}

/// A body that fails if it does not arrive in time.
struct Arriving {
    body: Body,
    pace: Pace,
    /// When the body was first read.
    began: Option<Instant>,
    received: u64,
    /// Runs while nothing arrives.
    waiting: Option<Pin<Box<Sleep>>>,
    is_late: Arc<AtomicBool>,
}

impl HttpBody for Arriving {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.get_mut();
        let now = Instant::now();
        let began = *this.began.get_or_insert(now);
        if let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(context) {
            if let Some(Ok(frame)) = &frame {
                this.received += frame.data_ref().map_or(0, |data| data.len() as u64);
            }
            this.waiting = None;
            return Poll::Ready(frame);
        }
        let deadline = this.pace.deadline(began, now, this.received);
        let waiting = this
            .waiting
            .get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        ready!(waiting.as_mut().poll(context));
        this.is_late.store(true, Ordering::Relaxed);
        Poll::Ready(Some(Err(axum::Error::new(io::Error::from(
            io::ErrorKind::TimedOut,
        )))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use axum::Router;
    use axum::http::StatusCode;
    use axum::middleware::{from_fn, from_fn_with_state};
    use axum::routing::post;
    use futures_util::stream;
    use serde_json::Value;
    use tower::Service;

    use super::*;
    use crate::error::localize_errors;

    const LONG: Duration = Duration::from_hours(1);
    const SHORT: Duration = Duration::from_millis(100);

    /// Posts a body of `bytes` bytes that arrives one byte at a time.
    async fn post_slowly(pace: Pace, bytes: usize, pause: Duration) -> Response {
        let pieces = stream::unfold(0, move |sent| async move {
            tokio::time::sleep(pause).await;
            (sent < bytes).then(|| (Ok::<_, Infallible>("x"), sent + 1))
        });
        let mut router = Router::new()
            .route("/", post(|body: Bytes| async move { body.len().to_string() }))
            .layer(from_fn_with_state(pace, in_time))
            .layer(from_fn(localize_errors));
        let request = Request::post("/").header("accept-language", "en");
        let request = request.body(Body::from_stream(pieces)).unwrap();
        router.call(request).await.unwrap()
    }

    async fn text(response: Response) -> String {
        let bytes = axum::body::to_bytes(response.into_body(), 1024).await.unwrap();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    async fn is_refused(response: Response) {
        assert_eq!(response.status(), StatusCode::REQUEST_TIMEOUT);
        assert_eq!(response.headers()[CONNECTION], "close");
        let body: Value = serde_json::from_str(&text(response).await).unwrap();
        assert_eq!(body["error"]["code"], "timeout");
    }

    #[tokio::test]
    async fn a_body_that_stops_coming_is_not_waited_for() {
        let pace = Pace {
            silence: SHORT,
            head_start: LONG,
            bytes_per_second: 1,
        };
        is_refused(post_slowly(pace, 1, LONG).await).await;
    }

    #[tokio::test]
    async fn a_byte_now_and_then_is_not_enough() {
        let pace = Pace {
            silence: LONG,
            head_start: SHORT,
            bytes_per_second: 1 << 20,
        };
        is_refused(post_slowly(pace, usize::MAX, SHORT / 20).await).await;
    }

    #[tokio::test]
    async fn a_slow_body_that_keeps_its_pace_is_taken() {
        let pace = Pace {
            silence: LONG,
            head_start: SHORT,
            bytes_per_second: 1,
        };
        let taken = post_slowly(pace, 50, SHORT / 20).await;
        assert_eq!(taken.status(), StatusCode::OK);
        assert_eq!(text(taken).await, "50");
    }
}
