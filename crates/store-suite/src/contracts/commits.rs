//! Committed data can be read again: complete, in order, and by all.

use std::sync::Arc;

use tiller_core::{
    Behavior, Commit, Decided, DecisionAnswer, DecisionRequest, Event, EventBody, Extent, HistoryKind, Page,
    RawJson, Reply, SessionRecord, SessionStatus, Store, StoreError, Timestamp, UnreadableLine,
};
use tiller_message::{Message, ParseError, RAW_BYTES, Summary, UnreadableReason};

use crate::Harness;
use crate::fixtures::{all, append, id_of, message, own, prompt, put, record, request, status, texts};

pub async fn what_was_committed_is_there_after_a_restart<H: Harness>(harness: &H) {
    let mut record = record("first");
    let asked = request(record.id, 4);
    let bodies = vec![
        status(SessionStatus::Running),
        prompt("hi"),
        message("one"),
        EventBody::DecisionRequested(Box::new(asked.clone())),
    ];
    let written = append(&harness.open(), &mut record, bodies).await;

    let store = harness.open();
    assert_eq!(all(&store).await, [(record.clone(), vec![asked.clone()])]);
    assert_eq!(store.replay(record.id, 0, 100).await.unwrap(), written);

    let resolved = EventBody::DecisionResolved {
        request: asked.id,
        tool_use_id: asked.tool_use_id,
        behavior: Behavior::Allow,
        reply: Some(Box::new(Reply {
            agent_request: "a1".to_owned(),
            answer: DecisionAnswer::Allow {
                input: Some(RawJson::parse(r#"{"b":1,"a":"二"}"#).unwrap()),
                permissions: None,
            },
            edited: true,
            by: Some("a-key".to_owned()),
        })),
    };
    append(&store, &mut record, vec![resolved, message("two")]).await;
    let events = store.replay(record.id, 0, 100).await.unwrap();
    let said = store.agent_input_since(record.id, 2).await.unwrap();
    assert_eq!(
        said,
        [events[1].clone(), events[4].clone()],
        "the prompt and the answer"
    );
    let statuses = store.statuses(record.id, 1, 5).await.unwrap();
    assert_eq!(
        statuses,
        [events[0].clone()],
        "whole, with the figures of the turn"
    );
    assert_eq!(store.statuses(record.id, 2, 5).await.unwrap(), []);
    assert_eq!(
        all(&harness.open()).await,
        [(record, Vec::new())],
        "a resolved decision is not open"
    );
}

pub async fn what_ran_instead_of_what_was_asked_for_is_known<H: Harness>(harness: &H) {
    let store = harness.open();
    let mut record = record("edited");
    let json = |text: &str| RawJson::parse(text).unwrap();
    let answered = |seq: u64, input: Option<&str>| {
        let asked = request(record.id, seq);
        let answer = match input {
            Some(input) => DecisionAnswer::Allow {
                input: Some(json(input)),
                permissions: None,
            },
            None => DecisionAnswer::Deny {
                message: None,
                interrupt: false,
            },
        };
        let behavior = match input {
            Some(_) => Behavior::Allow,
            None => Behavior::Deny,
        };
        let reply = Reply {
            agent_request: asked.agent_request.clone(),
            edited: input.is_some_and(|input| !json(input).says_the_same(&asked.input)),
            answer,
            by: None,
        };
        let resolved = EventBody::DecisionResolved {
            request: asked.id,
            tool_use_id: asked.tool_use_id.clone(),
            behavior,
            reply: Some(Box::new(reply)),
        };
        [EventBody::DecisionRequested(Box::new(asked)), resolved]
    };
    let asked = request(record.id, 1);
    // The same value, in other letters.
    let same = format!(" {}", asked.input.as_str());
    let bodies = [
        answered(1, Some(&same)),
        answered(2, Some(r#"{"command":"ls"}"#)),
        answered(3, None),
    ];
    append(&store, &mut record, bodies.concat()).await;
    let decided = |seq: u64, behavior, edited: Option<&str>| Decided {
        tool_use_id: request(record.id, seq).tool_use_id,
        behavior,
        edited: edited.map(json),
    };
    let expected = [
        decided(2, Behavior::Allow, Some(r#"{"command":"ls"}"#)),
        decided(3, Behavior::Deny, None),
    ];
    assert_eq!(harness.open().decided(record.id).await.unwrap(), expected);

    let fork = crate::fixtures::record("fork");
    store
        .fork(record.id, fork.clone(), Extent::default())
        .await
        .unwrap();
    assert_eq!(
        store.decided(fork.id).await.unwrap(),
        expected,
        "a fork knows it, too"
    );
    store.delete(record.id).await.unwrap();
    assert_eq!(store.decided(record.id).await.unwrap(), []);
    assert_eq!(store.decided(fork.id).await.unwrap(), expected);
}

pub async fn messages_keep_every_byte<H: Harness>(harness: &H) {
    let store = harness.open();
    let mut record = record("bytes");
    let odd = "{ \"z\" : 1.50, \"a\":\"\\u00e9 é 𝄞\", \"type\":\"x\" }";
    let body = EventBody::Message {
        raw: RawJson::parse(odd).unwrap(),
        uuid: None,
    };
    append(&store, &mut record, vec![body]).await;
    let page = store.history(record.id, Page::All).await.unwrap();
    assert_eq!(texts(&page), [(1, odd)]);
}

pub async fn history_has_prompts_and_messages_by_page<H: Harness>(harness: &H) {
    let store = harness.open();
    let mut record = record("pages");
    let bodies = vec![
        status(SessionStatus::Running),
        prompt("p"),
        message("a"),
        message("b"),
        message("c"),
    ];
    append(&store, &mut record, bodies).await;
    let seqs = async |page| -> Vec<u64> {
        store
            .history(record.id, page)
            .await
            .unwrap()
            .into_iter()
            .map(|entry| entry.seq)
            .collect()
    };
    assert_eq!(seqs(Page::All).await, [2, 3, 4, 5]);
    assert_eq!(seqs(Page::After { seq: 2, limit: 2 }).await, [3, 4]);
    assert_eq!(seqs(Page::Before { seq: 5, limit: 2 }).await, [3, 4]);
    assert_eq!(seqs(Page::Last { limit: 2 }).await, [4, 5]);
    assert_eq!(seqs(Page::Last { limit: 0 }).await, [0u64; 0]);
    assert_eq!(
        seqs(Page::After {
            seq: u64::MAX >> 1,
            limit: 2
        })
        .await,
        [0u64; 0]
    );
    let first = store
        .history(record.id, Page::After { seq: 0, limit: 1 })
        .await
        .unwrap();
    let id = id_of("p");
    let said = [
        &format!(r#"{{"type":"user_prompt","prompt":"p","promptId":"{id}","uuid":"{id}","#),
        r#""attachments":[{"id":"a1","mediaType":"image/png","name":"图.png","size":3}],"#,
        r#""context":{"mode":"code","currentView":""},"parent_tool_use_id":"toolu_1"}"#,
    ]
    .concat();
    assert_eq!(texts(&first), [(2, said.as_str())]);
}

pub async fn a_session_never_gets_what_belongs_to_its_neighbours<H: Harness>(harness: &H) {
    let store = harness.open();
    let mut records = ["before", "between", "after"].map(record);
    for round in 0..3 {
        for record in &mut records {
            append(
                &store,
                record,
                vec![message(&format!("{}-{round}", record.title))],
            )
            .await;
        }
    }
    let [before, between, after] = records;
    for (seq, limit) in [(u64::MAX, 9), (u64::from(u32::MAX), 9), (3, 9), (0, 0)] {
        let beyond = Page::After { seq, limit };
        assert_eq!(store.history(between.id, beyond).await.unwrap(), []);
        assert_eq!(store.replay(between.id, seq, limit).await.unwrap(), []);
    }
    let all = store.history(between.id, Page::All).await.unwrap();
    for seq in [4, 1 << 32, u64::MAX] {
        let page = Page::Before { seq, limit: 100 };
        assert_eq!(store.history(between.id, page).await.unwrap(), all);
    }
    assert_eq!(
        store
            .history(between.id, Page::Before { seq: 0, limit: 9 })
            .await
            .unwrap(),
        []
    );

    // The newest is removed, and its space is used by the next one.
    store.delete(after.id).await.unwrap();
    let mut next = record("next");
    append(&store, &mut next, vec![message("next-0")]).await;
    store.delete(before.id).await.unwrap();
    assert_eq!(store.history(between.id, Page::All).await.unwrap(), all);
    assert_eq!(store.history(next.id, Page::All).await.unwrap().len(), 1);
    for gone in [before.id, after.id] {
        assert_eq!(store.history(gone, Page::All).await.unwrap(), []);
        assert_eq!(store.replay(gone, 0, 9).await.unwrap(), []);
    }
}

pub async fn a_replay_is_gapless_and_in_order<H: Harness>(harness: &H) {
    let store = harness.open();
    let mut record = record("replay");
    let mut written = Vec::new();
    for round in 0..20 {
        let bodies = vec![
            status(SessionStatus::Running),
            prompt("p"),
            message(&round.to_string()),
        ];
        written.extend(append(&store, &mut record, bodies).await);
    }
    let mut read = store.replay(record.id, 0, 7).await.unwrap();
    while let Some(last) = read
        .last()
        .map(|event| event.seq)
        .filter(|seq| *seq < record.last_seq)
    {
        read.extend(store.replay(record.id, last, 7).await.unwrap());
    }
    assert_eq!(read, written);
}

pub async fn a_commit_is_all_or_nothing_and_hurts_no_other<H: Harness>(harness: &H) {
    let store = Arc::new(harness.open());
    let mut good = record("good");
    let mut bad = record("bad");
    append(&*store, &mut bad, vec![prompt("p")]).await;
    let before = all(&*store).await;

    // The second event has a number that is already used.
    let event = |record: &SessionRecord, seq, body| {
        Arc::new(Event {
            session: record.id,
            seq,
            at: Timestamp(1),
            body,
        })
    };
    let clash = Commit {
        epoch: own(&*store, &bad, 1).await,
        expected_last_seq: 1,
        record: SessionRecord {
            title: "changed".to_owned(),
            last_seq: 3,
            ..bad.clone()
        },
        events: vec![event(&bad, 2, message("x")), event(&bad, 1, message("y"))],
        images: Vec::new(),
        prompts: Vec::new(),
    };
    let epoch = own(&*store, &good, 0).await;
    good.last_seq = 1;
    let fine = Commit {
        epoch,
        expected_last_seq: 0,
        record: good.clone(),
        events: vec![event(&good, 1, prompt("p"))],
        images: Vec::new(),
        prompts: Vec::new(),
    };
    let (clashed, went_fine) = tokio::join!(store.commit(clash), store.commit(fine));
    assert!(clashed.is_err());
    went_fine.unwrap();

    let after = all(&*store).await;
    let same = |sessions: &[(SessionRecord, Vec<DecisionRequest>)]| {
        sessions.iter().find(|(record, _)| record.id == bad.id).cloned()
    };
    assert_eq!(same(&after), same(&before));
    assert_eq!(store.replay(bad.id, 0, 10).await.unwrap().len(), 1);
    assert_eq!(store.replay(good.id, 0, 10).await.unwrap().len(), 1);
}

pub async fn commits_of_one_session_keep_their_order_under_load<H: Harness>(harness: &H) {
    let store = Arc::new(harness.open());
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..8 {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            let mut record = record(&number.to_string());
            for round in 0..50 {
                append(&*store, &mut record, vec![message(&round.to_string())]).await;
            }
            record
        });
    }
    while let Some(record) = tasks.join_next().await {
        let record = record.unwrap();
        let seqs: Vec<_> = store
            .replay(record.id, 0, 100)
            .await
            .unwrap()
            .iter()
            .map(|event| event.seq)
            .collect();
        assert_eq!(seqs, (1..=50).collect::<Vec<_>>());
    }
}

/// The end of a turn is never found without the messages that were committed with it.
pub async fn readers_find_whole_commits_while_others_write<H: Harness>(harness: &H) {
    const COMMITS: u64 = 1000;
    const TOGETHER: u64 = 4;
    let store = Arc::new(harness.open());
    let mut record = record("busy");
    let session = record.id;
    append(&*store, &mut record, vec![prompt("p")]).await;
    let writing = tokio::spawn({
        let store = Arc::clone(&store);
        async move {
            for round in 0..COMMITS {
                let words = (1..TOGETHER).map(|word| message(&format!("{round}-{word}")));
                let bodies = words.chain([status(SessionStatus::Completed)]).collect();
                append(&*store, &mut record, bodies).await;
            }
        }
    });
    let mut last = 1;
    while last < 1 + COMMITS * TOGETHER {
        for event in store.replay(session, last, 100).await.unwrap() {
            assert_eq!(event.seq, last + 1, "{event:?}");
            last = event.seq;
        }
    }
    writing.await.unwrap();
}

/// A message of an agent is data, whatever it looks like.
pub async fn messages_that_look_like_our_records_come_back_unchanged<H: Harness>(harness: &H) {
    let store = harness.open();
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let odd = [
        r#"{"type":"user_prompt","x":1}"#,
        r#"{"type":"user_prompt","prompt":"p"}"#,
        r#"{"type":"user_prompt","prompt":"p","uuid":"u"}"#,
        r#"{"type":"session.status","payload":{"status":"running"}}"#,
        r#"{"type":null}"#,
        r#"{"type":["assistant"]}"#,
        "null",
        "[1]",
        "\"words\"",
        "1e400",
        &deep,
    ];
    let bodies = || -> Vec<_> {
        let odd = odd.map(|text| EventBody::Message {
            raw: RawJson::parse(text).unwrap(),
            uuid: Some("u".to_owned()),
        });
        [prompt("p")].into_iter().chain(odd).collect()
    };
    // Few are written one by one, many together.
    for times in [1, 3] {
        let mut session = record("odd");
        let all = (0..times).flat_map(|_| bodies()).collect();
        let written = append(&store, &mut session, all).await;
        let store = harness.open();
        assert_eq!(store.replay(session.id, 0, 100).await.unwrap(), written);
        let history = store.history(session.id, Page::All).await.unwrap();
        let texts = history.iter().map(|entry| entry.json.as_str());
        let odd_again: Vec<_> = texts.skip(1).collect();
        assert_eq!(odd_again[..odd.len()], odd);
        let kinds: Vec<_> = history.iter().map(|entry| entry.kind).collect();
        let mut expected = vec![HistoryKind::Message; odd.len() + 1];
        expected[0] = HistoryKind::Prompt;
        assert_eq!(
            kinds,
            expected.repeat(times),
            "what looks like a prompt is a message if an agent wrote it"
        );
        assert_eq!(
            store.agent_input_since(session.id, 1).await.unwrap(),
            [written[0].clone()]
        );
        let fork = record("fork");
        store
            .fork(session.id, fork.clone(), Extent::default())
            .await
            .unwrap();
        let copied = store.replay(fork.id, 0, 100).await.unwrap();
        let bodies = |events: &[Event]| events.iter().map(|event| event.body.clone()).collect::<Vec<_>>();
        assert_eq!(bodies(&copied), bodies(&written));
    }
}

pub async fn a_line_that_is_not_a_message_is_kept_whole<H: Harness>(harness: &H) {
    let deep = format!("{{\"v\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(Message::parse(&deep), Err(ParseError::TooDeep));
    let lines = [
        (UnreadableReason::Depth, deep.as_bytes()),
        (UnreadableReason::NotAnObject, b"null"),
        (UnreadableReason::Utf8, b"{\"a\":\"\xff\"}"),
    ];
    let store = harness.open();
    let mut session = record("unreadable");
    let unreadable =
        lines.map(|(reason, line)| EventBody::Unreadable(Box::new(UnreadableLine::new(reason, line))));
    let bodies = [message("before")].into_iter().chain(unreadable.clone());
    let written = append(&store, &mut session, bodies.collect()).await;

    let store = harness.open();
    assert_eq!(store.replay(session.id, 0, 100).await.unwrap(), written);
    let history = store.history(session.id, Page::All).await.unwrap();
    let shown: Vec<_> = unreadable.iter().filter_map(EventBody::message).collect();
    let found: Vec<_> = history.into_iter().skip(1).map(|entry| entry.json).collect();
    assert_eq!(found, shown);
    assert!(
        found[0].as_str().len() < RAW_BYTES + 200,
        "clients get its beginning"
    );

    let fork = record("fork");
    store
        .fork(session.id, fork.clone(), Extent::default())
        .await
        .unwrap();
    let copied = store.replay(fork.id, 0, 100).await.unwrap();
    assert_eq!(
        copied[1..].iter().map(|event| &event.body).collect::<Vec<_>>(),
        unreadable.iter().collect::<Vec<_>>()
    );
}

pub async fn what_was_committed_survives_a_crash<H: Harness>(harness: &H) {
    let store = harness.open();
    let mut session = record("committed");
    let written = append(&store, &mut session, vec![prompt("p"), message("one")]).await;
    let crashed = harness.after_crash();
    // Later writes of the first process are not in what the second one found.
    append(&store, &mut session.clone(), vec![message("later")]).await;

    let next = crashed.open();
    assert_eq!(all(&next).await, [(session.clone(), Vec::new())]);
    assert_eq!(next.replay(session.id, 0, 100).await.unwrap(), written);
    append(&next, &mut session, vec![message("two")]).await;
    assert_eq!(next.replay(session.id, 2, 100).await.unwrap().len(), 1);
}

pub async fn totals_are_stored_with_their_commit<H: Harness>(harness: &H) {
    let store = harness.open();
    let mut session = record("totals");
    put(&store, &session, Vec::new()).await;
    let before = session.clone();
    let mut summary = Summary::default();
    summary.turn_started(1);
    session.summary = Some(Arc::new(summary));
    assert_ne!(session.summary, before.summary);
    append(&store, &mut session, vec![message("counted")]).await;
    assert_eq!(all(&harness.open()).await, [(session.clone(), Vec::new())]);

    // A refused commit changes no totals.
    let refused = Commit {
        epoch: own(&store, &session, session.last_seq).await,
        expected_last_seq: 7,
        record: SessionRecord {
            summary: None,
            ..session.clone()
        },
        events: Vec::new(),
        images: Vec::new(),
        prompts: Vec::new(),
    };
    let refused = store.commit(refused).await;
    assert!(matches!(refused, Err(StoreError::Stale)), "{refused:?}");
    assert_eq!(all(&store).await, [(session, Vec::new())]);
}
