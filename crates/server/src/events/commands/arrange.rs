//! How the viewer has arranged their sessions: pins, groups, tags, and an order of their own.

use serde::{Deserialize, Serialize};
use tiller_core::{
    Arrange, Arranged, Arrangement, Choice, GroupId, Placement, PlacementPatch, SessionGroup, SessionId,
};
use ts_rs::TS;
use utoipa::ToSchema;

use super::session_id;
use crate::events::request::{Context, Refused, Reply};
use crate::events::settings::Change;
use crate::underway::Order;

/// Nothing is asked for beside the arrangement itself.
#[derive(Debug, Deserialize, TS, ToSchema)]
#[ts(export_to = "events.ts")]
pub struct ArrangementGet {}

/// What is absent stays as it is; `null` takes it back.
#[derive(Debug, Deserialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts", optional_fields)]
pub struct ArrangeSession {
    pub session_id: String,
    /// The place among the pinned sessions, the smallest first. `null`: not pinned.
    #[serde(default)]
    #[schema(value_type = Option<f64>)]
    pub pinned: Change<f64>,
    /// The id of a group. `null`: in none.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub group: Change<String>,
    /// The place in its group or folder in the viewer's own order, the largest first. `null`: when the session was created,
    /// in milliseconds.
    #[serde(default)]
    #[schema(value_type = Option<f64>)]
    pub place: Change<f64>,
    #[serde(default)]
    pub tags: Option<Vec<String>>,
}

/// Makes a group, or gives one another name or place.
#[derive(Debug, Deserialize, Serialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts")]
pub struct SessionGroupInfo {
    /// A UUID that the client chooses.
    pub id: String,
    pub name: String,
    /// The place among the groups, the smallest first.
    pub place: f64,
}

#[derive(Debug, Deserialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts")]
pub struct RemoveGroup {
    pub id: String,
}

#[derive(Debug, Deserialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts")]
pub struct SortSessions {
    pub sorting: Sorting,
}

/// In which order the sessions of a folder or group stand.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, TS, ToSchema)]
#[serde(rename_all = "lowercase")]
#[ts(export_to = "events.ts")]
pub enum Sorting {
    /// The last changed first.
    Activity,
    /// By their places.
    Own,
}

#[derive(Debug, Serialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts")]
pub struct ArrangementInfo {
    pub sorting: Sorting,
    pub groups: Vec<SessionGroupInfo>,
    /// The sessions for which something was chosen.
    pub sessions: Vec<PlacementInfo>,
}

/// What was chosen for one session. Without anything but the id: nothing.
#[derive(Debug, Serialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts", optional_fields)]
pub struct PlacementInfo {
    pub session_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pinned: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<f64>,
    pub tags: Vec<String>,
}

/// One of the fields.
#[derive(Debug, Default, Serialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts", optional_fields)]
pub struct ArrangementChanged {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<PlacementInfo>,
    /// A group that is new, or has another name or place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<SessionGroupInfo>,
    /// The id of a group that is gone. Its sessions are in no group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removed_group: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sorting: Option<Sorting>,
}

/// The changes of one connection take effect in the order in which they were sent, whatever sessions they name: a session
/// is put into a group that was made a moment before.
pub(in crate::events) fn in_order<P>(_: &P) -> Order {
    Order::Command(SessionId::NOBODY)
}

pub(in crate::events) async fn get(context: Context, _: ArrangementGet) -> Result<Reply, Refused> {
    Ok(whole(context.sessions.arrangement().await?).into())
}

pub(in crate::events) async fn session(context: Context, change: ArrangeSession) -> Result<Reply, Refused> {
    let session = session_id(&change.session_id)?;
    let group = match change.group {
        Change::Keep => Choice::Keep,
        Change::Reset => Choice::Reset,
        Change::Set(id) => Choice::Set(group_id(&id)?),
    };
    let patch = PlacementPatch {
        pinned: place(change.pinned),
        group,
        place: place(change.place),
        tags: change.tags,
    };
    arrange(context, Arrange::Session(session, patch)).await
}

pub(in crate::events) async fn group(context: Context, group: SessionGroupInfo) -> Result<Reply, Refused> {
    let group = SessionGroup {
        id: group_id(&group.id)?,
        name: group.name,
        place: group.place,
    };
    arrange(context, Arrange::Group(group)).await
}

pub(in crate::events) async fn remove_group(context: Context, group: RemoveGroup) -> Result<Reply, Refused> {
    arrange(context, Arrange::RemoveGroup(group_id(&group.id)?)).await
}

pub(in crate::events) async fn sort(context: Context, sort: SortSessions) -> Result<Reply, Refused> {
    let sorting = match sort.sorting {
        Sorting::Activity => tiller_core::Sorting::Activity,
        Sorting::Own => tiller_core::Sorting::Own,
    };
    arrange(context, Arrange::Sort(sorting)).await
}

async fn arrange(context: Context, change: Arrange) -> Result<Reply, Refused> {
    context.sessions.arrange(change).await?;
    Ok(Reply::Nothing)
}

fn place(change: Change<f64>) -> Choice<f64> {
    match change {
        Change::Keep => Choice::Keep,
        Change::Reset => Choice::Reset,
        Change::Set(place) => Choice::Set(place),
    }
}

fn group_id(text: &str) -> Result<GroupId, Refused> {
    text.parse()
        .map_err(|_| Refused::Invalid("A group's id must be a UUID.".to_owned()))
}

pub(in crate::events) fn whole(arrangement: Arrangement) -> ArrangementInfo {
    let sessions = arrangement.sessions.into_iter();
    ArrangementInfo {
        sorting: arrangement.sorting.into(),
        groups: arrangement.groups.into_iter().map(group_info).collect(),
        sessions: sessions
            .map(|(session, placement)| placed(session, placement))
            .collect(),
    }
}

pub(in crate::events) fn changed(arranged: &Arranged) -> ArrangementChanged {
    let nothing = ArrangementChanged::default();
    match arranged.clone() {
        Arranged::Session(session, placement) => ArrangementChanged {
            session: Some(placed(session, placement)),
            ..nothing
        },
        Arranged::Group(group) => ArrangementChanged {
            group: Some(group_info(group)),
            ..nothing
        },
        Arranged::GroupRemoved(group) => ArrangementChanged {
            removed_group: Some(group.to_string()),
            ..nothing
        },
        Arranged::Sorted(sorting) => ArrangementChanged {
            sorting: Some(sorting.into()),
            ..nothing
        },
    }
}

fn placed(session: SessionId, placement: Placement) -> PlacementInfo {
    PlacementInfo {
        session_id: session.to_string(),
        pinned: placement.pinned,
        group: placement.group.map(|group| group.to_string()),
        place: placement.place,
        tags: placement.tags,
    }
}

fn group_info(group: SessionGroup) -> SessionGroupInfo {
    SessionGroupInfo {
        id: group.id.to_string(),
        name: group.name,
        place: group.place,
    }
}

impl From<tiller_core::Sorting> for Sorting {
    fn from(sorting: tiller_core::Sorting) -> Self {
        match sorting {
            tiller_core::Sorting::Activity => Self::Activity,
            tiller_core::Sorting::Own => Self::Own,
        }
    }
}
