//! The tour of the demo agent. It shows what an agent's work looks like, and never pretends to be one: it says that it
//! has no model, does only what was allowed, and reports what it did.

mod note;
mod words;

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

use super::permission::Decision;
use super::turn::{Stop, ToolCall, Turn};
use note::{Note, Plan};
use words::Words;

/// The whole tour takes 10 to 15 seconds, without the time that people take to answer.
const PAUSE_AFTER_PIECE: Duration = Duration::from_millis(40);
const PAUSE_BETWEEN_STEPS: Duration = Duration::from_millis(500);

/// The only command that the demo runs.
const LIST_COMMAND: &str = "ls";
/// A folder with thousands of files does not improve the demo.
const LISTED_LINES: usize = 40;

/// The outcome of a step, for the summary at the end.
#[derive(Clone, Debug)]
enum Outcome {
    Done(String),
    Denied,
    /// Only possible for a question.
    Unanswered,
    Failed(String),
}

/// The steps of the to-do list, in order.
const STEPS: usize = 3;

pub(crate) async fn play(turn: &mut Turn<'_>) -> Result<(), Stop> {
    let words = Words::in_language_of(&turn.prompt);
    let wants_tour = turn.earlier_prompts.is_empty() || words::asks_for_tour(&turn.prompt);
    let mut guide = Guide { turn, words };
    if wants_tour {
        guide.tour().await
    } else {
        guide.follow_up().await
    }
}

/// A turn, in the style of the tour.
struct Guide<'a, 'b> {
    turn: &'a mut Turn<'b>,
    words: &'static Words,
}

impl Guide<'_, '_> {
    async fn tour(&mut self) -> Result<(), Stop> {
        let words = self.words;
        self.think(words.first_thought).await;
        self.say(words.introduction).await;
        let planning = self.turn.session.state().permission_mode == "plan";
        if planning && !self.plan().await? {
            self.say(words.plan_denied).await;
            return Ok(());
        }
        self.todos(0).await;

        self.say(words.before_listing).await;
        let listed = self.list_folder().await?;
        if matches!(listed, Outcome::Denied) {
            self.say(words.listing_denied).await;
        }
        self.todos(1).await;

        self.say(words.before_note).await;
        let noted = self.write_note(words.note_first).await?;
        self.comment_on_note(&noted).await;
        self.todos(2).await;

        let answered = self.question().await?;
        self.todos(STEPS).await;
        self.close(&[listed, noted, answered]).await;
        Ok(())
    }

    /// A later prompt: shows that the session remembers, and what an edit of a file looks like.
    async fn follow_up(&mut self) -> Result<(), Stop> {
        let words = self.words;
        let earlier = &self.turn.earlier_prompts;
        let count = (earlier.len() + 1).to_string();
        let first = earlier.first().map_or_else(String::new, |p| shortened(p));
        let text = words
            .follow_up
            .replace("{count}", &count)
            .replace("{first}", &first)
            .replace("{prompt}", &shortened(&self.turn.prompt));
        self.think(words.later_thought).await;
        self.say(&text).await;
        if Note::of(self.turn.session).exists() {
            self.say(words.before_edit).await;
            let noted = self.write_note(words.note_later).await?;
            self.comment_on_note(&noted).await;
        }
        self.say(words.later_end).await;
        Ok(())
    }

    /// In plan mode nothing is done before the plan is approved. Returns whether it was.
    async fn plan(&mut self) -> Result<bool, Stop> {
        let plan = self.words.plan;
        let call = self.turn.tool_use("ExitPlanMode", json!({"plan": plan})).await;
        if let Decision::Deny = self.turn.permission(&call, Value::Null).await? {
            return Ok(false);
        }
        self.turn
            .tool_result(&call, "The user approved the plan.", false, json!({"plan": plan}))
            .await;
        // The answer may have already chosen another mode.
        if self.turn.session.state().permission_mode == "plan" {
            self.turn.session.set_permission_mode("default").await;
        }
        Ok(true)
    }

    /// Really runs `ls` in the session's folder, if allowed.
    async fn list_folder(&mut self) -> Result<Outcome, Stop> {
        let call = self
            .turn
            .tool_use(
                "Bash",
                json!({"command": LIST_COMMAND, "description": self.words.listing_description}),
            )
            .await;
        let suggestions = json!([{
            "type": "addRules", "rules": [{"toolName": "Bash", "ruleContent": LIST_COMMAND}],
            "behavior": "allow", "destination": "session",
        }]);
        let input = match self.turn.permission(&call, suggestions).await? {
            Decision::Allow { input } => input,
            Decision::Deny => return Ok(Outcome::Denied),
        };
        if input["command"] != LIST_COMMAND {
            let why = self.words.only_listing.to_owned();
            return Ok(self.fail(&call, why).await);
        }
        let cwd = self.turn.session.state().transcript.cwd().to_owned();
        let output = tokio::process::Command::new(LIST_COMMAND)
            .current_dir(cwd)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await;
        let output = match output {
            Ok(output) => output,
            Err(error) => return Ok(self.fail(&call, error.to_string()).await),
        };
        let names = String::from_utf8_lossy(&output.stdout);
        let count = names.lines().count();
        let mut stdout: Vec<&str> = names.lines().take(LISTED_LINES).collect();
        if count > LISTED_LINES {
            stdout.push("…");
        }
        let stdout = stdout.join("\n");
        let stderr = String::from_utf8_lossy(&output.stderr);
        let structured = json!({
            "stdout": stdout, "stderr": stderr, "interrupted": false, "isImage": false,
            "noOutputExpected": false,
        });
        let content = if stdout.is_empty() { &*stderr } else { &stdout };
        self.turn
            .tool_result(&call, content, !output.status.success(), structured)
            .await;
        let done = self.words.listed.replace("{count}", &count.to_string());
        Ok(Outcome::Done(done))
    }

    /// Writes the note, or adds a line to it, if allowed.
    async fn write_note(&mut self, label: &str) -> Result<Outcome, Stop> {
        let note = Note::of(self.turn.session);
        let line = format!("- {label}: {}", shortened(&self.turn.prompt));
        let plan = match note.plan(self.words.note_body, &line) {
            Ok(plan) => plan,
            Err(why) => return Ok(Outcome::Failed(why)),
        };
        let (name, input) = match &plan {
            Plan::Create { content } => ("Write", json!({"file_path": note.path(), "content": content})),
            Plan::Append { old, new, .. } => (
                "Edit",
                json!({
                    "file_path": note.path(), "old_string": old, "new_string": new, "replace_all": false,
                }),
            ),
        };
        let call = self.turn.tool_use(name, input).await;
        let suggestions = json!([{"type": "setMode", "mode": "acceptEdits", "destination": "session"}]);
        let allowed = match self.turn.permission(&call, suggestions).await? {
            Decision::Allow { input } => input,
            Decision::Deny => return Ok(Outcome::Denied),
        };
        if allowed["file_path"] != call.input["file_path"] {
            let why = self.words.only_note.to_owned();
            return Ok(self.fail(&call, why).await);
        }
        match note.carry_out(&plan, &allowed) {
            Ok(structured) => {
                let content = match plan {
                    Plan::Create { .. } => {
                        format!("File created successfully at: {}", note.path().display())
                    }
                    Plan::Append { .. } => {
                        format!("The file {} has been updated.", note.path().display())
                    }
                };
                self.turn.tool_result(&call, &content, false, structured).await;
                Ok(Outcome::Done(self.words.noted.to_owned()))
            }
            Err(why) => Ok(self.fail(&call, why).await),
        }
    }

    async fn comment_on_note(&mut self, noted: &Outcome) {
        match noted {
            Outcome::Done(_) | Outcome::Unanswered => {}
            Outcome::Denied => self.say(self.words.note_denied).await,
            Outcome::Failed(why) => {
                let text = self.words.note_failed.replace("{why}", why);
                self.say(&text).await;
            }
        }
    }

    async fn question(&mut self) -> Result<Outcome, Stop> {
        let words = self.words;
        let options: Vec<Value> = words
            .options
            .iter()
            .map(|(label, description)| json!({"label": label, "description": description}))
            .collect();
        let call = self
            .turn
            .tool_use(
                "AskUserQuestion",
                json!({"questions": [{
                    "question": words.question, "header": words.question_header,
                    "options": options, "multiSelect": false,
                }]}),
            )
            .await;
        let input = match self.turn.permission(&call, Value::Null).await? {
            Decision::Allow { input } => input,
            Decision::Deny => return Ok(Outcome::Unanswered),
        };
        let answer = match &input["answers"][words.question] {
            Value::String(answer) => answer.clone(),
            Value::Null => {
                self.fail(&call, words.unanswered.to_owned()).await;
                return Ok(Outcome::Unanswered);
            }
            other => other.to_string(),
        };
        let content = format!("The user answered: {:?} = {answer:?}.", words.question);
        let structured = json!({"questions": input["questions"], "answers": input["answers"]});
        self.turn.tool_result(&call, &content, false, structured).await;
        Ok(Outcome::Done(answer))
    }

    /// The end of the tour, in the form that the user chose.
    async fn close(&mut self, outcomes: &[Outcome; STEPS]) {
        let words = self.words;
        let rows: Vec<String> = words
            .todos
            .iter()
            .zip(outcomes)
            .map(|((step, _), outcome)| {
                let what = match outcome {
                    Outcome::Done(what) => in_a_cell(what),
                    Outcome::Denied => words.denied.to_owned(),
                    Outcome::Unanswered => words.unanswered.to_owned(),
                    Outcome::Failed(why) => in_a_cell(&words.failed.replace("{why}", why)),
                };
                format!("| {step} | {what} |\n")
            })
            .collect();
        let table = format!("{}{}", words.table_head, rows.concat());
        let chosen = match &outcomes[2] {
            Outcome::Done(answer) => words.options.iter().position(|(label, _)| label == answer),
            Outcome::Denied | Outcome::Unanswered | Outcome::Failed(_) => None,
        };
        let middle = match chosen {
            Some(0) => table,
            Some(1) => words.code.to_owned(),
            _ => format!("{table}\n{}", words.code),
        };
        self.say(&format!("{}\n\n{middle}\n{}", words.closing, words.farewell))
            .await;
    }

    /// The to-do list with the first `done` steps ticked off.
    async fn todos(&mut self, done: usize) {
        let list = |done: usize| -> Value {
            self.words
                .todos
                .iter()
                .enumerate()
                .map(|(index, (content, active))| {
                    let status = match index.cmp(&done) {
                        std::cmp::Ordering::Less => "completed",
                        std::cmp::Ordering::Equal => "in_progress",
                        std::cmp::Ordering::Greater => "pending",
                    };
                    json!({"content": content, "status": status, "activeForm": active})
                })
                .collect()
        };
        let old = match done {
            0 => json!([]),
            _ => list(done - 1),
        };
        let new = list(done);
        let call = self.turn.tool_use("TodoWrite", json!({"todos": new})).await;
        let structured = json!({"oldTodos": old, "newTodos": new});
        self.turn
            .tool_result(&call, "The to-do list was updated.", false, structured)
            .await;
        self.wait(PAUSE_BETWEEN_STEPS).await;
    }

    async fn fail(&mut self, call: &ToolCall, why: String) -> Outcome {
        let structured = Value::from(format!("Error: {why}"));
        self.turn.tool_result(call, &why, true, structured).await;
        Outcome::Failed(why)
    }

    async fn think(&mut self, thought: &str) {
        let pause = self.paced(PAUSE_AFTER_PIECE);
        self.turn.thinking(&pieces(thought), pause).await;
    }

    async fn say(&mut self, text: &str) {
        let pause = self.paced(PAUSE_AFTER_PIECE);
        self.turn.text(text, &pieces(text), pause).await;
    }

    async fn wait(&self, pause: Duration) {
        let pause = self.paced(pause);
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
    }

    fn paced(&self, pause: Duration) -> Duration {
        // With a factor too small for a finite pause, it is as slow as possible.
        Duration::try_from_secs_f64(pause.as_secs_f64() / self.turn.session.options.speed)
            .unwrap_or(Duration::MAX)
    }
}

/// Splits a text as a model would stream it: word by word, and Chinese by a few characters.
fn pieces(text: &str) -> Vec<String> {
    const CHARACTERS_WITHOUT_SPACE: usize = 2;
    let mut pieces = Vec::new();
    let mut piece = String::new();
    let mut wide = 0;
    for character in text.chars() {
        piece.push(character);
        wide += usize::from(words::is_cjk(character));
        if character.is_whitespace() || wide == CHARACTERS_WITHOUT_SPACE {
            pieces.push(std::mem::take(&mut piece));
            wide = 0;
        }
    }
    if !piece.is_empty() {
        pieces.push(piece);
    }
    pieces
}

/// A prompt as one short line.
fn shortened(prompt: &str) -> String {
    const LONGEST: usize = 60;
    let line = prompt.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= LONGEST {
        return line;
    }
    let start: String = line.chars().take(LONGEST).collect();
    format!("{start}…")
}

/// Escapes a text for a Markdown table.
fn in_a_cell(text: &str) -> String {
    shortened(text).replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_add_up_to_the_text_and_are_short() {
        for text in ["Two words", "# 你好，世界\n\n- 一二三四五六七八", ""] {
            let pieces = pieces(text);
            assert_eq!(pieces.concat(), text);
            assert!(pieces.iter().all(|piece| piece.chars().count() <= 12));
        }
        assert_eq!(pieces("Two words"), ["Two ", "words"]);
    }

    #[test]
    fn a_long_prompt_is_shown_as_one_short_line() {
        assert_eq!(shortened("a\n b"), "a b");
        assert_eq!(shortened(&"x".repeat(100)).chars().count(), 61);
        assert_eq!(in_a_cell("a | b"), "a \\| b");
    }
}
