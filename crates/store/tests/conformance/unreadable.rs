//! Lines of an agent that are no messages are kept whole, and shown by their beginning.

use tiller_core::{EventBody, Page, Store, UnreadableLine};
use tiller_message::{Message, ParseError, RAW_BYTES, UnreadableReason};

use super::open;
use super::sessions::{append, message, record};

#[tokio::test]
async fn a_line_that_is_no_message_is_kept_whole() {
    let deep = format!("{{\"v\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(Message::parse(&deep), Err(ParseError::TooDeep));
    let lines = [
        (UnreadableReason::Depth, deep.as_bytes()),
        (UnreadableReason::NotAnObject, b"null"),
        (UnreadableReason::Utf8, b"{\"a\":\"\xff\"}"),
    ];
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let mut session = record("unreadable");
    let unreadable =
        lines.map(|(reason, line)| EventBody::Unreadable(Box::new(UnreadableLine::new(reason, line))));
    let bodies = [message("before")].into_iter().chain(unreadable.clone());
    let written = append(&store, &mut session, bodies.collect()).await;

    let store = open(folder.path());
    assert_eq!(store.replay(session.id, 0, 100).await.unwrap(), written);
    let history = store.history(session.id, Page::All).await.unwrap();
    let shown: Vec<_> = unreadable.iter().filter_map(EventBody::message).collect();
    let found: Vec<_> = history.into_iter().skip(1).map(|(_, raw)| raw).collect();
    assert_eq!(found, shown);
    assert!(
        found[0].as_str().len() < RAW_BYTES + 200,
        "clients get its beginning"
    );

    let fork = record("fork");
    store.fork(session.id, fork.clone()).await.unwrap();
    let copied = store.replay(fork.id, 0, 100).await.unwrap();
    assert_eq!(
        copied[1..].iter().map(|event| &event.body).collect::<Vec<_>>(),
        unreadable.iter().collect::<Vec<_>>()
    );
}
