//! Who may read which transcripts: the owner of the machine reads all, an API key reads those of its own sessions.

use std::collections::BTreeSet;
use std::sync::Arc;

use tiller_core::{CommandError, ListedSession, Sessions};
use tiller_history::{
    Change, EntryPage, Facets, History, HistoryError, Include, MessagePage, Offset, Page, Project, ProjectId,
    ProjectList, Result, SearchPage, SearchQuery, Session, SessionFilter, SessionId, SessionPage,
};

/// The history as one viewer may read it. What the viewer may not read is answered as if it did not exist.
pub(super) struct Seen<'a> {
    history: &'a History,
    /// The sessions that the viewer may read; `None` for all.
    own: Option<BTreeSet<SessionId>>,
}

/// The conversations of the sessions that a viewer may see; `None` for a viewer who may see all.
pub(super) async fn own_conversations(
    sessions: &Sessions,
    sees_all: bool,
) -> std::result::Result<Option<BTreeSet<SessionId>>, CommandError> {
    if sees_all {
        return Ok(None);
    }
    let mut own = BTreeSet::new();
    let listed = sessions.for_each(|session| {
        own.extend(SessionId::parse(&session.id().to_string()));
        // A session that was restarted has a second conversation; the first one had the session's own id.
        if let ListedSession::Readable { record, .. } = session
            && let Some(conversation) = record.conversation
        {
            own.extend(SessionId::parse(&conversation));
        }
    });
    listed.await?;
    Ok(Some(own))
}

impl<'a> Seen<'a> {
    pub(super) fn new(history: &'a History, own: Option<BTreeSet<SessionId>>) -> Self {
        Self { history, own }
    }

    fn may_see(&self, id: &SessionId) -> Result<()> {
        match &self.own {
            Some(own) if !own.contains(id) => Err(HistoryError::NotFound),
            _ => Ok(()),
        }
    }

    /// The sessions of a key, newest first. A key has few sessions compared with the whole history, so each is looked up by itself.
    fn own_sessions(&self, own: &BTreeSet<SessionId>) -> Result<Vec<Session>> {
        let mut sessions = Vec::with_capacity(own.len());
        for id in own {
            match self.history.session(id) {
                Ok(session) => sessions.push(session),
                Err(HistoryError::NotFound) => {}
                Err(error) => return Err(error),
            }
        }
        sessions.sort_by(|a, b| b.last_active.cmp(&a.last_active).then_with(|| a.id.cmp(&b.id)));
        Ok(sessions)
    }

    pub(super) fn projects(&self) -> Result<ProjectList> {
        let Some(own) = &self.own else {
            return self.history.projects();
        };
        let mut projects: Vec<Project> = Vec::new();
        for session in self.own_sessions(own)? {
            if let Some(known) = projects.iter_mut().find(|known| known.id == session.project) {
                known.session_count += 1;
                continue;
            }
            let path = String::from(session.project_path);
            let name = path.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next();
            projects.push(Project {
                name: name.filter(|name| !name.is_empty()).unwrap_or(&path).to_owned(),
                id: session.project,
                path,
                session_count: 1,
                last_active: session.last_active.into(),
            });
        }
        Ok(ProjectList { projects })
    }

    pub(super) fn sessions(&self, project: &ProjectId, page: Page) -> Result<SessionPage> {
        let Some(own) = &self.own else {
            return self.history.sessions(project, page);
        };
        let mut sessions = self.own_sessions(own)?;
        sessions.retain(|session| session.project == *project);
        if sessions.is_empty() {
            return Err(HistoryError::NotFound);
        }
        let total = sessions.len();
        let sessions = paged(sessions, page);
        Ok(SessionPage { sessions, total })
    }

    /// The page itself, or the one around a message.
    pub(super) fn page_at(
        &self,
        id: &SessionId,
        around: Option<&str>,
        page: Page,
        include: Include,
    ) -> Result<Page> {
        match around {
            Some(uuid) => self.page_around(id, uuid, page.limit, include),
            None => Ok(page),
        }
    }

    pub(super) fn messages(&self, id: &SessionId, page: Page, include: Include) -> Result<MessagePage> {
        self.may_see(id)?;
        self.history.messages(id, page, include)
    }

    pub(super) fn entries(&self, id: &SessionId, page: Page, include: Include) -> Result<EntryPage> {
        self.may_see(id)?;
        self.history.entries(id, page, include)
    }

    pub(super) fn session(&self, id: &SessionId) -> Result<Session> {
        self.may_see(id)?;
        self.history.session(id)
    }

    pub(super) fn tool_result(&self, id: &SessionId, name: &str) -> Result<std::fs::File> {
        self.may_see(id)?;
        self.history.tool_result(id, name)
    }

    pub(super) fn search(&self, query: &SearchQuery, page: Page) -> Result<SearchPage> {
        let Some(own) = &self.own else {
            return self.history.search(query, page);
        };
        let query = SearchQuery {
            only: Some(Arc::new(own.clone())),
            ..query.clone()
        };
        self.history.search(&query, page)
    }

    pub(super) fn find_sessions(&self, filter: &SessionFilter, page: Page) -> Result<SessionPage> {
        let Some(own) = &self.own else {
            return self.history.find_sessions(filter, page);
        };
        let mut sessions = self.own_sessions(own)?;
        sessions.retain(|session| filter.admits(session));
        let total = sessions.len();
        let sessions = paged(sessions, page);
        Ok(SessionPage { sessions, total })
    }

    pub(super) fn facets(&self) -> Result<Facets> {
        let Some(own) = &self.own else {
            return self.history.facets();
        };
        let (mut tools, mut models) = (BTreeSet::new(), BTreeSet::new());
        for session in self.own_sessions(own)? {
            tools.extend(session.tools_used.iter().map(str::to_owned));
            models.extend(session.models.iter().map(str::to_owned));
        }
        Ok(Facets {
            tools: tools.into_iter().collect(),
            models: models.into_iter().collect(),
        })
    }

    /// The page that has a message in its middle. An unknown message is answered like an unknown session.
    pub(super) fn page_around(
        &self,
        id: &SessionId,
        uuid: &str,
        limit: usize,
        include: Include,
    ) -> Result<Page> {
        self.may_see(id)?;
        let position = self.history.position(id, uuid, include)?;
        let position = position.ok_or(HistoryError::NotFound)?;
        Ok(Page {
            offset: Offset::FromStart(position.saturating_sub(limit / 2)),
            limit,
        })
    }

    /// The changes of sessions that the viewer may read.
    pub(super) fn changes(own: Option<&BTreeSet<SessionId>>, changes: &[Change]) -> Vec<Change> {
        let may_see = |change: &&Change| match change {
            Change::Session { session, .. } | Change::Gone { session, .. } => {
                own.is_none_or(|own| own.contains(session))
            }
            Change::Everything => true,
        };
        changes.iter().filter(may_see).cloned().collect()
    }
}

/// The items of a list that are on a page.
pub(super) fn paged<T>(items: Vec<T>, page: Page) -> Vec<T> {
    let skipped = match page.offset {
        Offset::FromStart(offset) => offset,
        Offset::FromEnd(offset) => items.len().saturating_sub(offset).saturating_sub(page.limit),
    };
    items.into_iter().skip(skipped).take(page.limit).collect()
}
