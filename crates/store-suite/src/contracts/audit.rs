//! The audit log.

use tiller_core::audit::{Action, Actor, AuditEntry, AuditLog, AuditRecord, Chain, Head};
use tiller_core::credentials::{CredentialStore, RevokedSessions, SecretHash, SignIn, SignInSecrets};
use tiller_core::{Behavior, DecisionAnswer, EventBody, Reply, Timestamp};

use super::credentials::reading_key;
use crate::Harness;
use crate::fixtures::{append, quiet, request};

/// The whole log, whose chain is checked.
async fn log(store: &impl AuditLog) -> Vec<AuditRecord> {
    let (mut found, mut chain) = (Vec::<AuditRecord>::new(), Chain::default());
    loop {
        let after = found.last().map_or(0, |last| last.seq);
        let page = store.audit_page(after, 2).await.unwrap();
        if page.is_empty() {
            chain.finish().unwrap();
            return found;
        }
        for record in page {
            chain.check(&record).unwrap();
            found.push(record);
        }
    }
}

fn shown(log: &[AuditRecord]) -> Vec<(&str, &str)> {
    log.iter()
        .map(|record| (record.actor.as_str(), record.action.as_str()))
        .collect()
}

pub async fn what_happens_to_credentials_is_in_the_log<H: Harness>(harness: &H) {
    let store = harness.open();
    let hash = SecretHash::of;
    let now = Timestamp::now();
    let sign_in = SignIn::new("a browser", "127.0.0.1", now).unwrap();
    let secrets = SignInSecrets {
        cookie: hash("cookie"),
        page: hash("page"),
    };
    store
        .add_code(hash("code"), Timestamp(now.0 + 1000))
        .await
        .unwrap();
    for redeems in [true, false] {
        let redeemed = store
            .redeem_code(hash("code"), sign_in.clone(), secrets, now)
            .await;
        assert_eq!(redeemed.unwrap(), redeems);
    }
    let key = reading_key("key_1", "ci");
    for adds in [true, false] {
        let added = store
            .add_key(key.clone(), hash("secret"), Actor::CommandLine)
            .await;
        assert_eq!(added.unwrap(), adds);
    }
    for revokes in [true, false] {
        let revoked = store.revoke_key("ci", RevokedSessions::Keep, Actor::Person).await;
        assert_eq!(revoked.unwrap(), revokes);
    }
    for ends in [true, false] {
        let ended = store.end_sign_in(sign_in.id.clone(), Actor::Person).await;
        assert_eq!(ended.unwrap(), ends);
    }
    store.end_all_sign_ins(Actor::Person).await.unwrap();
    let log = log(&store).await;
    // What failed has changed nothing.
    let expected = [
        ("person", "sign_in"),
        ("command-line", "key_created"),
        ("person", "key_revoked"),
        ("person", "sign_out"),
        ("person", "sign_out"),
    ];
    assert_eq!(shown(&log), expected);
    assert!(log[1].detail.contains("key_1"), "{}", log[1].detail);
    for record in &log {
        for secret in ["code", "cookie", "page", "secret"].map(|secret| hash(secret).to_hex()) {
            assert!(!record.detail.contains(&secret), "{}", record.detail);
        }
    }
}

pub async fn a_decision_is_in_the_log_with_its_commit<H: Harness>(harness: &H) {
    let store = harness.open();
    let mut session = quiet("asking", 20);
    let asked = [1, 2, 3].map(|number| request(session.id, number));
    let requests = asked
        .iter()
        .map(|asked| EventBody::DecisionRequested(Box::new(asked.clone())));
    append(&store, &mut session, requests.collect()).await;
    assert_eq!(log(&store).await, []);
    let resolved = |index: usize, behavior, by: Option<&str>| EventBody::DecisionResolved {
        request: asked[index].id,
        tool_use_id: asked[index].tool_use_id.clone(),
        behavior,
        reply: Some(Box::new(Reply {
            agent_request: asked[index].agent_request.clone(),
            answer: DecisionAnswer::Deny {
                message: None,
                interrupt: false,
            },
            by: by.map(str::to_owned),
            edited: false,
        })),
    };
    let resolutions = vec![
        resolved(0, Behavior::Allow, None),
        resolved(1, Behavior::Deny, Some("key_1")),
        resolved(2, Behavior::Withdrawn, None),
    ];
    append(&store, &mut session, resolutions).await;
    let log = log(&store).await;
    assert_eq!(shown(&log), [("person", "decision"), ("key_1", "decision")]);
    for (record, asked) in log.iter().zip(&asked) {
        assert_eq!(record.session, Some(session.id.to_string()));
        for part in [&asked.id.to_string(), &asked.tool_name, &asked.input_hash()] {
            assert!(record.detail.contains(part), "{}", record.detail);
        }
    }
}

pub async fn the_log_is_read_by_page_and_survives<H: Harness>(harness: &H) {
    let store = harness.open();
    for number in 0..5 {
        let entry = AuditEntry::new(Actor::Nobody, Action::Refused, Timestamp(number)).with("n", number);
        store.audit(entry).await.unwrap();
    }
    let before = log(&store).await;
    assert_eq!(before.len(), 5);
    // Another process goes on with the same chain.
    let elsewhere = harness.open();
    let entry = AuditEntry::new(Actor::Person, Action::Grant, Timestamp(9));
    elsewhere.audit(entry.clone()).await.unwrap();
    let after = log(&store).await;
    assert_eq!(after[..5], before[..]);
    let head = Head {
        seq: 5,
        hash: before[4].hash.clone(),
    };
    assert_eq!(after[5], AuditRecord::after(&head, &entry));
    assert_eq!(store.audit_page(u64::MAX, 5).await.unwrap(), []);
}
