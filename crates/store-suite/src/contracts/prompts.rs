//! A prompt's id is accepted once for each owner.

use tiller_core::{
    AcceptedPrompt, Commit, EventBody, Extent, Prompt, PromptId, SessionId, SessionRecord, SessionStatus,
    Store, StoreError,
};

use crate::Harness;
use crate::fixtures::{all, append, own, prompt, put, record, status};

async fn accepts(store: &dyn Store, record: &SessionRecord, prompts: &[PromptId]) -> Commit {
    Commit {
        epoch: own(store, record, record.last_seq).await,
        expected_last_seq: record.last_seq,
        record: record.clone(),
        events: Vec::new(),
        images: Vec::new(),
        prompts: prompts.to_vec(),
    }
}

async fn found(store: &dyn Store, owner: Option<&str>, prompt: PromptId) -> Option<AcceptedPrompt> {
    let owner = owner.map(str::to_owned);
    store.accepted_prompt(owner, prompt).await.unwrap()
}

#[allow(clippy::unnecessary_wraps, reason = "compared with what may not be there")]
fn at(session: SessionId, seq: Option<u64>) -> Option<AcceptedPrompt> {
    Some(AcceptedPrompt { session, seq })
}

pub async fn an_id_is_accepted_once_for_each_owner<H: Harness>(harness: &H) {
    let store = harness.open();
    let mine = record("mine");
    let other = record("other");
    let mut theirs = record("theirs");
    theirs.owner = None;
    let id = PromptId::random();
    assert_eq!(found(&store, Some("ci"), id).await, None);
    store.commit(accepts(&store, &mine, &[id]).await).await.unwrap();
    assert_eq!(found(&store, Some("ci"), id).await, at(mine.id, None));
    assert_eq!(found(&store, None, id).await, None, "ids are each owner's own");

    for session in [&mine, &other] {
        put(&store, session, Vec::new()).await;
        let changed = SessionRecord {
            title: "changed".to_owned(),
            ..session.clone()
        };
        let refused = store
            .commit(accepts(&store, &changed, &[PromptId::random(), id]).await)
            .await;
        let Err(StoreError::Duplicate { session }) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(session, mine.id);
    }
    let mut titles: Vec<_> = all(&store)
        .await
        .into_iter()
        .map(|(record, _)| record.title)
        .collect();
    titles.sort();
    assert_eq!(titles, ["mine", "other"], "nothing of it was written");
    store.commit(accepts(&store, &theirs, &[id]).await).await.unwrap();
    assert_eq!(found(&store, None, id).await, at(theirs.id, None));
}

pub async fn one_of_two_that_accept_an_id_at_once_is_refused_and_no_other<H: Harness>(harness: &H) {
    let store = harness.open();
    let sessions: Vec<_> = (0..20).map(|number| record(&format!("{number}"))).collect();
    let id = PromptId::random();
    let mut commits = tokio::task::JoinSet::new();
    for (number, record) in sessions.iter().enumerate() {
        // Half of them have the same id.
        let id = if number % 2 == 0 { id } else { PromptId::random() };
        let (store, commit) = (store.clone(), accepts(&store, record, &[id]).await);
        commits.spawn(async move { store.commit(commit).await });
    }
    let outcomes = commits.join_all().await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_err()).count(), 9);
}

pub async fn an_id_is_known_for_as_long_as_its_session<H: Harness>(harness: &H) {
    let store = harness.open();
    let mut session = record("session");
    let id = PromptId::random();
    session.queue = vec![Prompt::new(id, "later".to_owned())];
    store
        .commit(accepts(&store, &session, &[id]).await)
        .await
        .unwrap();
    session.queue.clear();
    store.commit(accepts(&store, &session, &[]).await).await.unwrap();
    assert_eq!(
        found(&store, Some("ci"), id).await,
        at(session.id, None),
        "it was taken out of the queue"
    );

    let events = append(
        &store,
        &mut session,
        vec![status(SessionStatus::Running), prompt("p")],
    )
    .await;
    let EventBody::UserPrompt { prompt } = &events[1].body else {
        panic!("{events:?}");
    };
    assert_eq!(
        found(&store, Some("ci"), prompt.id).await,
        at(session.id, Some(2))
    );

    let fork = SessionRecord {
        id: SessionId::random(),
        ..session.clone()
    };
    store.fork(session.id, fork, Extent::default()).await.unwrap();
    assert_eq!(
        found(&store, Some("ci"), prompt.id).await,
        at(session.id, Some(2)),
        "a copy changes nothing"
    );
    drop(store);
    let store = harness.open();
    assert_eq!(
        found(&store, Some("ci"), prompt.id).await,
        at(session.id, Some(2))
    );
    assert_eq!(found(&store, Some("ci"), id).await, at(session.id, None));
    store.delete(session.id).await.unwrap();
    assert_eq!(found(&store, Some("ci"), id).await, None);
    assert_eq!(found(&store, Some("ci"), prompt.id).await, None);
}
