//! The index over transcripts that grow, are replaced and go away, and an index that is damaged or has no place.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod crafted;

use std::fs;

use crafted::{Home, ID, assistant, conversation, id, texts, user};
use serde_json::Value;
use tiller_history::{History, HistoryError, Include, Page, SearchQuery};

#[test]
fn growth_replacement_and_removal_are_noticed_with_and_without_an_index() {
    let home = Home::new();
    let name = format!("{ID}.jsonl");
    home.write(&name, &conversation());
    let search = |history: &History, text: &str| {
        history.update_index().unwrap();
        history
            .search(
                &SearchQuery {
                    text: text.into(),
                    ..SearchQuery::default()
                },
                Page::first(9),
            )
            .unwrap()
            .total
    };
    let check = |expected: &[&str]| {
        for history in [home.history(), home.without_index()] {
            let page = history.messages(&id(), Page::first(50), Include::Chain).unwrap();
            assert_eq!(texts(&page.messages), expected);
            assert_eq!(page.session.message_count, expected.len() as u64);
        }
    };
    check(&["first question", "first answer"]);
    let history = home.history();
    assert_eq!((search(&history, "answer"), search(&history, "second")), (1, 0));

    home.append(&name, &format!("{}\n", user("u2", Some("a1"), "second question")));
    check(&["first question", "first answer", "second question"]);
    assert_eq!((search(&history, "answer"), search(&history, "second")), (1, 1));

    // The same file, written anew in place and longer than before.
    home.write(
        &name,
        &[
            user("v1", None, "something else entirely"),
            assistant("b1", "v1", &"and longer ".repeat(200)),
        ],
    );
    assert_eq!(history.session(&id()).unwrap().title, "something else entirely");
    assert_eq!((search(&history, "answer"), search(&history, "entirely")), (0, 1));

    fs::remove_file(home.path(&name)).unwrap();
    assert!(matches!(history.session(&id()), Err(HistoryError::NotFound)));
    assert_eq!(history.projects().unwrap().projects, []);
    assert_eq!(search(&history, "entirely"), 0);
}

#[test]
fn a_damaged_index_is_built_again() {
    let home = Home::new();
    home.write(&format!("{ID}.jsonl"), &conversation());
    assert!(home.history().update_index().unwrap().bytes > 0);
    assert_eq!(
        home.history().update_index().unwrap().bytes,
        0,
        "a sound index is kept"
    );
    for (name, damage) in [
        ("history.db", b"this is no database".to_vec()),
        ("history.db", vec![0; 5000]),
        ("search.db", b"neither is this".to_vec()),
    ] {
        fs::write(home.index().join(name), damage).unwrap();
        let history = home.history();
        assert_eq!(history.session(&id()).unwrap().message_count, 2);
        history.update_index().unwrap();
        let query = SearchQuery {
            text: "question".into(),
            ..SearchQuery::default()
        };
        assert_eq!(history.search(&query, Page::first(5)).unwrap().total, 1);
    }
}

#[test]
fn phrases_are_found_only_where_they_stand_just_so() {
    let home = Home::new();
    let mut lines = Vec::new();
    for number in 0..40 {
        lines.push(user(
            &format!("apart{number}"),
            None,
            "the Request came before the server",
        ));
        lines.push(user(
            &format!("together{number}"),
            None,
            "a Server request, 请修复登录页面",
        ));
        lines.push(user(&format!("mixed{number}"), None, "登录 and 录页 and 页面"));
    }
    home.write(&format!("{ID}.jsonl"), &lines);
    let history = home.history();
    history.update_index().unwrap();
    let found = |text: &str| {
        let page = history
            .search(
                &SearchQuery {
                    text: text.into(),
                    ..SearchQuery::default()
                },
                Page::first(100),
            )
            .unwrap();
        assert!(
            page.results
                .iter()
                .all(|result| result.fragments.iter().any(|fragment| fragment.is_match))
        );
        page.total
    };
    assert_eq!(found("\"server request\""), 40);
    assert_eq!(found("server request"), 80);
    assert_eq!(found("登录页面"), 40);
    assert_eq!(found("登录"), 80);
    assert_eq!(found("reque"), 80);
    assert_eq!(found("equest"), 0, "words are found from their beginning");
}

#[test]
fn without_a_place_for_the_index_everything_but_search_works() {
    let home = Home::new();
    home.write(&format!("{ID}.jsonl"), &conversation());
    fs::write(home.index(), "a file where the folder should be").unwrap();
    let history = home.history();
    assert_eq!(
        history
            .messages(&id(), Page::last(5), Include::Chain)
            .unwrap()
            .total,
        2
    );
    assert_eq!(history.update_index().unwrap().bytes, 0);
    let query = SearchQuery {
        text: "question".into(),
        ..SearchQuery::default()
    };
    assert!(matches!(
        history.search(&query, Page::first(5)),
        Err(HistoryError::NoIndex)
    ));
}

#[test]
fn an_index_that_turns_out_to_be_damaged_is_built_again() {
    let home = Home::new();
    let many: Vec<Value> = (0..3000)
        .map(|n| user(&format!("m{n}"), None, &format!("word{n} and word{}", n * 7)))
        .collect();
    home.write(&format!("{ID}.jsonl"), &many);
    home.history().update_index().unwrap();
    for name in ["history.db", "search.db"] {
        // Everything but the first page, which opening looks at.
        let path = home.index().join(name);
        let mut bytes = fs::read(&path).unwrap();
        assert!(bytes.len() > 8192, "{name}");
        bytes[4096..].fill(0x5a);
        fs::write(&path, bytes).unwrap();
    }
    let history = home.history();
    assert_eq!(history.session(&id()).unwrap().message_count, 3000);
    let query = SearchQuery {
        text: "word2999".into(),
        ..SearchQuery::default()
    };
    if history
        .search(&query, Page::first(5))
        .is_ok_and(|page| page.total == 1)
    {
        return;
    }
    history.update_index().unwrap();
    assert_eq!(history.search(&query, Page::first(5)).unwrap().total, 1);
}
