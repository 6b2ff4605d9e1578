//! The totals of a session: each event is counted when it is recorded, and log and totals are stored together, so that
//! a crash loses both or neither.

use std::sync::Arc;

use tiller_message::Summary;

use crate::event::{Event, EventBody};
use crate::session::state::SessionStatus;

/// Counts an event. Fragments of streamed messages, which are most events, cost almost nothing.
pub(crate) fn add(summary: &mut Arc<Summary>, event: &Event) {
    match &event.body {
        EventBody::Message { raw, .. } => {
            if Summary::is_counted(raw.as_str()) {
                Arc::make_mut(summary).push_json(raw.as_str(), event.at.0);
            }
        }
        EventBody::UserPrompt { .. } => Arc::make_mut(summary).turn_started(event.at.0),
        EventBody::Status(change) if change.status == SessionStatus::Running => {
            Arc::make_mut(summary).turn_started(event.at.0);
        }
        EventBody::Status(_) => Arc::make_mut(summary).turn_ended(event.at.0),
        EventBody::Unreadable(_) | EventBody::DecisionRequested(_) | EventBody::DecisionResolved { .. } => {}
    }
}

/// Whether a change of the totals is published to subscribers. Fragments of streamed messages change no totals.
pub(crate) fn changed(before: Option<&Arc<Summary>>, after: Option<&Arc<Summary>>) -> bool {
    match (before, after) {
        (Some(before), Some(after)) => !Arc::ptr_eq(before, after) && before.differs(after),
        (None, None) => false,
        (None, Some(_)) | (Some(_), None) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::StatusChange;
    use crate::ids::{SessionId, Timestamp};
    use crate::json::RawJson;

    fn counted(events: &[(i64, EventBody)]) -> tiller_message::SummaryView {
        let mut summary = Arc::default();
        let session = SessionId::random();
        for (seq, (at, body)) in events.iter().enumerate() {
            let event = Event {
                session,
                seq: seq as u64 + 1,
                at: Timestamp(*at),
                body: body.clone(),
            };
            add(&mut summary, &event);
        }
        summary.view()
    }

    fn status(status: SessionStatus) -> EventBody {
        EventBody::Status(Box::new(StatusChange {
            status,
            title: None,
            cwd: None,
            error: None,
            turn: None,
            cause: None,
        }))
    }

    fn message(json: &str) -> EventBody {
        EventBody::Message {
            raw: RawJson::parse(json).unwrap(),
            uuid: None,
        }
    }

    #[test]
    fn a_turn_counts_once_with_its_time_tokens_and_cost() {
        let end = r#"{"type":"result","subtype":"success","total_cost_usd":0.5,"usage":{"input_tokens":7,"output_tokens":2}}"#;
        let totals = counted(&[
            (1_000, status(SessionStatus::Running)),
            (
                2_000,
                message(r#"{"type":"stream_event","event":{"type":"message_stop"}}"#),
            ),
            (3_000, message(end)),
            (3_500, status(SessionStatus::Completed)),
        ]);
        let found = (
            totals.turns,
            totals.working_ms,
            totals.tokens_in,
            totals.tokens_out,
        );
        assert_eq!(found, (1, 2_000, 7, 2));
        assert!((totals.cost_usd - 0.5).abs() < f64::EPSILON);
        assert_eq!(totals.turn_began, None);
    }

    #[test]
    fn a_turn_without_a_result_ends_with_the_status() {
        let totals = counted(&[
            (1_000, status(SessionStatus::Running)),
            (4_000, status(SessionStatus::Error)),
            (5_000, message(r#"{"type":"user_prompt","x":1}"#)),
        ]);
        assert_eq!((totals.turns, totals.working_ms), (1, 3_000));
    }
}
