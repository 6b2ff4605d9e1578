//! How viewers arrange their sessions.

use tiller_core::{
    Arrange, Arranged, Arrangement, Choice, EventBody, GroupId, ListFilter, ListedSession, Owners, Placement,
    PlacementPatch, SessionGroup, SessionId, SessionQuery, SessionRecord, SessionStatus, Sorting, Store,
};

use crate::Harness;
use crate::fixtures::{append, put, quiet, record, request};

fn group(number: u8, name: &str, place: f64) -> SessionGroup {
    let id: GroupId = format!("00000000-0000-4000-8000-0000000000{number:02}")
        .parse()
        .unwrap();
    SessionGroup {
        id,
        name: name.to_owned(),
        place,
    }
}

fn tags(given: &[&str]) -> Vec<String> {
    given.iter().map(|tag| (*tag).to_owned()).collect()
}

pub async fn an_arrangement_is_its_viewers_alone_and_there_after_a_restart<H: Harness>(harness: &H) {
    let store = harness.open();
    let [first, second] = ["first", "second"].map(|title| quiet(title, 20));
    for session in [&first, &second] {
        put(&store, session, Vec::new()).await;
    }
    let (person, key) = (None, Some("ci".to_owned()));
    assert_eq!(
        store.arrangement(person.clone()).await.unwrap(),
        Arrangement::default()
    );

    let [work, later] = [group(1, "工作 \"x\"", 2.0), group(2, "later", -1.5)];
    for made in [&work, &later] {
        let arranged = store.arrange(person.clone(), Arrange::Group(made.clone())).await;
        assert_eq!(arranged.unwrap(), Some(Arranged::Group(made.clone())));
    }
    let patch = PlacementPatch {
        pinned: Choice::Set(0.5),
        group: Choice::Set(work.id),
        place: Choice::Set(1_763_000_000_000.25),
        tags: Some(tags(&["bug", "缺陷"])),
    };
    let placed = Placement::default().with(patch.clone());
    let arranged = store
        .arrange(person.clone(), Arrange::Session(first.id, patch))
        .await;
    assert_eq!(
        arranged.unwrap(),
        Some(Arranged::Session(first.id, placed.clone()))
    );
    // Of two changes that name different things, both stay.
    let unpinned = PlacementPatch {
        pinned: Choice::Reset,
        ..PlacementPatch::default()
    };
    let arranged = store
        .arrange(person.clone(), Arrange::Session(first.id, unpinned))
        .await;
    let placed = Placement {
        pinned: None,
        ..placed
    };
    assert_eq!(
        arranged.unwrap(),
        Some(Arranged::Session(first.id, placed.clone()))
    );
    let sorted = store.arrange(person.clone(), Arrange::Sort(Sorting::Own)).await;
    assert_eq!(sorted.unwrap(), Some(Arranged::Sorted(Sorting::Own)));

    // A key arranges the same sessions for itself, and knows the person's groups as little as their places.
    let patch = PlacementPatch {
        group: Choice::Set(work.id),
        tags: Some(tags(&["own"])),
        ..PlacementPatch::default()
    };
    let of_key = Placement {
        tags: tags(&["own"]),
        ..Placement::default()
    };
    let arranged = store
        .arrange(key.clone(), Arrange::Session(first.id, patch))
        .await;
    assert_eq!(
        arranged.unwrap(),
        Some(Arranged::Session(first.id, of_key.clone()))
    );

    let persons = Arrangement {
        sorting: Sorting::Own,
        groups: vec![later, work],
        sessions: vec![(first.id, placed)],
    };
    let keys = Arrangement {
        sessions: vec![(first.id, of_key)],
        ..Arrangement::default()
    };
    for place in [store.clone(), harness.open(), harness.after_crash().open()] {
        assert_eq!(place.arrangement(person.clone()).await.unwrap(), persons);
        assert_eq!(place.arrangement(key.clone()).await.unwrap(), keys);
    }
}

pub async fn what_was_chosen_goes_with_its_session_and_its_group<H: Harness>(harness: &H) {
    let store = harness.open();
    let sessions = ["a", "b", "c"].map(|title| quiet(title, 20));
    for session in &sessions {
        put(&store, session, Vec::new()).await;
    }
    let work = group(1, "work", 0.0);
    store.arrange(None, Arrange::Group(work.clone())).await.unwrap();
    let into = |session: SessionId, pinned: Choice<f64>| {
        let patch = PlacementPatch {
            pinned,
            group: Choice::Set(work.id),
            ..PlacementPatch::default()
        };
        store.arrange(None, Arrange::Session(session, patch))
    };
    into(sessions[0].id, Choice::Keep).await.unwrap();
    into(sessions[1].id, Choice::Set(1.0)).await.unwrap();
    into(sessions[2].id, Choice::Set(2.0)).await.unwrap();
    store.delete(sessions[2].id).await.unwrap();
    let unknown = record("unknown").id;
    assert_eq!(into(unknown, Choice::Keep).await.unwrap(), None);
    assert_eq!(into(sessions[2].id, Choice::Keep).await.unwrap(), None);

    let removed = store.arrange(None, Arrange::RemoveGroup(work.id)).await;
    assert_eq!(removed.unwrap(), Some(Arranged::GroupRemoved(work.id)));
    let pinned = Placement {
        pinned: Some(1.0),
        ..Placement::default()
    };
    let expected = Arrangement {
        sessions: vec![(sessions[1].id, pinned)],
        ..Arrangement::default()
    };
    assert_eq!(store.arrangement(None).await.unwrap(), expected);
    // What was taken back leaves nothing.
    let nothing = PlacementPatch {
        pinned: Choice::Reset,
        ..PlacementPatch::default()
    };
    store
        .arrange(None, Arrange::Session(sessions[1].id, nothing))
        .await
        .unwrap();
    assert_eq!(store.arrangement(None).await.unwrap(), Arrangement::default());
}

pub async fn a_list_finds_what_waits_runs_or_was_arranged<H: Harness>(harness: &H) {
    let store = harness.open();
    let [mut waiting, resting, pinned] = ["waiting", "resting", "pinned"].map(|title| quiet(title, 20));
    let asked = request(waiting.id, 1);
    append(
        &store,
        &mut waiting,
        vec![EventBody::DecisionRequested(Box::new(asked))],
    )
    .await;
    let running = SessionRecord {
        status: SessionStatus::Running,
        owner: Some("other".to_owned()),
        ..quiet("running", 30)
    };
    for session in [&resting, &pinned, &running] {
        put(&store, session, Vec::new()).await;
    }
    let pin = PlacementPatch {
        pinned: Choice::Set(1.0),
        ..PlacementPatch::default()
    };
    store
        .arrange(None, Arrange::Session(pinned.id, pin))
        .await
        .unwrap();
    let found = async |only: ListFilter, owners: Owners| -> Vec<SessionId> {
        let query = SessionQuery {
            owners,
            only: Some(only),
            limit: Some(9),
            ..SessionQuery::default()
        };
        let found = store.list(query).await.unwrap();
        found.iter().map(ListedSession::id).collect()
    };
    assert_eq!(found(ListFilter::Waiting, Owners::All).await, [waiting.id]);
    assert_eq!(found(ListFilter::Running, Owners::All).await, [running.id]);
    assert_eq!(
        found(ListFilter::ArrangedBy(None), Owners::All).await,
        [pinned.id]
    );
    // Nobody finds what is not theirs.
    let stranger = || Owners::key("stranger");
    for only in [
        ListFilter::Waiting,
        ListFilter::Running,
        ListFilter::ArrangedBy(None),
    ] {
        assert_eq!(found(only, stranger()).await, []);
    }
    assert_eq!(
        found(ListFilter::ArrangedBy(Some("ci".to_owned())), Owners::All).await,
        []
    );
}
