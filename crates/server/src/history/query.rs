//! Query parameters. Unknown and invalid parameters are refused.

use std::collections::HashMap;

use tiller_history::{Format, Include, Offset, Page, ProjectId, SearchQuery, SessionFilter};

use crate::error::ApiError;

/// Items of a page if the request names no limit.
const DEFAULT_LIMIT: usize = 50;

/// The form in which the messages of a session are returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ToldAs {
    /// Messages, in the form of the history API.
    Messages,
    /// Entries, in the form of a live session's events.
    Entries,
}

/// The parameters of a request, each at most once.
pub(super) struct Parameters(HashMap<String, String>);

impl Parameters {
    pub(super) fn parse(query: Option<&str>) -> Result<Self, ApiError> {
        // Parsed by hand instead of with a struct for each route: a duplicate parameter must be refused.
        let pairs: Vec<(String, String)> =
            serde_urlencoded::from_str(query.unwrap_or_default()).map_err(|_| ApiError::WrongForm)?;
        let mut parameters = HashMap::with_capacity(pairs.len());
        for (name, value) in pairs {
            if value.contains('\0') || parameters.insert(name, value).is_some() {
                return Err(ApiError::WrongForm);
            }
        }
        Ok(Self(parameters))
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    fn number<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, ApiError> {
        let number = self.0.get(name).map(|value| value.parse());
        number.transpose().map_err(|_| ApiError::WrongForm)
    }

    /// `offset` and `limit`; with `from=end` they are counted from the last item backwards.
    pub(super) fn page(&self) -> Result<Page, ApiError> {
        let offset = self.number("offset")?.unwrap_or(0);
        let limit = self.number("limit")?.unwrap_or(DEFAULT_LIMIT);
        if limit == 0 {
            return Err(ApiError::WrongForm);
        }
        let offset = match self.text("from") {
            None | Some("start") => Offset::FromStart(offset),
            Some("end") => Offset::FromEnd(offset),
            Some(_) => return Err(ApiError::WrongForm),
        };
        let limit = limit.min(Page::MAX);
        Ok(Page { offset, limit })
    }

    pub(super) fn include(&self) -> Result<Include, ApiError> {
        match self.text("include") {
            None | Some("chain") => Ok(Include::Chain),
            Some("conversation") => Ok(Include::Conversation),
            Some("all") => Ok(Include::All),
            Some(_) => Err(ApiError::WrongForm),
        }
    }

    pub(super) fn told_as(&self) -> Result<ToldAs, ApiError> {
        match self.text("as") {
            None | Some("messages") => Ok(ToldAs::Messages),
            Some("entries") => Ok(ToldAs::Entries),
            Some(_) => Err(ApiError::WrongForm),
        }
    }

    pub(super) fn format(&self) -> Result<Format, ApiError> {
        match self.text("format") {
            None | Some("markdown") => Ok(Format::Markdown),
            Some("html") => Ok(Format::Html),
            Some("json") => Ok(Format::Json),
            Some(_) => Err(ApiError::WrongForm),
        }
    }

    pub(super) fn project(&self) -> Result<Option<ProjectId>, ApiError> {
        let project = self.text("project").map(ProjectId::parse).transpose();
        project.map_err(|_| ApiError::WrongForm)
    }

    /// `from` and `to`, in milliseconds since 1970.
    pub(super) fn times(&self) -> Result<(Option<i64>, Option<i64>), ApiError> {
        Ok((self.number("from")?, self.number("to")?))
    }

    pub(super) fn search(&self) -> Result<SearchQuery, ApiError> {
        let (from, to) = self.times()?;
        let owned = |name| self.text(name).map(str::to_owned);
        Ok(SearchQuery {
            text: owned("q").ok_or(ApiError::WrongForm)?,
            project: self.project()?,
            tool: owned("tool"),
            file: owned("file"),
            model: owned("model"),
            from,
            to,
            only: None,
        })
    }

    pub(super) fn filter(&self) -> Result<SessionFilter, ApiError> {
        let (from, to) = self.times()?;
        let owned = |name| self.text(name).map(str::to_owned);
        Ok(SessionFilter {
            project: self.project()?,
            text: owned("q"),
            tool: owned("tool"),
            file: owned("file"),
            model: owned("model"),
            from,
            to,
        })
    }

    /// As [`Self::page`], where `from` is a time.
    pub(super) fn timed_page(&self) -> Result<Page, ApiError> {
        let without_from = self.0.iter().filter(|(name, _)| *name != "from");
        Self(
            without_from
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
        )
        .page()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(query: &str) -> Result<Page, ApiError> {
        Parameters::parse(Some(query))?.page()
    }

    #[test]
    fn a_page_is_fifty_items_unless_said() {
        assert_eq!(page(""), Ok(Page::first(50)));
        assert_eq!(page("limit=7&from=end"), Ok(Page::last(7)));
        let third = Page {
            offset: Offset::FromStart(20),
            limit: 10,
        };
        assert_eq!(page("offset=20&limit=10"), Ok(third));
        assert_eq!(page("limit=999999"), Ok(Page::first(Page::MAX)));
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for query in [
            "limit=0",
            "limit=-1",
            "offset=-1",
            "offset=x",
            "limit=1.5",
            "limit=",
            "offset=1&offset=2",
            "from=middle",
            "offset=99999999999999999999999",
            "limit=5%00",
        ] {
            assert_eq!(page(query), Err(ApiError::WrongForm), "{query}");
        }
    }
}
