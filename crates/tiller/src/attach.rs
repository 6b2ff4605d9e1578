//! `tiller attach`: a session in the terminal.

use std::collections::VecDeque;
use std::io::{BufRead, IsTerminal, Write};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tiller_message::visible;
use tokio::sync::mpsc;

use crate::cli::ServeArgs;
use crate::client::Client;
use crate::log;
use crate::render::{Renderer, plain, request as rendered, suggestions};
use crate::serve::Ending;

/// How many recent messages are shown.
const RECENT: u32 = 200;

pub(crate) async fn run(args: &ServeArgs, wanted: &str) -> anyhow::Result<()> {
    log::start("warn", log::Format::Text);
    let mut ending = Ending::listen()?;
    let mut client = Client::connect(args).await?;
    let followed = follow(&mut client, &mut ending, wanted).await;
    client.close().await;
    followed
}

async fn follow(client: &mut Client, ending: &mut Ending, wanted: &str) -> anyhow::Result<()> {
    let session = client.session_like(wanted).await?;
    let id = session["id"].clone();
    let title = session["title"].as_str().unwrap_or_default();
    eprintln!(
        "{} in {}. Type a message and press Enter; Ctrl-C stops the turn, Ctrl-D leaves.",
        plain(title),
        plain(session["cwd"].as_str().unwrap_or_default())
    );
    client
        .send("session.history", json!({ "sessionId": id, "limit": RECENT }))
        .await?;
    let history = client.until("session.history").await?;
    let mut renderer = Renderer::default();
    for (place, message) in history["messages"].as_array().into_iter().flatten().enumerate() {
        let event = match history["kinds"][place].as_str() {
            Some("user_prompt") => json!({ "type": "stream.user_prompt", "payload": message }),
            _ => json!({ "type": "stream.message", "payload": { "message": message } }),
        };
        show(&mut renderer, &event)?;
    }
    let mut running = history["status"] == "running";
    let mut asking = Asking::new(Terminal::open(true));
    for request in history["pending"].as_array().into_iter().flatten() {
        asking.ask(request);
    }
    client
        .send(
            "session.subscribe",
            json!({ "sessionId": id, "afterSeq": history["lastSeq"] }),
        )
        .await?;
    loop {
        tokio::select! {
            event = client.next() => {
                let event = event?;
                let payload = &event["payload"];
                if event["type"] == "runner.error" {
                    eprintln!("! {}", plain(payload["message"].as_str().unwrap_or_default()));
                }
                if payload["sessionId"] != id {
                    continue;
                }
                show(&mut renderer, &event)?;
                match event["type"].as_str() {
                    Some("session.status") => {
                        running = payload["status"] == "running";
                        if payload["status"] == "idle" {
                            eprintln!("{}  stopped", renderer.line_end());
                        }
                    }
                    Some("session.queue") => {
                        let waiting = payload["prompts"].as_array().map_or(0, Vec::len);
                        eprintln!("  {waiting} queued until the turn ends");
                    }
                    Some("permission.request") => asking.ask(payload),
                    Some("permission.resolved") => asking.forget(payload),
                    Some("session.deleted") => {
                        eprintln!("The session was deleted.");
                        return Ok(());
                    }
                    _ => {}
                }
            }
            line = asking.line() => {
                let Some(line) = line else { return Ok(()) };
                if asking.asks() {
                    if let Some((request, result)) = asking.answered(Some(line)) {
                        let answer = json!({
                            "sessionId": id, "requestId": request["requestId"], "shown": request["shown"], "result": result,
                        });
                        client.send("permission.response", answer).await?;
                    }
                } else if !line.trim().is_empty() {
                    client.send("session.continue", json!({ "sessionId": id, "prompt": line })).await?;
                }
            }
            _ = ending.asked() => {
                if !running {
                    return Ok(());
                }
                client.send("session.stop", json!({ "sessionId": id })).await?;
            }
        }
    }
}

fn show(renderer: &mut Renderer, event: &Value) -> std::io::Result<()> {
    let screen = renderer.event(event);
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(screen.words.as_bytes())?;
    stdout.flush()?;
    eprint!("{}", screen.notes);
    Ok(())
}

/// A typed line, and when it was typed.
struct Typed {
    line: String,
    at: Instant,
}

/// Typed lines, read by a thread: a read from a terminal can't be cancelled.
pub(crate) struct Terminal {
    lines: Option<mpsc::Receiver<Typed>>,
    /// The input is a terminal.
    is_person: bool,
}

impl Terminal {
    /// `listens`: whether anything is read at all.
    pub(crate) fn open(listens: bool) -> Self {
        let is_person = std::io::stdin().is_terminal();
        if !listens {
            return Self {
                lines: None,
                is_person,
            };
        }
        let (lines, typed) = mpsc::channel(16);
        // Ends with the program or with the input.
        std::thread::spawn(move || {
            for line in std::io::stdin().lock().lines() {
                let Ok(line) = line else { return };
                let at = Instant::now();
                if lines.blocking_send(Typed { line, at }).is_err() {
                    return;
                }
            }
        });
        Self {
            lines: Some(typed),
            is_person,
        }
    }
}

/// How long a question must have been on the screen before a typed line counts as its answer: an earlier line was meant
/// for something else.
const READING_TIME: Duration = Duration::from_millis(500);

/// The decisions that wait for an answer at the terminal, asked one after the other.
pub(crate) struct Asking {
    terminal: Terminal,
    waiting: VecDeque<Open>,
    /// When the first of them was shown.
    shown_at: Instant,
}

struct Open {
    request: Value,
    /// For a call with questions: the remaining ones, and the answers so far.
    questions: VecDeque<Value>,
    answers: serde_json::Map<String, Value>,
}

impl Asking {
    pub(crate) fn new(terminal: Terminal) -> Self {
        Self {
            terminal,
            waiting: VecDeque::new(),
            shown_at: Instant::now(),
        }
    }

    /// The next line; `None` at the end of the input. Waits forever if nothing is read.
    pub(crate) async fn line(&mut self) -> Option<String> {
        loop {
            let typed = match &mut self.terminal.lines {
                Some(lines) => lines.recv().await?,
                None => std::future::pending().await,
            };
            let is_early = typed.at < self.shown_at + READING_TIME;
            if !(self.asks() && self.terminal.is_person && is_early) {
                return Some(typed.line);
            }
            eprintln!("Ignored: this was typed before the question was shown.");
            self.prompt();
        }
    }

    pub(crate) fn asks(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub(crate) fn ask(&mut self, request: &Value) {
        let is_question = request["toolName"] == tiller_message::ASK_TOOL;
        let questions = request["input"]["questions"].as_array().filter(|_| is_question);
        self.waiting.push_back(Open {
            request: request.clone(),
            questions: questions.cloned().unwrap_or_default().into(),
            answers: serde_json::Map::new(),
        });
        if self.waiting.len() == 1 {
            self.put();
        }
    }

    /// Another client has answered, or the request was withdrawn.
    pub(crate) fn forget(&mut self, resolved: &Value) {
        let first = self.waiting.front().map(|open| open.request["requestId"].clone());
        self.waiting
            .retain(|open| open.request["requestId"] != resolved["requestId"]);
        if first.is_some_and(|first| first == resolved["requestId"]) {
            self.put();
        }
    }

    /// Shows the first request in full.
    fn put(&mut self) {
        let Some(open) = self.waiting.front() else { return };
        if open.questions.is_empty() {
            eprint!("{}", rendered(&open.request));
        }
        self.shown_at = Instant::now();
        self.prompt();
    }

    /// Asks for an answer to the request on the screen.
    fn prompt(&self) {
        let Some(open) = self.waiting.front() else { return };
        let Some(question) = open.questions.front() else {
            let always = match suggestions(&open.request).len() {
                0 => "",
                1 => " [a]lways,",
                _ => " [a]lways (all, or some: a 1,2),",
            };
            eprint!("Allow? [y]es,{always} [n]o, or a reason to deny: ");
            return;
        };
        eprintln!("{}", visible(question["question"].as_str().unwrap_or_default()));
        let options = question["options"].as_array().into_iter().flatten();
        for (number, option) in (1..).zip(options) {
            let text = |field: &str| visible(option[field].as_str().unwrap_or_default());
            eprintln!("  {number}  {}  {}", text("label"), text("description"));
        }
        let several = if question["multiSelect"] == true {
            " (several with commas)"
        } else {
            ""
        };
        eprint!("A number{several}, or your own answer: ");
    }

    /// What a line means for the request on the screen. Returns the request and its answer once it is complete.
    pub(crate) fn answered(&mut self, line: Option<String>) -> Option<(Value, Value)> {
        // The end of the input denies everything: nobody is there.
        let line = line.unwrap_or_else(|| "n".to_owned());
        let open = self.waiting.front_mut()?;
        let answer = if let Some(question) = open.questions.front() {
            if line.trim().is_empty() {
                self.put();
                return None;
            }
            let text = question["question"].as_str().unwrap_or_default().to_owned();
            open.answers.insert(text, chosen(question, &line).into());
            open.questions.pop_front();
            if !open.questions.is_empty() {
                self.put();
                return None;
            }
            let mut input = open.request["input"].clone();
            input["answers"] = Value::Object(std::mem::take(&mut open.answers));
            json!({ "behavior": "allow", "updatedInput": input })
        } else {
            match line.trim() {
                "" => {
                    self.put();
                    return None;
                }
                "y" | "yes" | "是" => json!({ "behavior": "allow" }),
                line if is_always(line) => {
                    let Some(kept) = kept(&open.request, line) else {
                        eprintln!("There is no rule with that number.");
                        self.prompt();
                        return None;
                    };
                    json!({ "behavior": "allow", "updatedPermissions": kept })
                }
                "n" | "no" | "否" => json!({ "behavior": "deny" }),
                reason => json!({ "behavior": "deny", "message": reason }),
            }
        };
        let open = self.waiting.pop_front()?;
        self.put();
        Some((open.request, answer))
    }
}

/// `a`, `always`, or `a 1,3`; not a reason that begins with this letter.
fn is_always(line: &str) -> bool {
    let is_number = |character: char| character.is_ascii_digit() || matches!(character, ',' | ' ');
    let numbers = line.strip_prefix("a ");
    matches!(line, "a" | "always") || numbers.is_some_and(|numbers| numbers.chars().all(is_number))
}

/// The suggestions that a line chooses: all (`a`), or those with these numbers (`a 1,3`). `None` if none matches.
fn kept(request: &Value, line: &str) -> Option<Vec<Value>> {
    let offered = suggestions(request);
    let numbers = line.strip_prefix("a ").unwrap_or_default().trim();
    if numbers.is_empty() {
        return (!offered.is_empty()).then(|| offered.to_vec());
    }
    let chosen = |number: &str| {
        let number: usize = number.trim().parse().ok()?;
        offered.get(number.checked_sub(1)?).cloned()
    };
    numbers.split(',').map(chosen).collect()
}

/// Replaces numbers by their labels.
fn chosen(question: &Value, line: &str) -> String {
    let label = |part: &str| {
        let number: usize = part.trim().parse().ok()?;
        let option = &question["options"][number.checked_sub(1)?];
        option["label"].as_str().map(str::to_owned)
    };
    let labels: Option<Vec<String>> = line.split(',').map(label).collect();
    labels.map_or_else(|| line.trim().to_owned(), |labels| labels.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asking(request: Value) -> Asking {
        let mut asking = Asking::new(Terminal::open(false));
        asking.ask(&request);
        asking
    }

    fn answer(request: Value, lines: &[&str]) -> Option<Value> {
        let mut asking = asking(request);
        let mut answers = lines
            .iter()
            .filter_map(|line| asking.answered(Some((*line).to_owned())));
        answers.next().map(|(_, answer)| answer)
    }

    #[test]
    fn a_permission_is_answered_with_a_letter_or_a_reason() {
        let request = || json!({ "requestId": "r", "toolName": "Bash", "input": {}, "suggestions": [{ "type": "addRules" }] });
        assert_eq!(answer(request(), &["y"]), Some(json!({ "behavior": "allow" })));
        assert_eq!(
            answer(request(), &["", "a"]),
            Some(json!({ "behavior": "allow", "updatedPermissions": [{ "type": "addRules" }] }))
        );
        assert_eq!(answer(request(), &["n"]), Some(json!({ "behavior": "deny" })));
        assert_eq!(
            answer(request(), &["not there"]),
            Some(json!({ "behavior": "deny", "message": "not there" }))
        );
    }

    #[test]
    fn always_keeps_the_rules_that_are_chosen_among_those_on_the_screen() {
        let request =
            |rules: Value| json!({ "requestId": "r", "toolName": "Bash", "input": {}, "suggestions": rules });
        let kept = |rules: Value, line: &str| {
            answer(request(rules), &[line]).map(|answer| answer["updatedPermissions"].clone())
        };
        assert_eq!(kept(json!([1, 2, 3]), "always"), Some(json!([1, 2, 3])));
        assert_eq!(kept(json!([1, 2, 3]), "a 3, 1"), Some(json!([3, 1])));
        assert_eq!(kept(json!([1]), "a 2"), None);
        assert_eq!(kept(json!([]), "a"), None);
    }

    #[tokio::test]
    async fn a_line_typed_before_the_question_was_shown_does_not_answer_it() {
        let (typing, lines) = mpsc::channel(4);
        let mut asking = Asking::new(Terminal {
            lines: Some(lines),
            is_person: true,
        });
        asking.ask(&json!({ "requestId": "r", "toolName": "Bash" }));
        let typed = |line: &str, at: Instant| Typed {
            line: line.to_owned(),
            at,
        };
        typing.send(typed("y", asking.shown_at)).await.ok();
        let late = asking.shown_at + READING_TIME;
        typing.send(typed("no", late)).await.ok();
        assert_eq!(asking.line().await.as_deref(), Some("no"));
    }

    #[test]
    fn questions_are_answered_by_number_or_in_words() {
        let options = json!([{ "label": "Red" }, { "label": "Blue" }]);
        let questions = json!([
            { "question": "Which?", "options": options, "multiSelect": true },
            { "question": "Why?", "options": options },
        ]);
        let request =
            json!({ "requestId": "r", "toolName": "AskUserQuestion", "input": { "questions": questions } });
        let answer = answer(request, &["2, 1", "I like it"]).unwrap();
        assert_eq!(
            answer["updatedInput"]["answers"],
            json!({ "Which?": "Blue, Red", "Why?": "I like it" })
        );
    }

    #[test]
    fn a_request_that_another_client_answered_is_dropped() {
        let mut asking = asking(json!({ "requestId": "r", "toolName": "Bash" }));
        asking.forget(&json!({ "requestId": "r" }));
        assert!(!asking.asks());
    }
}
