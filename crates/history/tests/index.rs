//! The index over transcripts that grow, are replaced and are deleted, and an index that is damaged or can't be
//! created.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod crafted;

use std::fs;

use crafted::{Home, ID, assistant, conversation, id, line, texts, user};
use serde_json::Value;
use tiller_history::{History, HistoryError, Include, Offset, Page, SearchQuery};

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

    // The same file, rewritten in place and longer than before.
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

/// Invalidates the saved form of one transcript, but not the database around it.
fn damage(home: &Home, name: &str, sql: &str) {
    let index = rusqlite::Connection::open(home.index().join("history.db")).unwrap();
    let path = format!("-p/{name}");
    let changed = index.execute(&format!("UPDATE digest SET data = {sql} WHERE path = ?"), [path]);
    assert_eq!(changed.unwrap(), 1);
}

#[test]
fn the_list_is_the_same_with_and_without_an_index_after_every_change_of_a_file() {
    let home = Home::new();
    let name = |number: usize| format!("{number:08}-1111-4111-8111-111111111111.jsonl");
    let tool = |uuid: &str, name: &str| {
        let content = serde_json::json!([{"type": "tool_use", "id": "t", "name": name, "input": {}}]);
        let mut call = line("assistant", uuid, None, content);
        call["message"]["model"] = "claude-é-🌱".into();
        call
    };
    let write = |number: usize, text: &str| {
        let delta = |path: &str| serde_json::json!({"type": "file-history-delta", "trackingPath": path});
        let title = serde_json::json!({"type": "custom-title", "customTitle": format!("{text} 的标题")});
        let mut lines = vec![
            serde_json::json!({"type": "of-tomorrow\u{0}"}),
            delta("/home/user/p/before.rs"),
            user("u1", None, text),
            tool("a1", "Bash"),
            tool("a2", text),
            delta(&format!("/home/user/p/{text}")),
            delta("/elsewhere/e\u{301}.rs"),
        ];
        if number.is_multiple_of(2) {
            lines.push(title);
        }
        if number.is_multiple_of(3) {
            // Without a user line, which has the working directory.
            lines.retain(|line| line["type"] != "user");
        }
        home.write(&name(number), &lines);
    };
    let kinds = [
        "plain words",
        "中文 und Größe",
        "🌱👩‍👩‍👧 e\u{301} \u{202e}right to left",
        "a\u{0}b \u{10ffff}\u{feff}\n\ttab \\ \" <b>",
        "长".repeat(500).leak(),
        "",
    ];
    for (number, text) in kinds.into_iter().cycle().take(12).enumerate() {
        write(number, text);
    }
    let long_lived = home.history();
    let same = |what: &str| {
        let expected = home.without_index().everything().unwrap();
        // The first may have to read again and saves the result; the second has all of it from the index.
        assert_eq!(home.history().everything().unwrap(), expected, "{what}");
        assert_eq!(home.history().everything().unwrap(), expected, "{what}, again");
        assert_eq!(
            long_lived.everything().unwrap(),
            expected,
            "{what}, in a running program"
        );
        expected[0].sessions.len()
    };
    assert_eq!(same("as written"), 12);

    home.append(&name(1), &format!("{}\n", user("u9", None, "grown")));
    same("grown");
    home.append(&name(1), &user("u9", None, "a line without its end").to_string());
    same("a line that is not whole");
    home.append(&name(1), "\n{\"torn\":");
    same("a whole line and a torn one");
    let whole = fs::read(home.path(&name(2))).unwrap();
    fs::write(home.path(&name(2)), &whole[..whole.len() / 2]).unwrap();
    same("cut off");
    write(4, "written anew in place");
    same("written anew");
    // Another file of the same size and time in its place.
    let (old, new) = (home.path(&name(5)), home.path("new"));
    let text = fs::read_to_string(&old).unwrap();
    let time = fs::metadata(&old).unwrap().modified().unwrap();
    fs::write(&new, text.replace("Bash", "Read")).unwrap();
    fs::File::options()
        .write(true)
        .open(&new)
        .unwrap()
        .set_modified(time)
        .unwrap();
    fs::rename(&new, &old).unwrap();
    same("replaced");
    fs::remove_file(home.path(&name(6))).unwrap();
    assert_eq!(same("gone"), 11);

    for sql in [
        "x''",
        "zeroblob(200)",
        "substr(data, 1, length(data) - 1)",
        "data || x'ff'",
        "'text'",
    ] {
        damage(&home, &name(7), sql);
        same(sql);
    }
}

#[test]
fn a_damaged_index_is_rebuilt() {
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
fn a_search_says_whether_everything_is_indexed() {
    let home = Home::new();
    home.write(&format!("{ID}.jsonl"), &conversation());
    let query = SearchQuery {
        text: "question".into(),
        ..SearchQuery::default()
    };
    let history = home.history();
    let told = || {
        let page = history.search(&query, Page::first(5)).unwrap();
        (page.total, page.is_complete)
    };
    assert_eq!(told(), (0, false));
    history.update_index().unwrap();
    assert_eq!(told(), (1, true));
    history.stop_indexing();
    history.rebuild_index().unwrap();
    assert_eq!(told(), (0, false), "one that was stopped has not read everything");
}

#[test]
fn phrases_are_matched_literally() {
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
fn the_most_recently_used_conversation_is_found_first() {
    let home = Home::new();
    let name = |day: u32| format!("{day:08}-1111-4111-8111-111111111111.jsonl");
    let write = |day: u32| {
        let lines: Vec<Value> = (1..=2)
            .map(|hour| {
                let mut said = user(&format!("{day}-{hour}"), None, "a word to be found");
                said["timestamp"] = format!("2026-11-{day:02}T0{hour}:00:00.000Z").into();
                said
            })
            .collect();
        home.write(&name(day), &lines);
    };
    let history = home.history();
    let found = |limit: usize| {
        history.update_index().unwrap();
        let query = SearchQuery {
            text: "word".into(),
            ..SearchQuery::default()
        };
        let mut found: Vec<String> = Vec::new();
        loop {
            let page = Page {
                offset: Offset::FromStart(found.len()),
                limit,
            };
            let page = history.search(&query, page).unwrap();
            if page.results.is_empty() {
                assert_eq!(page.total, found.len());
                return found;
            }
            found.extend(page.results.into_iter().map(|result| result.uuid));
        }
    };
    // Copied here all at once, the oldest last.
    for day in [14, 12, 10] {
        write(day);
    }
    assert_eq!(found(2), ["14-2", "14-1", "12-2", "12-1", "10-2", "10-1"]);
    // Old ones that are added later, as from a backup, and one that is continued.
    write(11);
    write(9);
    assert_eq!(
        found(3),
        [
            "14-2", "14-1", "12-2", "12-1", "11-2", "11-1", "10-2", "10-1", "9-2", "9-1"
        ]
    );
    let mut again = user("10-3", None, "the word again");
    again["timestamp"] = "2026-11-15T01:00:00.000Z".into();
    home.append(&name(10), &format!("{again}\n"));
    assert_eq!(found(100)[..3], ["10-3", "14-2", "14-1"]);
}

#[test]
fn a_found_summary_is_distinguished_from_a_prompt() {
    let home = Home::new();
    let mut summary = user("u2", Some("a1"), "a summary of the question");
    summary["isCompactSummary"] = true.into();
    let mut lines = conversation();
    lines.push(summary);
    home.write(&format!("{ID}.jsonl"), &lines);
    let history = home.history();
    history.update_index().unwrap();
    let query = SearchQuery {
        text: "question".into(),
        ..SearchQuery::default()
    };
    let found = history.search(&query, Page::first(5)).unwrap().results;
    let found: Vec<(&str, bool)> = found
        .iter()
        .map(|result| (result.uuid.as_str(), result.is_summary))
        .collect();
    assert_eq!(found, [("u2", true), ("u1", false)]);
}

#[test]
fn without_an_index_everything_but_search_works() {
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
fn an_index_with_hidden_damage_is_rebuilt() {
    let home = Home::new();
    let many: Vec<Value> = (0..3000)
        .map(|n| user(&format!("m{n}"), None, &format!("word{n} and word{}", n * 7)))
        .collect();
    home.write(&format!("{ID}.jsonl"), &many);
    home.history().update_index().unwrap();
    for name in ["history.db", "search.db"] {
        // Everything but the first page, which is checked when the index is opened.
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

#[test]
fn every_query_is_plain_text_and_never_harms_the_index() {
    let home = Home::new();
    home.write(
        &format!("{ID}.jsonl"),
        &[user("u1", None, "near and not or words: a*b 登录")],
    );
    let history = home.history();
    history.update_index().unwrap();
    let total = |text: &str| {
        let query = SearchQuery {
            text: text.into(),
            ..SearchQuery::default()
        };
        history.search(&query, Page::first(5)).unwrap().total
    };
    // The operators of a query language are words here.
    for text in [
        "AND",
        "NOT near",
        "near OR",
        "NEAR(near)",
        "words:",
        "^near",
        "a*b",
        "-near",
        "{near}",
        "\"near",
        "near\0and",
    ] {
        assert_eq!(total(text), 1, "{text:?}");
    }
    // Far more than anyone types: words, a phrase, and characters.
    assert_eq!(total(&"near ".repeat(3000)), 1);
    assert_eq!(total(&format!("\"{}\"", "near ".repeat(3000))), 0);
    assert_eq!(total(&"登录".repeat(3000)), 0);
    assert_eq!(total("near"), 1, "the index is as it was");
    assert_eq!(history.update_index().unwrap().bytes, 0);
}

#[test]
fn two_programs_share_an_index() {
    let home = Home::new();
    let name = format!("{ID}.jsonl");
    home.write(&name, &conversation());
    let (one, other) = (home.history(), home.history());
    let total = |history: &History, text: &str| {
        let query = SearchQuery {
            text: text.into(),
            ..SearchQuery::default()
        };
        history.search(&query, Page::first(9)).unwrap().total
    };
    for round in 0..6 {
        home.append(
            &name,
            &format!("{}\n", user(&format!("m{round}"), None, "the shared word")),
        );
        let (writer, reader) = if round % 2 == 0 {
            (&one, &other)
        } else {
            (&other, &one)
        };
        // At the same time: one of them indexes the line, and neither does so twice.
        std::thread::scope(|scope| {
            scope.spawn(|| writer.update_index().unwrap());
            scope.spawn(|| reader.update_index().unwrap());
        });
        for history in [writer, reader] {
            assert_eq!(total(history, "shared"), round + 1);
            assert_eq!(total(history, "question"), 1);
        }
    }
}

/// Numbers that look random and are the same every time.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }

    fn pick<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len())]
    }
}

/// Text in which the same few words occur in every order, inside of longer words, and across lines.
fn rambling(random: &mut Random) -> String {
    const WORDS: [&str; 14] = [
        "server",
        "Request",
        "the",
        "observer",
        "requests",
        "THE",
        "them",
        "a",
        "file_path",
        "path",
        "Größe",
        "über",
        "r",
        "x7",
    ];
    const DENSE: [&str; 8] = ["登录", "页面", "登", "录页", "数据库", "请修复", "面", "の"];
    const BETWEEN: [&str; 9] = [" ", " ", " ", " ", "_", ", ", "\n", "", "\""];
    let length = [3, 9, 60, 400][random.below(4)];
    let mut text = String::new();
    for _ in 0..length {
        let dense = random.below(3) == 0;
        text.push_str(random.pick(if dense { &DENSE } else { &WORDS }));
        text.push_str(if dense {
            random.pick(&["", "，", " "])
        } else {
            random.pick(&BETWEEN)
        });
    }
    text
}

/// Whether a letter is part of words that have blanks between them.
fn is_letter(letter: char) -> bool {
    letter.is_alphanumeric() && !('\u{3040}'..='\u{9fff}').contains(&letter)
}

/// Whether a text has a phrase as whole words, ignoring case. The last word may continue if `is_open`.
fn has(text: &str, phrase: &str, is_open: bool) -> bool {
    let (text, phrase) = (text.to_lowercase(), phrase.to_lowercase());
    text.char_indices().any(|(at, _)| {
        let Some(after) = text[at..].strip_prefix(&phrase) else {
            return false;
        };
        let begins = !phrase.starts_with(is_letter) || !text[..at].ends_with(is_letter);
        let ends = is_open || !phrase.ends_with(is_letter) || !after.starts_with(is_letter);
        begins && ends
    })
}

#[test]
fn search_finds_exactly_what_reading_everything_finds() {
    let home = Home::new();
    let history = home.history();
    let mut random = Random(6);
    let mut said: Vec<(String, String)> = Vec::new();
    let name = format!("{ID}.jsonl");
    home.write(&name, &[]);
    // In many rounds, so that the index has several segments and some of them have been merged.
    for round in 0..12 {
        let mut lines = String::new();
        for number in 0..[180, 4, 1][round % 3] {
            let (uuid, text) = (format!("m{round}-{number}"), rambling(&mut random));
            lines += &user(&uuid, None, &text).to_string();
            lines.push('\n');
            said.push((uuid, text));
        }
        home.append(&name, &lines);
        history.update_index().unwrap();
    }
    // Each with its phrases; the last one may continue if the query ends in a letter.
    let questions: [(&str, &[&str]); 26] = [
        ("server", &["server"]),
        ("serv", &["serv"]),
        ("erver", &["erver"]),
        ("them server", &["them", "server"]),
        ("\"server request\"", &["server request"]),
        ("\"server request", &["server request"]),
        ("\"server req", &["server req"]),
        ("\"Request The server\"", &["request the server"]),
        ("\"the the the\"", &["the the the"]),
        (
            "\"observer requests\" \"the path\"",
            &["observer requests", "the path"],
        ),
        ("\"server, request\"", &["server, request"]),
        ("\"server\nrequest\"", &["server\nrequest"]),
        ("\"path_the\"", &["path_the"]),
        ("file_path", &["file_path"]),
        ("file_pa", &["file_pa"]),
        ("the_file_path", &["the_file_path"]),
        ("\"GRÖSSE ÜBER\"", &["grösse über"]),
        ("\"größe über\"", &["größe über"]),
        ("\"größe übe", &["größe übe"]),
        ("登", &["登"]),
        ("登录", &["登录"]),
        ("登录页面", &["登录页面"]),
        ("页面数据库", &["页面数据库"]),
        ("\"登录，页面\"", &["登录，页面"]),
        ("修复r", &["修复r"]),
        ("\"the 登录\" 面登", &["the 登录", "面登"]),
    ];
    for (question, phrases) in questions {
        let (last, others) = phrases.split_last().unwrap();
        let last_word = question.rsplit(|letter| !is_letter(letter)).next().unwrap();
        let is_open = last_word.chars().count() >= 3;
        let mut expected: Vec<&str> = said
            .iter()
            .filter(|(_, text)| {
                others.iter().all(|phrase| has(text, phrase, false)) && has(text, last, is_open)
            })
            .map(|(uuid, _)| uuid.as_str())
            .collect();
        expected.reverse();
        let query = SearchQuery {
            text: question.into(),
            ..SearchQuery::default()
        };
        let mut found = Vec::new();
        loop {
            let page = Page {
                offset: Offset::FromStart(found.len()),
                limit: Page::MAX,
            };
            let page = history.search(&query, page).unwrap();
            assert!(page.total >= found.len());
            if page.results.is_empty() {
                assert!(!page.total_is_exact || page.total == found.len());
                break;
            }
            found.extend(page.results.into_iter().map(|result| result.uuid));
        }
        assert!(
            found == expected,
            "{question}: {} and {}",
            found.len(),
            expected.len()
        );
        assert_eq!(
            expected.is_empty(),
            ["erver", "file_pa", "\"GRÖSSE ÜBER\""].contains(&question),
            "{question}"
        );
    }
}
