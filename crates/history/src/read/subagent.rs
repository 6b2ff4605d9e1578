//! Subagents: their transcripts, the calls that started them, and a view of a session with all of them in place.
//!
//! Their location has changed between releases: lines of the session's own file (marked as a sidechain), files beside
//! it named `agent-…`, and a folder of their own. So has the link to the call: a small metadata file, the result that
//! names the subagent, or only its prompt.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::Value;

use crate::error::Result;
use crate::history::History;
use crate::list::card::Piece;
use crate::read::chain::Mark;
use crate::read::message::{self, Line};
use crate::read::outline::flag;
use crate::read::place::Transcript;
use crate::read::transcript::{Item, Loaded, View};

/// A subagent, as far as it is known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Agent {
    pub(crate) id: Option<String>,
    pub(crate) tool_use_id: Option<String>,
}

/// The transcripts of a session's subagents, wherever they are.
pub(crate) fn transcripts(history: &History, session: &Transcript) -> Result<Vec<Transcript>> {
    let mut found = history.projects.subagents(session)?;
    let beside: Vec<Transcript> = history
        .projects
        .transcripts(session.project())?
        .into_iter()
        .filter(Transcript::is_subagent)
        .collect();
    let beside = history.refresh(beside).into_iter();
    let of_session = |owner: Option<&str>| owner == Some(session.stem());
    found.extend(
        beside
            .filter(|listed| of_session(listed.digest.current().get(Piece::SidechainOf)))
            .map(|listed| listed.transcript),
    );
    Ok(found)
}

/// Everything in a session, with subagents after the calls that started them.
pub(crate) fn view(history: &History, main: Arc<Loaded>) -> Result<View> {
    let mut files = vec![main];
    for transcript in transcripts(history, &files[0].transcript.clone())? {
        files.push(history.transcripts.load(history, &transcript)?);
    }
    let calls = Calls::read(history, &files)?;
    let mut agents = vec![Agent::default()];
    // The files of subagents, by the position of the call that started them.
    let mut started: HashMap<(usize, usize), Vec<usize>> = HashMap::new();
    let mut loose = Vec::new();
    for (number, loaded) in files.iter().enumerate().skip(1) {
        let agent = calls.agent(history, loaded)?;
        match agent.tool_use_id.as_ref().and_then(|id| calls.places.get(id)) {
            Some(place) if place.0 != number => started.entry(*place).or_default().push(number),
            _ => loose.push(number),
        }
        agents.push(agent);
    }
    let inline = calls.inline(history, &files[0])?;
    let mut items = Vec::new();
    let mut done = HashSet::new();
    place(&files, &started, 0, &mut done, &mut items);
    // Subagents whose call is unknown come last, and none is shown twice.
    for number in loose.into_iter().chain(1..files.len()) {
        place(&files, &started, number, &mut done, &mut items);
    }
    Ok(View {
        files,
        items,
        agents,
        inline,
    })
}

fn place(
    files: &[Arc<Loaded>],
    started: &HashMap<(usize, usize), Vec<usize>>,
    file: usize,
    done: &mut HashSet<usize>,
    items: &mut Vec<Item>,
) {
    if !done.insert(file) {
        return;
    }
    for (node, outline) in files[file].nodes().iter().enumerate() {
        if outline.is_shown() {
            items.push(Item { file, node });
        }
        for agent in started.get(&(file, node)).into_iter().flatten() {
            place(files, started, *agent, done, items);
        }
    }
}

/// The calls that start subagents, and what is known about those.
#[derive(Default)]
struct Calls {
    /// The position of each call: file and node.
    places: HashMap<String, (usize, usize)>,
    by_prompt: HashMap<String, String>,
    by_agent: HashMap<String, String>,
}

impl Calls {
    fn read(history: &History, files: &[Arc<Loaded>]) -> Result<Self> {
        let mut calls = Self::default();
        for (number, loaded) in files.iter().enumerate() {
            let (mut file, _) = history.projects.open(&loaded.transcript.path)?;
            for (index, node) in loaded
                .nodes()
                .iter()
                .enumerate()
                .filter(|(_, node)| node.has(flag::SUBAGENT))
            {
                let Some(line) = message::read(&mut file, node)? else {
                    continue;
                };
                for (id, prompt) in line.prompts() {
                    calls.places.insert(id.to_owned(), (number, index));
                    calls
                        .by_prompt
                        .entry(prompt.to_owned())
                        .or_insert_with(|| id.to_owned());
                }
                if let (Some(agent), Some(id)) = (line.finished_agent(), line.results().next()) {
                    calls.by_agent.insert(agent.to_owned(), id.to_owned());
                }
            }
        }
        Ok(calls)
    }

    fn agent(&self, history: &History, loaded: &Loaded) -> Result<Agent> {
        let id = loaded.transcript.stem().trim_start_matches("agent-").to_owned();
        let notes = history.projects.read_small(&format!(
            "{}.meta.json",
            loaded.transcript.path.trim_end_matches(".jsonl")
        ));
        let notes: Value = notes
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default();
        let noted = notes["toolUseId"].as_str().map(str::to_owned);
        let tool_use_id = match noted.or_else(|| self.by_agent.get(&id).cloned()) {
            Some(found) => Some(found),
            None => first_line(history, loaded)?.and_then(|line| {
                line.plain_text()
                    .and_then(|prompt| self.by_prompt.get(prompt).cloned())
            }),
        };
        Ok(Agent {
            id: Some(id),
            tool_use_id,
        })
    }

    /// For sidechain lines of the session's own file: the call that started each, matched by its prompt.
    fn inline(&self, history: &History, main: &Loaded) -> Result<HashMap<usize, String>> {
        let mut found: HashMap<usize, String> = HashMap::new();
        let sidechain = |index: &usize| main.chain.marks.get(*index) == Some(&Mark::Sidechain);
        let lines: Vec<usize> = (0..main.nodes().len()).filter(sidechain).collect();
        if lines.is_empty() {
            return Ok(found);
        }
        let (mut file, _) = history.projects.open(&main.transcript.path)?;
        let mut by_key = HashMap::new();
        for index in lines {
            let node = &main.nodes()[index];
            let call = match by_key.get(&node.parent) {
                Some(call) => Option::clone(call),
                None => message::read(&mut file, node)?.and_then(|line| {
                    line.plain_text()
                        .and_then(|prompt| self.by_prompt.get(prompt).cloned())
                }),
            };
            if let Some(call) = &call {
                found.insert(index, call.clone());
            }
            by_key.insert(node.key, call);
        }
        Ok(found)
    }
}

fn first_line(history: &History, loaded: &Loaded) -> Result<Option<Line>> {
    let Some(node) = loaded.nodes().iter().find(|node| node.has(flag::USER)) else {
        return Ok(None);
    };
    let (mut file, _) = history.projects.open(&loaded.transcript.path)?;
    message::read(&mut file, node)
}
