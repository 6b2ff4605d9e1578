//! Whose transcripts: the person at the machine sees all, a key those of its own sessions.

use std::collections::BTreeSet;

use tiller_core::Sessions;
use tiller_history::{
    History, HistoryError, Include, MessagePage, Offset, Page, Project, ProjectId, ProjectList, Result,
    SearchPage, SearchQuery, SearchResult, Session, SessionId, SessionPage,
};

/// The history with someone's eyes. What they may not see is for them as if it were not there.
pub(super) struct Seen<'a> {
    history: &'a History,
    /// `None`: everything.
    own: Option<BTreeSet<SessionId>>,
}

/// The conversations of the sessions that a viewer sees; `None` for someone who sees all.
pub(super) fn own_conversations(sessions: &Sessions, sees_all: bool) -> Option<BTreeSet<SessionId>> {
    if sees_all {
        return None;
    }
    let ids = sessions.list().into_iter().flat_map(|(record, _)| {
        // A session that was started afresh has a second conversation; the first had the session's own id.
        [Some(record.id.to_string()), record.claude_session_id]
    });
    Some(
        ids.flatten()
            .filter_map(|id| SessionId::parse(&id).ok())
            .collect(),
    )
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

    /// The sessions of a key, newest first. It has few beside the whole history, so each is looked up by itself.
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
            let path = session.project_path;
            let name = path.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next();
            projects.push(Project {
                name: name.filter(|name| !name.is_empty()).unwrap_or(&path).to_owned(),
                id: session.project,
                path,
                session_count: 1,
                last_active: session.last_active,
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

    pub(super) fn messages(&self, id: &SessionId, page: Page, include: Include) -> Result<MessagePage> {
        self.may_see(id)?;
        self.history.messages(id, page, include)
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
        let sessions = self.own_sessions(own)?;
        let projects: BTreeSet<ProjectId> = sessions.into_iter().map(|session| session.project).collect();
        let mut results = Vec::new();
        for project in projects {
            if query.project.as_ref().is_some_and(|wanted| *wanted != project) {
                continue;
            }
            let query = SearchQuery {
                project: Some(project),
                ..query.clone()
            };
            self.collect(&query, own, &mut results)?;
        }
        // Also when nothing was asked of the index: a question that makes no sense does not for anyone.
        if results.is_empty() {
            let nothing = Page::first(0);
            self.history.search(query, nothing)?;
        }
        results.sort_by(|a, b| b.timestamp.cmp(&a.timestamp));
        let total = results.len();
        Ok(SearchPage {
            results: paged(results, page),
            total,
            total_is_exact: true,
        })
    }

    fn collect(
        &self,
        query: &SearchQuery,
        own: &BTreeSet<SessionId>,
        results: &mut Vec<SearchResult>,
    ) -> Result<()> {
        let mut offset = 0;
        loop {
            let page = Page {
                offset: Offset::FromStart(offset),
                limit: Page::MAX,
            };
            let found = self.history.search(query, page)?.results;
            let is_last = found.len() < Page::MAX;
            offset += found.len();
            results.extend(
                found
                    .into_iter()
                    .filter(|result| own.contains(&result.session_id)),
            );
            if is_last {
                return Ok(());
            }
        }
    }
}

/// The part of a whole list that a page asks for.
fn paged<T>(items: Vec<T>, page: Page) -> Vec<T> {
    let skipped = match page.offset {
        Offset::FromStart(offset) => offset,
        Offset::FromEnd(offset) => items.len().saturating_sub(offset).saturating_sub(page.limit),
    };
    items.into_iter().skip(skipped).take(page.limit).collect()
}
