//! Which conversations are active now, and which process drives each of them.

use std::path::PathBuf;

use tiller_core::{CommandError, Driver, Sessions, Timestamp};
use tiller_history::{Session, SessionDriver};

use crate::decided::DecidedCall;
use crate::error::ApiError;

/// Where processes can't be inspected, a conversation counts as active for this long after its last message.
const LATELY_MS: i64 = 90_000;

/// Sets `live` and `driver` of each conversation that is not one of our own sessions. Those that are have the title that
/// a person gave them here.
pub(super) async fn note<'a>(sessions: &Sessions, listed: impl IntoIterator<Item = &'a mut Session>) {
    let mut others: Vec<&mut Session> = listed.into_iter().collect();
    let ids = others.iter().map(|session| session.id.as_str().to_owned());
    match sessions.known_conversations(ids.collect()).await {
        Ok(ours) => others.retain_mut(|session| match ours.get(session.id.as_str()) {
            Some(known) => {
                if let Some(title) = &known.title {
                    session.title = title.as_str().into();
                }
                false
            }
            None => true,
        }),
        Err(error) => {
            tracing::error!(%error, "can't tell which conversations are sessions here");
            return;
        }
    }
    let asked = others.iter().map(|session| conversation(session)).collect();
    let drivers = sessions.drivers(asked).await;
    let now = Timestamp::now().0;
    for session in &mut others {
        match &drivers {
            Some(drivers) => {
                session.driver = drivers.get(session.id.as_str()).map(described);
                session.live = session.driver.is_some();
            }
            None => session.live = is_recent(session.last_active_ms(), now),
        }
    }
}

/// How permissions were decided in a conversation that is a session here: its transcript does not say.
pub(super) async fn decided(sessions: &Sessions, session: &Session) -> Vec<DecidedCall> {
    let id = session.id.as_str();
    let decided = async {
        let known = sessions.known_conversations(vec![id.to_owned()]).await?;
        match known.get(id) {
            Some(known) => sessions.decided(known.session).await,
            None => Ok(Vec::new()),
        }
    };
    match decided.await {
        Ok(decided) => decided.into_iter().map(DecidedCall::from).collect(),
        Err(error) => {
            tracing::error!(%error, "can't tell how permissions were decided");
            Vec::new()
        }
    }
}

/// Ends the process that uses a conversation, if there is one.
pub(super) async fn take_over(sessions: &Sessions, session: &Session) -> Result<(), ApiError> {
    let drivers = sessions.drivers(vec![conversation(session)]).await;
    let driver = drivers.and_then(|mut drivers| drivers.remove(session.id.as_str()));
    let Some(driver) = driver else { return Ok(()) };
    sessions.end_driver(driver).await.map_err(|error| match error {
        CommandError::Takeover(cause) => ApiError::internal(&cause),
        other => other.into(),
    })
}

fn conversation(session: &Session) -> (String, PathBuf) {
    (
        session.id.as_str().to_owned(),
        session.project_path.as_str().into(),
    )
}

fn described(driver: &Driver) -> SessionDriver {
    SessionDriver {
        pid: driver.pid,
        command: driver.command.clone(),
    }
}

/// A time in the future does not count: a clock may be wrong.
fn is_recent(time: Option<i64>, now: i64) -> bool {
    time.is_some_and(|time| (0..LATELY_MS).contains(&(now - time)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_just_written_is_recent() {
        let now = 1_800_000_000_000;
        for (time, expected) in [
            (Some(now), true),
            (Some(now - 60_000), true),
            (Some(now - 120_000), false),
            (Some(now + 60_000), false),
            (None, false),
        ] {
            assert_eq!(is_recent(time, now), expected, "{time:?}");
        }
    }
}
