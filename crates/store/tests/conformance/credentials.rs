use tiller_core::Timestamp;
use tiller_core::credentials::{ApiKey, CredentialStore, Scopes, SecretHash};

use super::open;

fn hash(text: &str) -> SecretHash {
    SecretHash::of(text)
}

#[tokio::test]
async fn a_code_is_good_once_and_for_a_while() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    store.add_code(hash("code"), Timestamp(100)).await.unwrap();
    store.add_code(hash("late"), Timestamp(100)).await.unwrap();
    let redeem = async |code, cookie, now| {
        store
            .redeem_code(hash(code), hash(cookie), Timestamp(1000), Timestamp(now))
            .await
            .unwrap()
    };
    assert!(!redeem("wrong", "c0", 50).await);
    assert!(redeem("code", "c1", 50).await);
    assert!(!redeem("code", "c2", 50).await, "used");
    assert!(!redeem("late", "c3", 100).await, "too old");
    let valid = async |cookie, now| store.cookie_is_valid(hash(cookie), Timestamp(now)).await.unwrap();
    assert!(valid("c1", 999).await);
    assert!(!valid("c1", 1000).await);
    for cookie in ["c0", "c2", "c3"] {
        assert!(!valid(cookie, 50).await, "{cookie}");
    }
}

#[tokio::test]
async fn keys_are_found_by_their_hash_until_they_are_revoked() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let scopes = Scopes::parse("read").unwrap();
    let key = ApiKey {
        name: "ci".to_owned(),
        scopes,
        created_at: Timestamp(5),
    };
    assert!(store.add_key(key.clone(), hash("secret")).await.unwrap());
    assert!(
        !store.add_key(key.clone(), hash("other")).await.unwrap(),
        "the name is taken"
    );
    assert_eq!(store.find_key(hash("secret")).await.unwrap(), Some(key.clone()));
    assert_eq!(store.find_key(hash("other")).await.unwrap(), None);

    // Another process revokes it.
    let elsewhere = open(folder.path());
    assert_eq!(elsewhere.keys().await.unwrap(), [key]);
    assert!(elsewhere.revoke_key("ci").await.unwrap());
    assert!(!elsewhere.revoke_key("ci").await.unwrap());
    assert_eq!(store.find_key(hash("secret")).await.unwrap(), None);
}
