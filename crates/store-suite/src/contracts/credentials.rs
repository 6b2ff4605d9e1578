//! Codes, sign-ins and keys.

use tiller_core::audit::Actor;
use tiller_core::credentials::{
    ApiKey, CredentialStore, RevokedSessions, SIGN_IN_LIFETIME, Scopes, SecretHash, SignIn, SignInId,
    SignInSecrets, SignInSource,
};
use tiller_core::rights::Ceiling;
use tiller_core::{Approval, Timestamp};

use crate::Harness;

fn hash(text: &str) -> SecretHash {
    SecretHash::of(text)
}

pub async fn a_code_is_good_once_and_for_a_while<H: Harness>(harness: &H) {
    let store = harness.open();
    store.add_code(hash("code"), Timestamp(100)).await.unwrap();
    store.add_code(hash("late"), Timestamp(100)).await.unwrap();
    let redeem = async |code, name: &str, now| {
        let (sign_in, secrets) = sign_in(name, now);
        let redeemed = store
            .redeem_code(hash(code), sign_in, secrets, Timestamp(now))
            .await;
        redeemed.unwrap()
    };
    assert!(!redeem("wrong", "s0", 50).await);
    assert!(redeem("code", "s1", 50).await);
    assert!(!redeem("code", "s2", 50).await, "used");
    assert!(!redeem("late", "s3", 100).await, "too old");
    let signed_in = store.sign_ins(Timestamp(50)).await.unwrap();
    assert_eq!(signed_in, [sign_in("s1", 50).0]);
}

/// A sign-in whose cookie and page secret are named after it.
fn sign_in(name: &str, now: i64) -> (SignIn, SignInSecrets) {
    let sign_in = SignIn {
        id: SignInId::from(name.to_owned()),
        source: SignInSource::Browser,
        user_agent: "a browser".to_owned(),
        address: "127.0.0.1".to_owned(),
        created_at: Timestamp(now),
        last_used_at: Timestamp(now),
    };
    let secrets = SignInSecrets {
        cookie: hash(&format!("cookie of {name}")),
        page: hash(&format!("page of {name}")),
    };
    (sign_in, secrets)
}

pub async fn a_sign_in_ends_a_week_after_its_last_use_or_when_it_is_told_to<H: Harness>(harness: &H) {
    let store = harness.open();
    for name in ["one", "two", "three", "four"] {
        store.add_code(hash(name), Timestamp(100)).await.unwrap();
        let (sign_in, secrets) = sign_in(name, 10);
        let redeemed = store
            .redeem_code(hash(name), sign_in, secrets, Timestamp(10))
            .await;
        assert!(redeemed.unwrap());
    }
    let id = |name: &str| SignInId::from(name.to_owned());
    let week = i64::try_from(SIGN_IN_LIFETIME.as_millis()).unwrap();
    let last_moment = Timestamp(10 + week - 1);
    let of_page = store
        .sign_in_of_page(hash("page of one"), last_moment)
        .await
        .unwrap();
    assert_eq!(of_page, Some((sign_in("one", 10).0, hash("cookie of one"))));
    assert_eq!(
        store
            .sign_in_of_page(hash("cookie of one"), last_moment)
            .await
            .unwrap(),
        None
    );

    store.touch_sign_in(id("one"), Timestamp(20)).await.unwrap();
    let now = Timestamp(10 + week);
    let found = store.sign_in(id("one"), now).await.unwrap().unwrap();
    assert_eq!(found.last_used_at, Timestamp(20));
    assert_eq!(store.sign_in(id("two"), now).await.unwrap(), None);
    assert_eq!(
        store.sign_in_of_page(hash("page of two"), now).await.unwrap(),
        None
    );
    assert_eq!(store.sign_ins(now).await.unwrap(), [found]);

    let now = Timestamp(30);
    assert!(store.end_sign_in(id("one"), Actor::Person).await.unwrap());
    assert!(!store.end_sign_in(id("one"), Actor::Person).await.unwrap());
    store.end_sign_in_of_cookie(hash("cookie of two")).await.unwrap();
    let left: Vec<_> = store
        .sign_ins(now)
        .await
        .unwrap()
        .into_iter()
        .map(|left| left.id)
        .collect();
    assert_eq!(left, [id("four"), id("three")]);
    store.add_code(hash("printed"), Timestamp(100)).await.unwrap();
    store.end_all_sign_ins(Actor::Person).await.unwrap();
    assert_eq!(store.sign_ins(now).await.unwrap(), []);
    let (again, secrets) = sign_in("again", 30);
    let redeemed = store.redeem_code(hash("printed"), again, secrets, now).await;
    assert!(
        !redeemed.unwrap(),
        "a link that was printed before signs nobody in"
    );
}

pub async fn an_instance_keeps_its_id<H: Harness>(harness: &H) {
    let other = H::new();
    let id = harness.open().instance().await.unwrap();
    assert_eq!(harness.open().instance().await.unwrap(), id);
    assert_ne!(other.open().instance().await.unwrap(), id);
}

/// A key that may read.
pub(super) fn reading_key(id: &str, name: &str) -> ApiKey {
    ApiKey {
        id: id.to_owned(),
        name: name.to_owned(),
        scopes: Scopes::parse("read").unwrap(),
        ceiling: Ceiling::default(),
        approval: None,
        created_at: Timestamp(5),
        last_used_at: None,
    }
}

pub async fn sessions_of_a_revoked_key_are_kept_by_choice<H: Harness>(harness: &H) {
    let store = harness.open();
    // One has the other's id for its name: the id comes first.
    for (id, name) in [("key_1", "key_2"), ("key_2", "b")] {
        let added = store
            .add_key(reading_key(id, name), hash(id), Actor::Person)
            .await;
        assert!(added.unwrap());
    }
    let revoke = async |key, sessions| store.revoke_key(key, sessions, Actor::Person).await.unwrap();
    assert!(revoke("key_2", RevokedSessions::Keep).await);
    let left: Vec<_> = store
        .keys()
        .await
        .unwrap()
        .into_iter()
        .map(|key| key.id)
        .collect();
    assert_eq!(left, ["key_1"]);
    assert!(revoke("key_2", RevokedSessions::Stop).await, "by its name");
    assert!(!revoke("key_2", RevokedSessions::Stop).await);
    assert_eq!(store.keys_with_kept_sessions().await.unwrap(), ["key_2"]);
}

pub async fn keys_are_found_by_their_hash_until_they_are_revoked<H: Harness>(harness: &H) {
    let store = harness.open();
    let scopes = Scopes::parse("read").unwrap();
    let key = ApiKey {
        id: "key_1".to_owned(),
        name: "ci".to_owned(),
        scopes,
        ceiling: Ceiling {
            modes: Some(vec!["plan".to_owned()]),
            budget_usd: Some(0.5),
            ..Ceiling::default()
        },
        approval: Some(Approval::Auto),
        created_at: Timestamp(5),
        last_used_at: None,
    };
    assert!(
        store
            .add_key(key.clone(), hash("secret"), Actor::Person)
            .await
            .unwrap()
    );
    assert!(
        !store
            .add_key(key.clone(), hash("other"), Actor::Person)
            .await
            .unwrap(),
        "the name is taken"
    );
    assert_eq!(store.find_key(hash("secret")).await.unwrap(), Some(key.clone()));
    assert_eq!(store.find_key(hash("other")).await.unwrap(), None);

    for (used, noted) in [(9, 9), (7, 9)] {
        store
            .touch_key("key_1".to_owned(), Timestamp(used))
            .await
            .unwrap();
        let found = store.find_key(hash("secret")).await.unwrap().unwrap();
        assert_eq!(found.last_used_at, Some(Timestamp(noted)));
    }
    let key = ApiKey {
        last_used_at: Some(Timestamp(9)),
        ..key
    };
    store.check_writable().await.unwrap();

    // Another process revokes it.
    let elsewhere = harness.open();
    assert_eq!(elsewhere.keys().await.unwrap(), [key]);
    assert!(
        elsewhere
            .revoke_key("ci", RevokedSessions::Stop, Actor::CommandLine)
            .await
            .unwrap()
    );
    assert!(
        !elsewhere
            .revoke_key("ci", RevokedSessions::Stop, Actor::CommandLine)
            .await
            .unwrap()
    );
    assert_eq!(store.find_key(hash("secret")).await.unwrap(), None);
}
