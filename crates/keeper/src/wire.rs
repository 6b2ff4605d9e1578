//! The protocol between a keeper and its program: frames of a length, a kind and a body, little-endian.
//!
//! Both sides may have different versions: an upgraded program finds the keepers of its predecessor. So kinds never
//! change their meaning, bodies only grow at their end, and unknown frames are ignored.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use tiller_process::{Ended, Launch};

use crate::signs::Signs;

/// The longest frame. The longest ones are prompts with images.
pub(crate) const MAX_FRAME: usize = 64 * 1024 * 1024;

/// A frame to the keeper.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Start the agent. Only once, and only from the program that started the keeper.
    Start(Box<Instruction>),
    /// Report the state, and from now on every change. Carries the run's secret, by which a keeper authenticates its
    /// program; earlier versions have none.
    Attach { secret: Vec<u8> },
    /// A line for the agent. Numbers rise; a line whose number was already forwarded is dropped.
    Input { number: u64, line: Bytes },
    /// End the agent's input.
    CloseInput,
    /// Output before this position is no longer needed.
    Forget { before: u64 },
    /// Everything was read: clean up and exit.
    Finish,
}

/// What to start, and how.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Instruction {
    pub(crate) launch: Launch,
    /// Marks the run's processes, see [`tiller_process::Tree`].
    pub(crate) mark: String,
    /// How long an agent without a program may be idle.
    pub(crate) grace: Duration,
    /// How long it may go without a program while it waits for an answer.
    pub(crate) decision_grace: Duration,
    pub(crate) signs: Signs,
    /// The secret that a program must show to attach. Empty: none, as in earlier versions.
    pub(crate) secret: Vec<u8>,
}

/// A frame from the keeper.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Report {
    /// The answer to `Start` and `Attach`: the agent's process, the number of the last line that it got, and the length
    /// of its output. An agent whose input is closed, or will be, accepts no input.
    Running {
        pid: u32,
        last_input: u64,
        end: u64,
        listens: bool,
    },
    /// The agent could not be started.
    NotStarted { reason: String },
    /// The output now ends here.
    Wrote { end: u64 },
    /// The agent has ended, and its output is complete.
    Exited { ended: Ended, end: u64 },
    /// Another program has connected; this one gets no more reports and must leave the agent alone.
    Replaced,
}

/// Splits received bytes into frames.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    buffer: Vec<u8>,
    /// The beginning of the first frame; the buffer is moved now and then rather than for every frame.
    start: usize,
}

impl Frames {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next frame's kind and body.
    pub(crate) fn next(&mut self) -> io::Result<Option<(u8, &[u8])>> {
        let rest = &self.buffer[self.start..];
        let Some(length) = rest.first_chunk::<4>() else {
            self.compact();
            return Ok(None);
        };
        let length = u32::from_le_bytes(*length) as usize;
        if length == 0 || length > MAX_FRAME {
            return Err(io::ErrorKind::InvalidData.into());
        }
        if rest.len() < 4 + length {
            self.compact();
            return Ok(None);
        }
        let from = self.start + 4;
        self.start = from + length;
        Ok(Some((self.buffer[from], &self.buffer[from + 1..from + length])))
    }

    fn compact(&mut self) {
        self.buffer.drain(..self.start);
        self.start = 0;
        // The memory of a message with images must not be kept for the rest of the run.
        if self.buffer.is_empty() && self.buffer.capacity() > 64 * 1024 {
            self.buffer = Vec::new();
        }
    }
}

struct Writer<'a>(&'a mut Vec<u8>);

impl Writer<'_> {
    fn frame(to: &mut Vec<u8>, kind: u8, body: impl FnOnce(&mut Writer<'_>)) {
        let start = to.len();
        to.extend_from_slice(&[0, 0, 0, 0, kind]);
        body(&mut Writer(to));
        let length = u32::try_from(to.len() - start - 4).unwrap_or(u32::MAX);
        to[start..start + 4].copy_from_slice(&length.to_le_bytes());
    }

    fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn text(&mut self, text: &[u8]) {
        self.number(text.len() as u64);
        self.0.extend_from_slice(text);
    }

    /// An optional number; the largest one stands for none.
    fn optional(&mut self, number: Option<i32>) {
        self.number(number.map_or(u64::MAX, |number| u64::from(number.cast_unsigned())));
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn number(&mut self) -> io::Result<u64> {
        let (number, rest) = self.0.split_first_chunk::<8>().ok_or_else(short)?;
        self.0 = rest;
        Ok(u64::from_le_bytes(*number))
    }

    fn text(&mut self) -> io::Result<&'a [u8]> {
        let length = usize::try_from(self.number()?).map_err(|_| short())?;
        let (text, rest) = self.0.split_at_checked(length).ok_or_else(short)?;
        self.0 = rest;
        Ok(text)
    }

    /// A text that frames of earlier versions don't have.
    fn last_text(&mut self) -> io::Result<Vec<u8>> {
        if self.0.is_empty() {
            return Ok(Vec::new());
        }
        self.text().map(<[u8]>::to_vec)
    }

    fn string(&mut self) -> io::Result<String> {
        Ok(String::from_utf8_lossy(self.text()?).into_owned())
    }

    fn os_string(&mut self) -> io::Result<OsString> {
        Ok(OsString::from_vec(self.text()?.to_vec()))
    }

    fn optional(&mut self) -> io::Result<Option<i32>> {
        Ok(u32::try_from(self.number()?).ok().map(u32::cast_signed))
    }
}

fn short() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a frame is too short")
}

impl Order {
    pub(crate) fn encode(&self, to: &mut Vec<u8>) {
        match self {
            Self::Start(instruction) => Writer::frame(to, 1, |writer| instruction.encode(writer)),
            Self::Attach { secret } => Writer::frame(to, 2, |writer| writer.text(secret)),
            Self::Input { number, line } => Writer::frame(to, 3, |writer| {
                writer.number(*number);
                writer.text(line);
            }),
            Self::CloseInput => Writer::frame(to, 4, |_| {}),
            Self::Forget { before } => Writer::frame(to, 5, |writer| writer.number(*before)),
            Self::Finish => Writer::frame(to, 6, |_| {}),
        }
    }

    /// `None`: a kind that this version does not know.
    pub(crate) fn decode(kind: u8, body: &[u8]) -> io::Result<Option<Self>> {
        let mut reader = Reader(body);
        Ok(Some(match kind {
            1 => Self::Start(Box::new(Instruction::decode(&mut reader)?)),
            2 => Self::Attach {
                secret: reader.last_text()?,
            },
            3 => Self::Input {
                number: reader.number()?,
                line: Bytes::copy_from_slice(reader.text()?),
            },
            4 => Self::CloseInput,
            5 => Self::Forget {
                before: reader.number()?,
            },
            6 => Self::Finish,
            _ => return Ok(None),
        }))
    }
}

impl Instruction {
    fn encode(&self, writer: &mut Writer<'_>) {
        let Launch {
            program,
            args,
            env,
            cwd,
            exact_cwd,
            open_files,
            // The program is a launcher by now, which creates the sandbox.
            sandbox: _,
        } = &self.launch;
        writer.text(program.as_os_str().as_bytes());
        writer.number(args.len() as u64);
        for argument in args {
            writer.text(argument.as_bytes());
        }
        writer.number(env.len() as u64);
        for (name, value) in env {
            writer.text(name.as_bytes());
            writer.text(value.as_bytes());
        }
        writer.number(u64::from(cwd.is_some()));
        if let Some(cwd) = cwd {
            writer.text(cwd.as_os_str().as_bytes());
        }
        writer.text(self.mark.as_bytes());
        writer.number(millis(self.grace));
        writer.number(open_files.unwrap_or(0));
        writer.text(&self.signs.turn_end);
        writer.text(&self.secret);
        writer.number(u64::from(*exact_cwd));
        writer.number(millis(self.decision_grace));
        for sign in [&self.signs.asks, &self.signs.withdraws, &self.signs.answers] {
            writer.text(sign);
        }
    }

    fn decode(reader: &mut Reader<'_>) -> io::Result<Self> {
        let program = PathBuf::from(reader.os_string()?);
        let args = (0..reader.number()?)
            .map(|_| reader.os_string())
            .collect::<io::Result<_>>()?;
        let env = (0..reader.number()?)
            .map(|_| Ok((reader.os_string()?, reader.os_string()?)))
            .collect::<io::Result<_>>()?;
        let cwd = match reader.number()? {
            0 => None,
            _ => Some(PathBuf::from(reader.os_string()?)),
        };
        let mark = reader.string()?;
        let grace = Duration::from_millis(reader.number()?);
        // No process can do with 0, so it stands for no limit of its own.
        let open_files = Some(reader.number()?).filter(|count| *count > 0);
        let turn_end = reader.text()?.to_vec();
        let secret = reader.last_text()?;
        let exact_cwd = !reader.0.is_empty() && reader.number()? != 0;
        let mut signs = Signs {
            turn_end,
            ..Signs::default()
        };
        let mut decision_grace = Duration::from_millis(u64::MAX);
        if !reader.0.is_empty() {
            decision_grace = Duration::from_millis(reader.number()?);
            signs.asks = reader.text()?.to_vec();
            signs.withdraws = reader.text()?.to_vec();
            signs.answers = reader.text()?.to_vec();
        }
        Ok(Self {
            launch: Launch {
                program,
                args,
                env,
                cwd,
                exact_cwd,
                open_files,
                sandbox: None,
            },
            mark,
            grace,
            decision_grace,
            signs,
            secret,
        })
    }
}

impl Report {
    pub(crate) fn encode(&self, to: &mut Vec<u8>) {
        match self {
            Self::Running {
                pid,
                last_input,
                end,
                listens,
            } => Writer::frame(to, 1, |writer| {
                writer.number(u64::from(*pid));
                writer.number(*last_input);
                writer.number(*end);
                writer.number(u64::from(*listens));
            }),
            Self::NotStarted { reason } => Writer::frame(to, 2, |writer| writer.text(reason.as_bytes())),
            Self::Wrote { end } => Writer::frame(to, 3, |writer| writer.number(*end)),
            Self::Exited { ended, end } => Writer::frame(to, 4, |writer| {
                writer.optional(ended.code);
                writer.optional(ended.signal);
                writer.number(millis(ended.uptime));
                writer.text(ended.stderr_tail.as_bytes());
                writer.number(*end);
            }),
            Self::Replaced => Writer::frame(to, 5, |_| {}),
        }
    }

    /// `None`: a kind that this version does not know.
    pub(crate) fn decode(kind: u8, body: &[u8]) -> io::Result<Option<Self>> {
        let mut reader = Reader(body);
        Ok(Some(match kind {
            1 => Self::Running {
                pid: u32::try_from(reader.number()?).map_err(|_| short())?,
                last_input: reader.number()?,
                end: reader.number()?,
                listens: reader.number()? != 0,
            },
            2 => Self::NotStarted {
                reason: reader.string()?,
            },
            3 => Self::Wrote {
                end: reader.number()?,
            },
            4 => Self::Exited {
                ended: Ended {
                    code: reader.optional()?,
                    signal: reader.optional()?,
                    uptime: Duration::from_millis(reader.number()?),
                    stderr_tail: reader.string()?,
                },
                end: reader.number()?,
            },
            5 => Self::Replaced,
            _ => return Ok(None),
        }))
    }
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Reads bytes as each side would. What can be read is the same when it is written and read again.
#[cfg(fuzzing)]
pub fn read_everything(bytes: &[u8]) {
    let mut frames = Frames::default();
    for piece in bytes.chunks(7) {
        frames.push(piece);
        while let Ok(Some((kind, body))) = frames.next() {
            if let Ok(Some(order)) = Order::decode(kind, body) {
                let mut written = Vec::new();
                order.encode(&mut written);
                assert_eq!(
                    Order::decode(written[4], &written[5..]).ok().flatten(),
                    Some(order)
                );
            }
            if let Ok(Some(news)) = Report::decode(kind, body) {
                let mut written = Vec::new();
                news.encode(&mut written);
                assert_eq!(
                    Report::decode(written[4], &written[5..]).ok().flatten(),
                    Some(news)
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_decoded_however_they_are_split() {
        let orders = [
            Order::Start(Box::new(Instruction {
                launch: Launch {
                    program: "/bin/agent".into(),
                    args: vec!["--flag=value".into(), OsString::from_vec(vec![0xff, b'a'])],
                    env: [("NAME".into(), "value".into()), ("EMPTY".into(), "".into())].into(),
                    cwd: Some("/some where".into()),
                    exact_cwd: true,
                    open_files: Some(1024),
                    sandbox: None,
                },
                mark: "mark".to_owned(),
                grace: Duration::from_mins(10),
                decision_grace: Duration::from_hours(24),
                signs: Signs {
                    turn_end: b"the end".to_vec(),
                    asks: b"a question".to_vec(),
                    withdraws: Vec::new(),
                    answers: b"an answer".to_vec(),
                },
                secret: vec![0, 1, 2],
            })),
            Order::Attach { secret: vec![7; 32] },
            Order::Input {
                number: 7,
                line: Bytes::from_static(b"{}"),
            },
            Order::Forget { before: u64::MAX - 1 },
            Order::CloseInput,
            Order::Finish,
        ];
        let mut bytes = Vec::new();
        for order in &orders {
            order.encode(&mut bytes);
        }
        for size in [1, 2, 3, 5, 64, bytes.len()] {
            let mut frames = Frames::default();
            let mut found = Vec::new();
            for chunk in bytes.chunks(size) {
                frames.push(chunk);
                while let Some((kind, body)) = frames.next().unwrap() {
                    found.extend(Order::decode(kind, body).unwrap());
                }
            }
            assert_eq!(found, orders);
        }
    }

    #[test]
    fn reports_are_decoded() {
        let all = [
            Report::Running {
                pid: 4711,
                last_input: 3,
                end: 99,
                listens: true,
            },
            Report::NotStarted {
                reason: "没有".to_owned(),
            },
            Report::Wrote { end: 12 },
            Report::Exited {
                ended: Ended {
                    code: Some(-1),
                    signal: None,
                    stderr_tail: "last words".to_owned(),
                    uptime: Duration::from_millis(1234),
                },
                end: 5,
            },
            Report::Replaced,
        ];
        for news in all {
            let mut bytes = Vec::new();
            news.encode(&mut bytes);
            assert_eq!(Report::decode(bytes[4], &bytes[5..]).unwrap(), Some(news));
        }
    }

    #[test]
    fn a_frame_of_an_unknown_kind_is_ignored_and_an_absurd_one_refused() {
        assert_eq!(Order::decode(99, b"whatever").unwrap(), None);
        assert_eq!(Report::decode(99, b"").unwrap(), None);
        let of_earlier_version = Order::decode(2, b"").unwrap();
        assert_eq!(of_earlier_version, Some(Order::Attach { secret: Vec::new() }));
        let mut frames = Frames::default();
        frames.push(&u32::MAX.to_le_bytes());
        assert!(frames.next().is_err());
        assert!(Order::decode(3, &[0; 4]).is_err());
    }
}
