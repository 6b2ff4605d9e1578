//! How viewers have arranged their sessions. A viewer is a key's id, empty for the person at the machine; no key has an empty
//! id.

use rusqlite::{Connection, OptionalExtension, Row, params};
use tiller_core::{
    Arrange, Arranged, Arrangement, Placement, PlacementPatch, SessionGroup, SessionId, Sorting, StoreError,
};

use super::store_error;

const PLACEMENT_COLUMNS: &str = "pinned, group_id, place, tags";

pub(super) fn read(connection: &Connection, viewer: &str) -> Result<Arrangement, StoreError> {
    let sql = "SELECT sorting FROM arrangements WHERE viewer = ?1";
    let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
    let sorting = statement.query_row([viewer], |row| row.get::<_, String>(0));
    let sorting = sorting.optional().map_err(store_error)?;
    let sorting = sorting.and_then(|text| Sorting::parse(&text)).unwrap_or_default();

    let sql = "SELECT id, name, place FROM session_groups WHERE viewer = ?1 ORDER BY place, id";
    let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
    let rows = statement.query_map([viewer], |row| {
        Ok((row.get::<_, String>(0)?, row.get(1)?, row.get(2)?))
    });
    let rows: rusqlite::Result<Vec<_>> = rows.map_err(store_error)?.collect();
    let groups = rows.map_err(store_error)?.into_iter();
    let groups = groups.filter_map(|(id, name, place)| {
        let id = id.parse().ok()?;
        Some(SessionGroup { id, name, place })
    });

    let sql = format!(
        "SELECT {PLACEMENT_COLUMNS}, session_id FROM placements WHERE viewer = ?1 \
             AND session_id IN (SELECT id FROM sessions) ORDER BY session_id"
    );
    let mut statement = connection.prepare_cached(&sql).map_err(store_error)?;
    let rows = statement.query_map([viewer], |row| Ok((row.get::<_, String>(4)?, placement(row)?)));
    let rows: rusqlite::Result<Vec<_>> = rows.map_err(store_error)?.collect();
    let sessions = rows.map_err(store_error)?.into_iter();
    Ok(Arrangement {
        sorting,
        groups: groups.collect(),
        sessions: sessions
            .filter_map(|(id, placement)| Some((id.parse().ok()?, placement)))
            .collect(),
    })
}

/// `None`: there is no such session.
pub(super) fn write(
    connection: &Connection,
    viewer: &str,
    change: &Arrange,
) -> rusqlite::Result<Option<Arranged>> {
    match change {
        Arrange::Session(session, patch) => place_session(connection, viewer, *session, patch),
        Arrange::Group(group) => {
            let sql = "INSERT INTO session_groups (viewer, id, name, place) VALUES (?1, ?2, ?3, ?4) \
                       ON CONFLICT (viewer, id) DO UPDATE SET name = ?3, place = ?4";
            let values = params![viewer, group.id.to_string(), group.name, group.place];
            connection.prepare_cached(sql)?.execute(values)?;
            Ok(Some(Arranged::Group(group.clone())))
        }
        Arrange::RemoveGroup(group) => {
            let values = params![viewer, group.to_string()];
            let sql = "UPDATE placements SET group_id = NULL WHERE viewer = ?1 AND group_id = ?2";
            connection.prepare_cached(sql)?.execute(values)?;
            let sql = "DELETE FROM placements WHERE viewer = ?1 \
                       AND pinned IS NULL AND group_id IS NULL AND place IS NULL AND tags = '[]'";
            connection.prepare_cached(sql)?.execute([viewer])?;
            let sql = "DELETE FROM session_groups WHERE viewer = ?1 AND id = ?2";
            connection.prepare_cached(sql)?.execute(values)?;
            Ok(Some(Arranged::GroupRemoved(*group)))
        }
        Arrange::Sort(sorting) => {
            let sql = "INSERT INTO arrangements (viewer, sorting) VALUES (?1, ?2) \
                       ON CONFLICT (viewer) DO UPDATE SET sorting = ?2";
            connection
                .prepare_cached(sql)?
                .execute(params![viewer, sorting.as_str()])?;
            Ok(Some(Arranged::Sorted(*sorting)))
        }
    }
}

fn place_session(
    connection: &Connection,
    viewer: &str,
    session: SessionId,
    patch: &PlacementPatch,
) -> rusqlite::Result<Option<Arranged>> {
    let id = session.to_string();
    let exists = connection
        .prepare_cached("SELECT 1 FROM sessions WHERE id = ?1")?
        .exists([&id])?;
    if !exists {
        return Ok(None);
    }
    let sql = format!("SELECT {PLACEMENT_COLUMNS} FROM placements WHERE viewer = ?1 AND session_id = ?2");
    let mut statement = connection.prepare_cached(&sql)?;
    let before = statement.query_row(params![viewer, id], placement).optional()?;
    let mut placement = before.unwrap_or_default().with(patch.clone());
    if let Some(group) = placement.group {
        let sql = "SELECT 1 FROM session_groups WHERE viewer = ?1 AND id = ?2";
        let is_known = connection
            .prepare_cached(sql)?
            .exists(params![viewer, group.to_string()])?;
        placement.group = is_known.then_some(group);
    }
    if placement.is_default() {
        let sql = "DELETE FROM placements WHERE viewer = ?1 AND session_id = ?2";
        connection.prepare_cached(sql)?.execute(params![viewer, id])?;
    } else {
        let sql = "INSERT INTO placements (viewer, session_id, pinned, group_id, place, tags) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
                   ON CONFLICT (viewer, session_id) DO UPDATE SET pinned = ?3, group_id = ?4, place = ?5, tags = ?6";
        let group = placement.group.map(|group| group.to_string());
        let tags = serde_json::Value::from(placement.tags.clone()).to_string();
        let values = params![viewer, id, placement.pinned, group, placement.place, tags];
        connection.prepare_cached(sql)?.execute(values)?;
    }
    Ok(Some(Arranged::Session(session, placement)))
}

/// What can't be read of it was not chosen: a list is no reason to fail.
fn placement(row: &Row<'_>) -> rusqlite::Result<Placement> {
    let group: Option<String> = row.get(1)?;
    let tags: String = row.get(3)?;
    Ok(Placement {
        pinned: row.get(0)?,
        group: group.and_then(|group| group.parse().ok()),
        place: row.get(2)?,
        tags: serde_json::from_str(&tags).unwrap_or_default(),
    })
}
