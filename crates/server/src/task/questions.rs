//! The agent's questions to the user: several in one call, answered one by one.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tiller_core::{CommandError, DecisionAnswer, DecisionRequest, RawJson, RequestId, SessionId, Sessions};

use crate::error::ApiError;

/// The tool with which the agent asks.
pub(super) fn is_question(asked: &DecisionRequest) -> bool {
    asked.tool_name == tiller_message::ASK_TOOL
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Question {
    #[serde(rename = "question")]
    pub(super) text: String,
    pub(super) header: String,
    pub(super) options: Vec<Choice>,
    #[serde(rename = "multiSelect")]
    pub(super) multi_select: bool,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct Choice {
    label: String,
    description: String,
}

/// The questions of one call.
pub(super) struct Questions {
    request: RequestId,
    list: Vec<Question>,
}

impl Questions {
    pub(super) fn of(asked: &DecisionRequest) -> Self {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Input {
            questions: Vec<Question>,
        }
        let input: Input = serde_json::from_str(asked.input.as_str()).unwrap_or_default();
        Self {
            request: asked.id,
            list: input.questions,
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (String, &Question)> {
        let ids = (0..).map(|index| question_id(self.request, index));
        ids.zip(&self.list)
    }
}

fn question_id(request: RequestId, index: usize) -> String {
    format!("{request}-{index}")
}

/// The call and the index of the question in it.
pub(super) fn parse_question_id(id: &str) -> Option<(RequestId, usize)> {
    let (request, index) = id.rsplit_once('-')?;
    let parsed = (request.parse().ok()?, index.parse().ok()?);
    // Only the id exactly as it was issued names the question.
    (question_id(parsed.0, parsed.1) == id).then_some(parsed)
}

/// The answer to one question; `None`: the user cancelled it.
pub(super) type Said = Option<String>;

/// The key of notes with answers to calls that have more questions.
const ANSWERS: &str = "task.answer.";

fn note_key(request: RequestId, index: usize) -> String {
    format!("{ANSWERS}{}", question_id(request, index))
}

/// The outcome of an answer.
pub(super) enum Noted {
    /// More questions are open; this is the answer to this one.
    More(Said),
    /// All questions are answered: the answer to the call.
    All(DecisionAnswer),
}

/// Answers to calls with open questions.
#[derive(Default)]
pub(super) struct PartialAnswers {
    /// Held for look-ups only.
    said: Mutex<HashMap<RequestId, BTreeMap<usize, Said>>>,
}

/// How many calls with open questions are remembered. Each waits for a person, so there are never many.
const OPEN_CALLS: usize = 4096;

impl PartialAnswers {
    /// Notes an answer; with the last one of a call, returns the answer to the call. Notes are kept until
    /// [`Self::forget`], so that a call whose answer could not be delivered can be answered again.
    pub(super) fn note(
        &self,
        asked: &DecisionRequest,
        index: usize,
        answer: &Value,
    ) -> Result<Noted, ApiError> {
        let questions = Questions::of(asked);
        let question = questions.list.get(index).ok_or(ApiError::QuestionNotFound)?;
        let said = said(question, answer)?;
        let mut all = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= OPEN_CALLS {
            all.clear();
        }
        let answers = all.entry(asked.id).or_default();
        if answers.contains_key(&index) && answers.len() < questions.list.len() {
            return Err(ApiError::QuestionNotFound);
        }
        answers.insert(index, said);
        if answers.len() < questions.list.len() {
            let said = answers.get(&index).cloned().flatten();
            return Ok(Noted::More(said));
        }
        answer_to_call(asked, &questions, answers).map(Noted::All)
    }

    /// Removes an answer that could not be stored.
    fn take_back(&self, request: RequestId, index: usize) {
        let mut all = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(answers) = all.get_mut(&request) {
            answers.remove(&index);
        }
    }

    /// Stores an answer for the next server, which may get the remaining answers.
    pub(super) async fn keep(
        &self,
        sessions: &Sessions,
        session: SessionId,
        (request, index): (RequestId, usize),
        said: Option<String>,
    ) -> Result<(), ApiError> {
        let said = RawJson::of(&said).map_err(|error| ApiError::internal(&error))?;
        let kept = sessions.note(session, &note_key(request, index), said).await;
        kept.map_err(|error| {
            self.take_back(request, index);
            error.into()
        })
    }

    /// Restores the answers that the last server stored.
    pub(super) async fn resume(&self, sessions: &Sessions) -> Result<(), CommandError> {
        let notes = sessions.notes(ANSWERS).await?;
        let mut all = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, key, said) in notes {
            let question = key.strip_prefix(ANSWERS).and_then(parse_question_id);
            if let (Some((request, index)), Ok(said)) = (question, serde_json::from_str(said.as_str())) {
                all.entry(request).or_default().insert(index, said);
            }
        }
        Ok(())
    }

    /// Forgets a call that is over.
    pub(super) async fn forget(&self, sessions: &Sessions, session: SessionId, request: RequestId) {
        let answers = {
            let mut all = self.said.lock().unwrap_or_else(PoisonError::into_inner);
            all.remove(&request)
        };
        for index in answers.into_iter().flat_map(BTreeMap::into_keys) {
            if let Err(error) = sessions.erase_notes(session, &note_key(request, index)).await {
                tracing::debug!(%error, "can't delete a stored answer");
            }
        }
    }
}

/// A label, a list of labels, or free text; `null` cancels.
fn said(question: &Question, answer: &Value) -> Result<Said, ApiError> {
    let text = |value: &Value| {
        value
            .as_str()
            .map(str::trim)
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
    };
    match answer {
        Value::Null => Ok(None),
        Value::String(_) => text(answer).map(Some).ok_or(ApiError::InvalidAnswer),
        Value::Array(labels) if labels.len() == 1 || (question.multi_select && !labels.is_empty()) => {
            let labels: Option<Vec<String>> = labels.iter().map(text).collect();
            // Joined with commas, as the agent expects.
            labels
                .map(|labels| Some(labels.join(", ")))
                .ok_or(ApiError::InvalidAnswer)
        }
        _ => Err(ApiError::InvalidAnswer),
    }
}

fn answer_to_call(
    asked: &DecisionRequest,
    questions: &Questions,
    said: &BTreeMap<usize, Said>,
) -> Result<DecisionAnswer, ApiError> {
    let pairs = questions.list.iter().zip(said.values());
    let answers: BTreeMap<&str, &str> = pairs
        .filter_map(|(question, said)| Some((question.text.as_str(), said.as_deref()?)))
        .collect();
    if answers.is_empty() {
        return Ok(DecisionAnswer::Deny {
            message: Some(
                "The user declined to answer. Continue without an answer, or stop here.".to_owned(),
            ),
            interrupt: false,
        });
    }
    let mut input: Value =
        serde_json::from_str(asked.input.as_str()).map_err(|error| ApiError::internal(&error))?;
    if let Some(fields) = input.as_object_mut() {
        fields.insert("answers".to_owned(), json!(answers));
    }
    let input = RawJson::of(&input).map_err(|error| ApiError::internal(&error))?;
    Ok(DecisionAnswer::Allow {
        input: Some(input),
        permissions: None,
    })
}
