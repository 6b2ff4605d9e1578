//! Transcripts of every age and state: written by an older CLI, torn, spliced, growing, deleted.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod crafted;

use std::fs;
use std::path::Path;

use crafted::{Home, ID, assistant, content, conversation, id, line, texts, user};
use serde_json::{Value, json};
use tiller_history::{
    Branch, Change, Format, History, HistoryError, Include, Page, ProjectId, SearchQuery, SessionId,
    UsageQuery, Vault,
};

#[test]
fn a_transcript_of_2_1_49_reads_as_any_other() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/2.1.49");
    let history = History::open(&home, None).unwrap();
    let projects = history.projects().unwrap().projects;
    assert_eq!(projects.len(), 1);
    assert_eq!(
        (projects[0].path.as_str(), projects[0].session_count),
        ("/home/user/project", 1)
    );
    let session = history.all_sessions(Page::first(50)).unwrap().sessions.remove(0);
    assert!(session.title.starts_with("Please build the 登录页面 for me"));
    assert_eq!(session.title.chars().count(), 50);
    assert_eq!(session.tools_used, ["Write", "Edit", "Bash", "Task"]);
    assert_eq!(session.files_changed, ["hello.txt"]);
    assert_eq!(session.cli_version.as_deref(), Some("2.1.49"));
    assert_eq!((session.damaged_lines, session.unknown_lines.len()), (0, 0));

    let chain = history
        .messages(&session.id, Page::first(100), Include::Chain)
        .unwrap()
        .messages;
    assert!(chain[0].compaction.is_some());
    assert_eq!(texts(&chain).last().unwrap(), "answer two");
    let all = history
        .messages(&session.id, Page::first(100), Include::All)
        .unwrap()
        .messages;
    let call = all
        .iter()
        .position(|message| content(message)[0]["name"] == "Task")
        .unwrap();
    assert!(all[call + 1].sidechain);
    assert_eq!(
        all[call + 1].parent_tool_use_id.as_deref(),
        content(&all[call])[0]["id"].as_str()
    );
    assert_eq!(all.iter().filter(|message| message.sidechain).count(), 4);
    assert!(
        all.iter()
            .flat_map(|message| content(message).as_array().unwrap().clone())
            .any(|block| block["persisted_output"]["size"] == 38_893)
    );
}

#[test]
fn shapes_are_those_of_the_contract() {
    let home = Home::new();
    let mut lines = conversation();
    lines.push(line(
        "user",
        "u2",
        Some("a1"),
        json!([{"type": "tool_result", "tool_use_id": "t", "content": "x"}]),
    ));
    home.write(&format!("{ID}.jsonl"), &lines);
    let history = home.without_index();
    let projects = serde_json::to_value(history.projects().unwrap()).unwrap();
    assert_eq!(
        projects,
        json!({"projects": [{"id": "-p", "path": "/home/user/p", "name": "p", "session_count": 1,
            "last_active": lines[2]["timestamp"]}]})
    );
    let page =
        serde_json::to_value(history.messages(&id(), Page::first(50), Include::Chain).unwrap()).unwrap();
    for field in [
        "id",
        "title",
        "project_path",
        "timestamp",
        "message_count",
        "tools_used",
        "files_changed",
    ] {
        assert!(!page["session"][field].is_null(), "{field}");
    }
    assert_eq!(page["total"], 3);
    let mut session = history.session(&id()).unwrap();
    assert_eq!(
        session.resume_command(),
        format!("cd '/home/user/p' && claude --resume {ID}")
    );
    session.project_path = "/it's; rm -rf".into();
    assert_eq!(
        session.resume_command(),
        format!(r"cd '/it'\''s; rm -rf' && claude --resume {ID}")
    );
    assert_eq!(
        page["messages"][0],
        json!({"role": "user", "content": [{"type": "text", "text": "first question"}], "uuid": "u1", "parentUuid": null,
            "timestamp": lines[0]["timestamp"]})
    );
}

#[test]
fn torn_and_spliced_lines_are_counted_and_unknown_types_are_listed() {
    let home = Home::new();
    let name = format!("{ID}.jsonl");
    home.write(&name, &conversation());
    let torn = user("u2", Some("a1"), "this one is torn").to_string();
    home.append(&name, &torn[..torn.len() / 2]);
    home.append(&name, &format!("{}\n", assistant("a2", "u2", "spliced into it")));
    home.append(
        &name,
        "\n{\"type\":\"from-tomorrow\",\"x\":[1]}\n{\"no\":\"type\"}\nnot json at all\n",
    );
    home.append(&name, &format!("{}\n", user("u3", Some("a2"), "whole again")));
    let history = home.without_index();
    let session = history.session(&id()).unwrap();
    assert_eq!(session.message_count, 3);
    assert_eq!(session.damaged_lines, 2);
    assert_eq!(
        session.unknown_lines,
        [("from-tomorrow".to_owned(), 1), (String::new(), 1)].into()
    );
    // The link to the torn line is repaired, as the CLI does it.
    let chain = history.messages(&id(), Page::first(50), Include::Chain).unwrap();
    assert_eq!(
        texts(&chain.messages),
        ["first question", "first answer", "whole again"]
    );
}

#[test]
fn an_unfinished_line_counts_once_it_is_complete() {
    let home = Home::new();
    let name = format!("{ID}.jsonl");
    home.write(&name, &conversation());
    let history = home.history();
    let next = user("u2", Some("a1"), "slowly written").to_string();
    let (head, tail) = next.split_at(40);
    home.append(&name, head);
    let session = history.session(&id()).unwrap();
    assert_eq!((session.message_count, session.damaged_lines), (2, 1));
    home.append(&name, tail);
    assert_eq!(history.session(&id()).unwrap().message_count, 3);
    home.append(&name, "\n");
    let session = history.session(&id()).unwrap();
    assert_eq!((session.message_count, session.damaged_lines), (3, 0));
    assert_eq!(
        history
            .messages(&id(), Page::last(1), Include::Chain)
            .unwrap()
            .messages[0]
            .uuid,
        "u2"
    );
}

#[test]
fn abandoned_branches_are_shown_only_on_request() {
    let home = Home::new();
    let mut lines = conversation();
    lines.push(user("u2", Some("a1"), "one way"));
    lines.push(assistant("a2", "u2", "gone there"));
    lines.push(user("u3", Some("a1"), "another way"));
    home.write(&format!("{ID}.jsonl"), &lines);
    let history = home.without_index();
    let chain = history.messages(&id(), Page::first(50), Include::Chain).unwrap();
    assert_eq!(
        texts(&chain.messages),
        ["first question", "first answer", "another way"]
    );
    let all = history.messages(&id(), Page::first(50), Include::All).unwrap();
    assert_eq!(all.total, 5);
    let left: Vec<&str> = all
        .messages
        .iter()
        .filter(|m| m.branch == Some(Branch::Left))
        .map(|m| m.uuid.as_str())
        .collect();
    assert_eq!(left, ["u2", "a2"]);
}

/// Subagents as releases before 2.1 wrote them: in the session's own file, and in files beside it.
#[test]
fn subagents_of_older_layouts_are_found() {
    let home = Home::new();
    let task = |id: &str, prompt: &str| json!([{"type": "tool_use", "id": id, "name": "Task", "input": {"prompt": prompt}}]);
    let side = |mut line: Value| {
        line["isSidechain"] = true.into();
        line
    };
    home.write(
        &format!("{ID}.jsonl"),
        &[
            user("u1", None, "delegate"),
            line("assistant", "a1", Some("u1"), task("t1", "look inside")),
            side(user("s1", None, "look inside")),
            side(assistant("s2", "s1", "seen inside")),
            line("assistant", "a2", Some("a1"), task("t2", "look beside")),
            assistant("a3", "a2", "all looked at"),
        ],
    );
    home.write(
        "agent-0a1b.jsonl",
        &[
            side(user("b1", None, "look beside")),
            side(assistant("b2", "b1", "seen beside")),
        ],
    );
    let history = home.history();
    assert_eq!(history.all_sessions(Page::first(9)).unwrap().total, 1);
    let chain = history.messages(&id(), Page::first(50), Include::Chain).unwrap();
    assert_eq!(
        chain.messages.iter().map(|m| m.uuid.as_str()).collect::<Vec<_>>(),
        ["u1", "a1", "a2", "a3"]
    );
    let all = history
        .messages(&id(), Page::first(50), Include::All)
        .unwrap()
        .messages;
    let order: Vec<&str> = all.iter().map(|m| m.uuid.as_str()).collect();
    assert_eq!(order, ["u1", "a1", "s1", "s2", "a2", "b1", "b2", "a3"]);
    let calls: Vec<Option<&str>> = all
        .iter()
        .filter(|m| m.sidechain)
        .map(|m| m.parent_tool_use_id.as_deref())
        .collect();
    assert_eq!(calls, [Some("t1"), Some("t1"), Some("t2"), Some("t2")]);
    history.update_index().unwrap();
    let found = history
        .search(
            &SearchQuery {
                text: "beside".into(),
                ..SearchQuery::default()
            },
            Page::first(9),
        )
        .unwrap();
    assert!(found.results.iter().all(|result| result.session_id == id()));
    assert_eq!(found.total, 3);
}

#[test]
fn titles_counts_and_files_follow_the_rules() {
    let home = Home::new();
    let meta = |text: &str| {
        let mut line = user("m1", None, text);
        line["isMeta"] = true.into();
        line
    };
    home.write(
        &format!("{ID}.jsonl"),
        &[
            meta("<local-command-caveat>Caveat</local-command-caveat>"),
            user("u0", Some("m1"), "<command-name>/clear</command-name><command-args></command-args>"),
            line("user", "u1", Some("u0"), json!([
                {"type": "text", "text": "<ide_opened_file>a.rs</ide_opened_file>"},
                {"type": "text", "text": format!("{}！", "修".repeat(60))},
            ])),
            json!({"type": "file-history-snapshot", "snapshot": {"trackedFileBackups": {"/home/user/p/b.rs": {}, "a.rs": {}}}}),
            json!({"type": "file-history-delta", "trackingPath": "c.rs"}),
            {
                let mut edit = line("user", "u2", Some("u1"), json!([{"type": "tool_result", "tool_use_id": "t"}]));
                edit["toolUseResult"] = json!({"filePath": "/elsewhere/d.rs", "structuredPatch": []});
                edit
            },
            {
                let mut read = line("user", "u3", Some("u2"), json!([{"type": "tool_result", "tool_use_id": "t"}]));
                read["toolUseResult"] = json!({"type": "text", "file": {"filePath": "/home/user/p/read.rs"}});
                read
            },
            json!({"type": "api-request-blob", "message": {"role": "user", "content": "not a message"}}),
        ],
    );
    let history = home.without_index();
    let session = history.session(&id()).unwrap();
    assert_eq!(session.title, "修".repeat(50));
    assert_eq!(session.message_count, 5);
    assert_eq!(session.files_changed, ["b.rs", "a.rs", "c.rs", "/elsewhere/d.rs"]);

    home.append(
        &format!("{ID}.jsonl"),
        "{\"type\":\"custom-title\",\"customTitle\":\"My name for it\"}\n",
    );
    assert_eq!(history.session(&id()).unwrap().title, "My name for it");

    home.write(
        "22222222-2222-4222-8222-222222222222.jsonl",
        &[json!({"type": "file-history-snapshot", "snapshot": {}})],
    );
    assert_eq!(
        history.all_sessions(Page::first(9)).unwrap().total,
        1,
        "a transcript without a message is no session"
    );
}

#[test]
fn a_message_counts_once_with_its_last_line_also_in_a_fork() {
    let home = Home::new();
    let said = |uuid: &str, parent: &str, message: &str, output: u64| {
        let mut said = assistant(uuid, parent, "x");
        said["message"]["id"] = message.into();
        said["message"]["model"] = "claude-sonnet-4-6".into();
        said["message"]["usage"] = json!({"input_tokens": 10, "output_tokens": output});
        said
    };
    let lines = [
        user("u1", None, "go"),
        said("a1", "u1", "m1", 1),
        said("a2", "a1", "m1", 50),
        said("a3", "a2", "m2", 7),
    ];
    home.write(&format!("{ID}.jsonl"), &lines);
    home.write("33333333-3333-4333-8333-333333333333.jsonl", &lines);
    let query = UsageQuery {
        time_zone: jiff::tz::TimeZone::UTC,
        ..UsageQuery::default()
    };
    for history in [home.without_index(), home.history(), home.history()] {
        let report = history.usage(&query).unwrap();
        assert_eq!(
            (
                report.total.messages,
                report.total.tokens.input_tokens,
                report.total.tokens.output_tokens
            ),
            (2, 20, 57)
        );
        assert_eq!(report.days.len(), 1);
        assert_eq!(report.days[0].key, "2026-11-15");
        assert!((report.total.cost_usd - (20.0 * 3.0 + 57.0 * 15.0) / 1e6).abs() < 1e-12);
    }
    let later = UsageQuery {
        from: Some(4_000_000_000_000),
        ..query
    };
    assert_eq!(home.history().usage(&later).unwrap().total.messages, 0);
}

#[test]
fn exports_are_whole_and_harmless() {
    let home = Home::new();
    home.write(
        &format!("{ID}.jsonl"),
        &[
            user("u1", None, "<b>bold</b> & <script>alert(1)</script> ```"),
            line("assistant", "a1", Some("u1"), json!([
                {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "echo '````'"}}])),
            line("user", "u2", Some("a1"), json!([
                {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "</pre><img src=x onerror=alert(1)>"}]}])),
        ],
    );
    let history = home.without_index();
    let export = |format: Format| {
        let mut out = Vec::new();
        history.export(&id(), format, Include::All, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    let html = export(Format::Html);
    assert!(html.contains("&lt;script&gt;alert(1)&lt;/script&gt;") && html.contains("default-src 'none'"));
    for tag in ["<script", "<img", "<b>", "src=\"http", "href="] {
        assert!(!html.contains(tag), "{tag}");
    }
    let markdown = export(Format::Markdown);
    assert!(
        markdown.contains("`````json") && markdown.contains("Bash →"),
        "{markdown}"
    );
    let json: Value = serde_json::from_str(&export(Format::Json)).unwrap();
    assert_eq!(json["session"]["id"], ID);
    assert_eq!(json["messages"][2]["content"][0]["tool_name"], "Bash");
}

#[test]
fn the_resume_command_is_safe_in_any_folder() {
    let home = Home::new();
    let folder = home.beside("Ada's \"$(touch oops)\" 项目");
    fs::create_dir(&folder).unwrap();
    let mut first = user("u1", None, "hello");
    first["cwd"] = json!(folder);
    home.write(&format!("{ID}.jsonl"), &[first]);
    let command = home.without_index().session(&id()).unwrap().resume_command();
    let (change_folder, resume) = command.split_once(" && ").unwrap();
    assert_eq!(resume, format!("claude --resume {ID}"));
    // A shell ends up in that folder, and has done nothing else.
    let output = std::process::Command::new("sh")
        .args(["-c", &format!("{change_folder} && pwd")])
        .current_dir(home.claude())
        .output()
        .unwrap();
    let reached = String::from_utf8(output.stdout).unwrap();
    assert_eq!(
        fs::canonicalize(reached.trim_end()).unwrap(),
        fs::canonicalize(&folder).unwrap()
    );
    assert!(!home.claude().join("oops").exists());
}

#[test]
fn the_vault_keeps_and_restores_deleted_transcripts() {
    let home = Home::new();
    let name = format!("{ID}.jsonl");
    home.write(&name, &conversation());
    home.write(
        &format!("{ID}/subagents/agent-a.jsonl"),
        &[user("s1", None, "side")],
    );
    fs::create_dir_all(home.path(&format!("{ID}/tool-results"))).unwrap();
    fs::write(home.path(&format!("{ID}/tool-results/big.txt")), "big").unwrap();
    let folder = home.beside("vault");
    let vault = Vault::open(&folder).unwrap();
    let history = home.history();
    assert_eq!(vault.archive(&history).unwrap().sessions, 1);
    assert_eq!(vault.archive(&history).unwrap().sessions, 0, "nothing new");
    home.append(&name, &format!("{}\n", user("u2", Some("a1"), "more")));
    assert_eq!(vault.archive(&history).unwrap().sessions, 1);
    assert_eq!(vault.sessions(&history).unwrap(), []);

    let original = fs::read(home.path(&name)).unwrap();
    fs::remove_file(home.path(&name)).unwrap();
    fs::remove_dir_all(home.path(ID)).unwrap();
    let kept = vault.sessions(&history).unwrap();
    assert_eq!(
        (kept.len(), kept[0].archived, kept[0].message_count),
        (1, true, 3)
    );
    assert_eq!(vault.archive(&history).unwrap().sessions, 0);

    vault.restore(&id(), &home.claude()).unwrap();
    assert_eq!(fs::read(home.path(&name)).unwrap(), original);
    assert_eq!(
        fs::read(home.path(&format!("{ID}/tool-results/big.txt"))).unwrap(),
        b"big"
    );
    let restored = history.messages(&id(), Page::first(9), Include::All).unwrap();
    assert_eq!(restored.total, 4);
    assert!(matches!(
        vault.restore(&SessionId::parse("unknown").unwrap(), &home.claude()),
        Err(HistoryError::NotFound)
    ));
}

#[test]
fn missing_files_are_not_found_and_the_home_may_be_created_later() {
    let folder = tempfile::tempdir().unwrap();
    let history = History::open(&folder.path().join("none"), None).unwrap();
    assert_eq!(history.projects().unwrap().projects, []);
    assert_eq!(history.all_sessions(Page::first(5)).unwrap().total, 0);
    let project = ProjectId::parse("-nowhere").unwrap();
    assert!(matches!(
        history.sessions(&project, Page::first(5)),
        Err(HistoryError::NotFound)
    ));
    assert!(matches!(
        history.messages(&id(), Page::first(5), Include::Chain),
        Err(HistoryError::NotFound)
    ));
    let query = SearchQuery {
        text: "x".into(),
        ..SearchQuery::default()
    };
    assert!(matches!(
        history.search(&query, Page::first(5)),
        Err(HistoryError::NoIndex)
    ));
    assert_eq!(history.retention_days(), 30);
    fs::create_dir_all(folder.path().join("none")).unwrap();
    fs::write(
        folder.path().join("none/settings.json"),
        r#"{"cleanupPeriodDays": 365}"#,
    )
    .unwrap();
    assert_eq!(history.retention_days(), 365);
}

#[cfg(unix)]
#[test]
fn hostile_transcripts_do_not_affect_others() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    let home = Home::new();
    home.write(&format!("{ID}.jsonl"), &conversation());
    let other = |number: u32| format!("00000000-0000-4000-8000-{number:012}");
    let write =
        |number: u32, bytes: &[u8]| fs::write(home.path(&format!("{}.jsonl", other(number))), bytes).unwrap();
    let good = user("u1", None, "a good line").to_string();
    // A line of 60 MB between two valid ones.
    let long = format!("{good}\n{}\n{good}\n", "x".repeat(60 << 20));
    write(1, long.as_bytes());
    // NUL bytes, as a crash of the machine leaves them, and invalid UTF-8.
    write(
        2,
        &[&[0; 5000][..], b"\n", good.as_bytes(), b"\n\xff\xfe{\n"].concat(),
    );
    // A time in the future, and an invalid one.
    write(3, (good.replace("2026-11-15", "2199-01-01") + "\n").as_bytes());
    write(4, (good.replace("2026-11-15T", "yesterday ") + "\n").as_bytes());
    // Only nonsense, an empty file, a folder, a link to itself, a link out, and an unreadable file.
    write(5, b"[]\nnull\n42\n\"text\"\n{}\n");
    write(6, b"");
    fs::create_dir(home.path(&format!("{}.jsonl", other(7)))).unwrap();
    symlink(
        format!("{}.jsonl", other(8)),
        home.path(&format!("{}.jsonl", other(8))),
    )
    .unwrap();
    symlink("/etc/passwd", home.path(&format!("{}.jsonl", other(9)))).unwrap();
    write(10, good.as_bytes());
    let secret = home.path(&format!("{}.jsonl", other(10)));
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o000)).unwrap();
    let may_read_anything = fs::read(&secret).is_ok();
    // Endless nesting.
    write(
        11,
        format!("{good}\n{{\"type\":\"user\",\"a\":{}\n", "[".repeat(1 << 20)).as_bytes(),
    );

    for history in [home.history(), home.without_index()] {
        let sessions = history.all_sessions(Page::first(50)).unwrap().sessions;
        let mut ids: Vec<&str> = sessions.iter().map(|session| session.id.as_str()).collect();
        ids.sort_unstable();
        let mut expected: Vec<String> = [1, 2, 3, 4, 11].map(other).into();
        if may_read_anything {
            // As root.
            expected.insert(4, other(10));
        }
        expected.push(ID.to_owned());
        assert_eq!(ids, expected);
        let damaged = |number: u32| {
            let session = history
                .session(&SessionId::parse(&other(number)).unwrap())
                .unwrap();
            (session.message_count, session.damaged_lines)
        };
        assert_eq!([damaged(1), damaged(2), damaged(11)], [(2, 1), (1, 2), (1, 1)]);
        for session in &sessions {
            history
                .messages(&session.id, Page::last(50), Include::All)
                .unwrap();
        }
        history.update_index().unwrap();
        history.usage(&UsageQuery::default()).unwrap();
    }
    let found = home.history().search(
        &SearchQuery {
            text: "good".into(),
            ..SearchQuery::default()
        },
        Page::first(50),
    );
    assert_eq!(found.unwrap().total, 6);
}

#[test]
fn a_folder_that_vanishes_while_it_is_read_does_not_affect_others() {
    let home = Home::new();
    home.write(&format!("{ID}.jsonl"), &conversation());
    let history = home.history();
    let doomed = home.claude().join("projects/-doomed");
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                fs::create_dir_all(&doomed).unwrap();
                for number in 0..20 {
                    fs::write(
                        doomed.join(format!("s{number}.jsonl")),
                        user("u1", None, "short-lived").to_string(),
                    )
                    .unwrap();
                }
                fs::remove_dir_all(&doomed).unwrap();
            }
        });
        for _ in 0..200 {
            let projects = history.projects().unwrap().projects;
            assert!(projects.iter().any(|project| project.id.as_str() == "-p"));
            assert_eq!(history.session(&id()).unwrap().message_count, 2);
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    history.update_index().unwrap();
    let left = history.everything().unwrap();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].project, history.projects().unwrap().projects[0]);
    let page = history.sessions(&left[0].project.id, Page::first(50)).unwrap();
    assert_eq!(left[0].sessions, page.sessions);
}

#[test]
fn a_transcript_that_grows_without_a_pause_is_reported() {
    let home = Home::new();
    home.write(&format!("{ID}.jsonl"), &conversation());
    let (told, heard) = std::sync::mpsc::channel();
    let changed = move |changes| drop(told.send(changes));
    let _watch = home.without_index().watch(changed).unwrap();
    let begun = std::time::Instant::now();
    let changes = loop {
        home.append(&format!("{ID}.jsonl"), "{}\n");
        match heard.recv_timeout(std::time::Duration::from_millis(2)) {
            Ok(changes) => break changes,
            Err(_) => assert!(begun.elapsed().as_secs() < 60, "nothing was told"),
        }
    };
    let project = ProjectId::parse("-p").unwrap();
    assert_eq!(
        changes,
        [Change::Session {
            project,
            session: id()
        }]
    );
}

#[test]
fn compacted_messages_keep_their_original_order() {
    let home = Home::new();
    let mut lines = conversation();
    lines.push(user("u2", Some("a1"), "second question"));
    lines.push(assistant("a2", "u2", "second answer"));
    // Written again by a CLI that resumed: the later line counts, but the message keeps its first position.
    lines.push(user("u1", None, "first question"));
    let mut boundary = line("system", "b3", None, json!(""));
    boundary["subtype"] = json!("compact_boundary");
    boundary["logicalParentUuid"] = json!("a2");
    lines.push(boundary);
    lines.push(user("u4", Some("b3"), "summary"));
    lines.push(assistant("a4", "u4", "third answer"));
    home.write(&format!("{ID}.jsonl"), &lines);
    let page = home
        .history()
        .messages(&id(), Page::first(10), Include::Conversation)
        .unwrap();
    assert_eq!(
        texts(&page.messages),
        [
            "first question",
            "first answer",
            "second question",
            "second answer",
            "summary",
            "third answer"
        ]
    );
}

#[test]
fn entries_have_the_form_of_live_events() {
    let home = Home::new();
    let mut lines = conversation();
    lines[1]["message"]["usage"] = json!({"input_tokens": 7});
    let mut result = line(
        "user",
        "u2",
        Some("a1"),
        json!([{"type": "tool_result", "tool_use_id": "t", "content": "x"}]),
    );
    result["toolUseResult"] = json!({"filePath": "/p/a", "structuredPatch": [], "originalFile": "b"});
    lines.push(result);
    let command = "<command-name>/review</command-name>\n<command-args>the diff</command-args>";
    lines.push(user("u3", Some("u2"), command));
    let mut meta = user("u4", Some("u3"), "Caveat: written by the CLI");
    meta["isMeta"] = json!(true);
    lines.push(meta);
    let mut summary = user("u5", Some("u4"), "What was said before.");
    summary["isCompactSummary"] = json!(true);
    lines.push(summary);
    home.write(&format!("{ID}.jsonl"), &lines);

    let history = home.without_index();
    let page = history.entries(&id(), Page::first(10), Include::All).unwrap();
    let messages = history.messages(&id(), Page::first(10), Include::All).unwrap();
    assert_eq!((page.total, page.offset), (messages.total, messages.offset));
    let same: Vec<_> = messages.messages.iter().map(|message| &message.uuid).collect();
    assert_eq!(
        page.entries.iter().map(|entry| &entry.uuid).collect::<Vec<_>>(),
        same
    );

    let told: Vec<_> = page.entries.iter().map(|entry| entry.message.clone()).collect();
    let [prompt, answer, result, command, meta, summary] = told.as_slice() else {
        panic!("{told:?}")
    };
    let question = json!({"type": "user_prompt", "prompt": "first question", "promptId": "u1", "uuid": "u1"});
    assert_eq!(prompt.as_ref(), Some(&question));
    let answer = answer.as_ref().unwrap();
    assert_eq!(
        (
            &answer["type"],
            &answer["message"]["usage"]["input_tokens"],
            &answer["message"]["content"][0]["text"]
        ),
        (&json!("assistant"), &json!(7), &json!("first answer"))
    );
    let result = result.as_ref().unwrap();
    assert_eq!(
        (&result["type"], &result["tool_use_result"]["originalFile"]),
        (&json!("user"), &json!("b"))
    );
    assert_eq!(command.as_ref().unwrap()["prompt"], "/review the diff");
    assert_eq!(meta, &None);
    let summary = summary.as_ref().unwrap();
    assert_eq!(
        (&summary["subtype"], &summary["summary"]),
        (&json!("compact_boundary"), &json!("What was said before."))
    );
    // What a reader of live messages makes of them.
    for message in told.iter().flatten() {
        let text = message.to_string();
        assert!(tiller_message::Message::parse(&text).is_ok(), "{text}");
    }
}
