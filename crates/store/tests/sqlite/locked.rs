//! Another process writes to the file.

use tiller_core::Store;
use tiller_store_suite::fixtures::{all, append, message, record};

use super::open;

#[tokio::test]
async fn a_write_waits_for_another_process_and_readers_do_not() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let mut session = record("waits");
    append(&store, &mut session, vec![message("one")]).await;
    let other = rusqlite::Connection::open(folder.path().join("sessions.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut written = session.clone();
    let writing = tokio::spawn({
        let store = store.clone();
        async move { append(&store, &mut written, vec![message("two")]).await }
    });
    assert_eq!(all(&store).await, [(session.clone(), Vec::new())]);
    assert!(!writing.is_finished());
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(writing.await.unwrap().len(), 1);
    assert_eq!(store.replay(session.id, 0, 10).await.unwrap().len(), 2);
}
