//! Reads pages of messages from their positions in transcripts.

use std::collections::HashMap;
use std::fs::File;
use std::sync::{Arc, Mutex, PoisonError};

use rayon::prelude::*;

use crate::error::Result;
use crate::history::History;
use crate::list::catalogue::with_buffer;
use crate::model::{Branch, EntryPage, Include, Message, MessagePage, Page, TranscriptEntry};
use crate::read::chain::{Chain, Mark};
use crate::read::follow::{Followed, follow};
use crate::read::message::{self, Line};
use crate::read::outline::{Node, Outline, flag, key_of};
use crate::read::place::{SessionId, Transcript};
use crate::read::subagent;

/// How many outlines are cached, for users who page through a session.
const AT_HAND: usize = 4;
/// Smaller transcripts are read again faster than their outline is loaded.
const WORTH_KEEPING: u64 = 1024 * 1024;
/// How many messages before a page are searched for the call that a result answers.
const LOOK_BACK: usize = 4096;

/// A transcript's outline and its chain.
pub(crate) struct Loaded {
    pub(crate) transcript: Transcript,
    pub(crate) outline: Followed<Outline>,
    pub(crate) chain: Chain,
}

impl Loaded {
    pub(crate) fn nodes(&self) -> &[Node] {
        &self.outline.current().nodes
    }
}

/// One message of a view.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item {
    /// The index of the transcript: 0 is the session's own, the others are subagents'.
    pub(crate) file: usize,
    pub(crate) node: usize,
}

/// A session's transcript, those of its subagents if requested, and the order in which to show them.
pub(crate) struct View {
    pub(crate) files: Vec<Arc<Loaded>>,
    pub(crate) items: Vec<Item>,
    /// For each file the subagent that it belongs to, and the call that started it.
    pub(crate) agents: Vec<subagent::Agent>,
    /// For subagents' lines in the session's own file, as the oldest releases wrote them: the call that started each.
    pub(crate) inline: HashMap<usize, String>,
}

#[derive(Default)]
pub(crate) struct Transcripts {
    at_hand: Mutex<Vec<Arc<Loaded>>>,
}

impl Transcripts {
    pub(crate) fn page(
        &self,
        history: &History,
        id: &SessionId,
        page: Page,
        include: Include,
    ) -> Result<MessagePage> {
        let listed = history.find(id)?;
        let session = listed.session()?;
        let view = self.view(history, &listed.transcript, include)?;
        let range = page.range(view.items.len());
        let mut reader = Reader::new(history, &view);
        let messages = reader.messages(range.clone())?;
        Ok(MessagePage {
            session,
            messages,
            total: view.items.len(),
            offset: range.start,
        })
    }

    /// The page in the form of a live session's events.
    pub(crate) fn entries(
        &self,
        history: &History,
        id: &SessionId,
        page: Page,
        include: Include,
    ) -> Result<EntryPage> {
        let listed = history.find(id)?;
        let session = listed.session()?;
        let view = self.view(history, &listed.transcript, include)?;
        let range = page.range(view.items.len());
        let mut reader = Reader::new(history, &view);
        let entries = reader.entries(range.clone())?;
        Ok(EntryPage {
            session,
            entries,
            total: view.items.len(),
            offset: range.start,
        })
    }

    pub(crate) fn position(
        &self,
        history: &History,
        id: &SessionId,
        uuid: &str,
        include: Include,
    ) -> Result<Option<usize>> {
        let listed = history.find(id)?;
        let view = self.view(history, &listed.transcript, include)?;
        let key = key_of(uuid.as_bytes());
        let is_it = |item: &Item| view.files[item.file].nodes()[item.node].key == key;
        Ok(view.items.iter().position(is_it))
    }

    pub(crate) fn view(&self, history: &History, transcript: &Transcript, include: Include) -> Result<View> {
        let main = self.load(history, transcript)?;
        let item = |node: usize| Item { file: 0, node };
        let shown = |node: &usize| main.nodes()[*node].is_shown();
        let seen = main.chain.seen.iter().copied().filter(shown).map(item);
        let items = match include {
            Include::Chain => seen.collect(),
            Include::Conversation => {
                let compacted = main.chain.compacted.iter().copied();
                compacted.filter(shown).map(item).chain(seen).collect()
            }
            Include::All => return subagent::view(history, main),
        };
        Ok(View {
            files: vec![main],
            items,
            agents: vec![subagent::Agent::default()],
            inline: HashMap::new(),
        })
    }

    /// The current outline of a transcript.
    pub(crate) fn load(&self, history: &History, transcript: &Transcript) -> Result<Arc<Loaded>> {
        let (mut file, stamp) = history.projects.open(&transcript.path)?;
        let known = {
            let at_hand = self.at_hand.lock().unwrap_or_else(PoisonError::into_inner);
            at_hand
                .iter()
                .find(|loaded| loaded.transcript.path == transcript.path)
                .cloned()
        };
        let known = match known {
            Some(loaded) if loaded.outline.stamp == stamp => return Ok(loaded),
            Some(loaded) => Some(loaded.outline.clone()),
            None => saved(history, transcript),
        };
        let was = known.as_ref().map(|known| known.stamp);
        let outline = match known {
            Some(known) if known.is_as_of(stamp) => known,
            known => with_buffer(|buffer| follow(&mut file, stamp, known, buffer))?,
        };
        if was != Some(stamp) {
            save(history, transcript, &outline);
        }
        let chain = Chain::of(outline.current());
        let loaded = Arc::new(Loaded {
            transcript: Transcript {
                stamp,
                ..transcript.clone()
            },
            outline,
            chain,
        });
        let mut at_hand = self.at_hand.lock().unwrap_or_else(PoisonError::into_inner);
        at_hand.retain(|old| old.transcript.path != transcript.path);
        at_hand.truncate(AT_HAND - 1);
        at_hand.insert(0, Arc::clone(&loaded));
        Ok(loaded)
    }
}

/// Saves the outlines of large transcripts, so that opening one never reads all of it.
pub(crate) fn save_outlines(history: &History, files: &[Transcript]) {
    let large: Vec<&Transcript> = files
        .iter()
        .filter(|file| file.stamp.size >= WORTH_KEEPING)
        .collect();
    large.into_par_iter().for_each(|transcript| {
        let known = saved(history, transcript);
        if known
            .as_ref()
            .is_some_and(|known| known.stamp == transcript.stamp)
        {
            return;
        }
        let read = history
            .projects
            .open(&transcript.path)
            .and_then(|(mut file, stamp)| {
                Ok(with_buffer(|buffer| {
                    follow::<Outline>(&mut file, stamp, known, buffer)
                })?)
            });
        match read {
            Ok(outline) => save(history, transcript, &outline),
            Err(error) => tracing::warn!(%error, "a transcript could not be read"),
        }
    });
}

fn saved(history: &History, transcript: &Transcript) -> Option<Followed<Outline>> {
    let index = history.index.as_ref()?;
    if transcript.stamp.size < WORTH_KEEPING {
        return None;
    }
    index.load(&transcript.path).unwrap_or_else(|error| {
        tracing::warn!(%error, "an outline could not be read from the index");
        None
    })
}

fn save(history: &History, transcript: &Transcript, outline: &Followed<Outline>) {
    if let Some(index) = history
        .index
        .as_ref()
        .filter(|_| outline.stamp.size >= WORTH_KEEPING)
        && let Err(error) = index.save([(transcript.path.as_str(), outline)])
    {
        tracing::warn!(%error, "an outline could not be saved in the index");
    }
}

/// Reads the messages of a view.
pub(crate) struct Reader<'a> {
    history: &'a History,
    view: &'a View,
    files: Vec<Option<File>>,
    /// Tool names by the ids of their calls, as far as read.
    calls: HashMap<String, String>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(history: &'a History, view: &'a View) -> Self {
        let files = view.files.iter().map(|_| None).collect();
        Self {
            history,
            view,
            files,
            calls: HashMap::new(),
        }
    }

    /// The messages of a range of the view. A message that has become unreadable since its outline was built is left
    /// out.
    pub(crate) fn messages(&mut self, range: std::ops::Range<usize>) -> Result<Vec<Message>> {
        self.lines(
            range,
            |line, calls| (line.into_message(calls), ()),
            |message, ()| message,
        )
    }

    /// The same range, in the form of a live session's events.
    pub(crate) fn entries(&mut self, range: std::ops::Range<usize>) -> Result<Vec<TranscriptEntry>> {
        self.lines(
            range,
            |mut line, calls| {
                let rest = line.take_rest();
                (line.into_message(calls), rest)
            },
            message::entry,
        )
    }

    /// `read` turns a line into a message, and `make` builds the result once the message is described.
    fn lines<R, T>(
        &mut self,
        range: std::ops::Range<usize>,
        read: impl Fn(Line, &HashMap<String, String>) -> (Message, R),
        make: impl Fn(Message, R) -> T,
    ) -> Result<Vec<T>> {
        let mut made = Vec::with_capacity(range.len());
        for position in range {
            let item = self.view.items[position];
            let Some(line) = self.line(item)? else { continue };
            line.calls(|id, name| {
                self.calls.insert(id.to_owned(), name.to_owned());
            });
            if let Some(missing) = line
                .results()
                .find(|id| !self.calls.contains_key(*id))
                .map(str::to_owned)
            {
                self.look_back(position, &missing)?;
            }
            let (mut message, rest) = read(line, &self.calls);
            self.describe(item, &mut message)?;
            made.push(make(message, rest));
        }
        Ok(made)
    }

    fn node(&self, item: Item) -> &'a Node {
        &self.view.files[item.file].nodes()[item.node]
    }

    fn line(&mut self, item: Item) -> Result<Option<Line>> {
        let node = self.node(item);
        if self.files[item.file].is_none() {
            let (file, _) = self
                .history
                .projects
                .open(&self.view.files[item.file].transcript.path)?;
            self.files[item.file] = Some(file);
        }
        match &mut self.files[item.file] {
            Some(file) => message::read(file, node),
            None => Ok(None),
        }
    }

    /// Finds the name of a tool that was called before this page.
    fn look_back(&mut self, position: usize, wanted: &str) -> Result<()> {
        for before in (position.saturating_sub(LOOK_BACK)..position).rev() {
            let item = self.view.items[before];
            if !self.node(item).has(flag::TOOL_USE) {
                continue;
            }
            let Some(line) = self.line(item)? else { continue };
            line.calls(|id, name| {
                self.calls.insert(id.to_owned(), name.to_owned());
            });
            if self.calls.contains_key(wanted) {
                break;
            }
        }
        Ok(())
    }

    /// Adds what the line alone does not have.
    fn describe(&mut self, item: Item, message: &mut Message) -> Result<()> {
        let loaded = &self.view.files[item.file];
        if item.file == 0 {
            message.branch = match loaded.chain.marks.get(item.node) {
                Some(Mark::Compacted) => Some(Branch::Compacted),
                Some(Mark::Left) => Some(Branch::Left),
                Some(Mark::Chain | Mark::Sidechain) | None => None,
            };
            message.parent_tool_use_id = self.view.inline.get(&item.node).cloned();
        } else {
            let agent = &self.view.agents[item.file];
            message.sidechain = true;
            message.agent_id = message.agent_id.take().or_else(|| agent.id.clone());
            message.parent_tool_use_id.clone_from(&agent.tool_use_id);
        }
        if message.compaction.is_some() {
            let parent = self.node(item).parent;
            let boundary = loaded.nodes()[..item.node]
                .iter()
                .rposition(|node| node.key == parent);
            if let Some(node) = boundary
                && let Some(line) = self.line(Item {
                    file: item.file,
                    node,
                })?
            {
                message.compaction = Some(line.compaction());
            }
        }
        for block in &mut message.content {
            message::note_persisted(block, |name| {
                let owner = &self.view.files[0].transcript;
                let file = self.history.projects.open_tool_result(owner, name).ok()?;
                file.metadata().ok().map(|metadata| metadata.len())
            });
        }
        Ok(())
    }
}
