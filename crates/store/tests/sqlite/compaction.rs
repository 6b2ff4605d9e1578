//! The effect of compaction on the file.

use tiller_core::{Store, Timestamp};
use tiller_store_suite::fixtures::{append, message, piece, quiet};

use super::open;

#[tokio::test]
async fn a_session_that_can_not_be_compacted_does_not_keep_the_others() {
    // Whichever comes first.
    for broken in ["one", "two"] {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path());
        let mut sessions = [quiet("one", 0), quiet("two", 0)];
        for session in &mut sessions {
            append(&store, session, vec![piece("a"), message("a")]).await;
        }
        let connection = rusqlite::Connection::open(folder.path().join("sessions.db")).unwrap();
        let trigger = format!(
            "CREATE TRIGGER broken BEFORE DELETE ON messages \
             WHEN old.session_id = (SELECT id FROM sessions WHERE title = '{broken}') \
             BEGIN SELECT RAISE(ABORT, 'broken'); END"
        );
        connection.execute_batch(&trigger).unwrap();
        let error = store.compact(Timestamp(31)).await.unwrap_err();
        assert!(error.to_string().contains("broken"), "{error}");
        for session in &sessions {
            let left = store.replay(session.id, 0, 100).await.unwrap().len();
            let expected = if session.title == broken { 2 } else { 1 };
            assert_eq!(left, expected, "{} while {broken} is broken", session.title);
        }
    }
}

#[tokio::test]
async fn the_file_shrinks_when_much_is_taken_out() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let mut session = quiet("large", 0);
    let pieces = (0..2000).map(|_| piece(&"x".repeat(2000)));
    append(&store, &mut session, pieces.chain([message("x")]).collect()).await;
    let pages = || {
        let connection = rusqlite::Connection::open(folder.path().join("sessions.db")).unwrap();
        connection
            .pragma_query_value(None, "page_count", |row| row.get::<_, u64>(0))
            .unwrap()
    };
    let before = pages();
    assert_eq!(store.compact(Timestamp(31)).await.unwrap(), 2000);
    assert!(pages() * 5 < before, "{} of {before} pages", pages());
}
