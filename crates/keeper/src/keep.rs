//! The keeper: one thread that waits for the next event.
//!
//! There is one for every agent, so it is small: no runtime, a buffer of 64 KiB, and in memory only what is on its way.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, ChildStdout, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFlags, Timespec};
use rustix::process::{Pid, WaitOptions, wait};
use signal_hook::consts::{SIGCHLD, SIGTERM};
use tiller_process::{Ended, RUN_MARK, Tree};

use crate::callers::Callers;
use crate::files::{write_exit, write_pid};
use crate::long_lines::LongLines;
use crate::output::Appender;
use crate::signs::{Doing, waited_in_vain};
use crate::waiting::{Ready, Waiting};
use crate::wire::{Frames, Instruction, Order, Report};

/// How much is read at once: the size of a pipe's buffer.
const READ: usize = 64 * 1024;

/// The size of the agent's pipe, if the system allows it: a busy agent then waits less often.
const PIPE: usize = 256 * 1024;

/// How much output may be stored that no program has taken. Beyond that the agent has to wait.
const MOST_NEEDED: u64 = 512 * 1024 * 1024;

/// How much may wait for an agent that does not read its input. Beyond that the program has to wait.
const MOST_INPUT: usize = 32 * 1024 * 1024;

/// How much of the agent's stderr is kept.
const STDERR: usize = 16 * 1024;

/// How long each stage of ending an agent may take.
const STAGE: Duration = Duration::from_secs(2);

/// How often processes that should end are checked, and for how long they are killed. A process that the kernel holds
/// on to must not block the keeper.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
const KILL_TIME: Duration = Duration::from_secs(1);

/// How long child processes may hold an ended agent's output open.
const AFTER_EXIT: Duration = Duration::from_millis(500);

/// How often a write to a full disk is retried.
const RETRY: Duration = Duration::from_millis(500);

/// How often a keeper without a program checks whether its folder still exists.
const LOOK: Duration = Duration::from_mins(1);

/// Keeps one agent; returns when nothing is left to do.
///
/// Call it first in a process of its own, with the program's end of a socket pair as standard input and the listener of
/// the run's socket as standard output.
pub fn keep(folder: &Path) -> ExitCode {
    match prepare(folder) {
        Ok(Some(mut keeper)) => {
            if keeper.run().is_ok() {
                return ExitCode::SUCCESS;
            }
            // Nobody can be told: the program sees the connection break, and reads the state from the files.
            keeper.kill_all();
            ExitCode::FAILURE
        }
        Ok(None) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Starts the agent that the first order describes. `None` if there is nothing to keep.
fn prepare(folder: &Path) -> io::Result<Option<Keeper>> {
    let mut server = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let listener = UnixListener::from(io::stdout().as_fd().try_clone_to_owned()?);
    let nothing = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&nothing)?;
    rustix::stdio::dup2_stdout(&nothing)?;
    rustix::stdio::dup2_stderr(&nothing)?;
    drop(nothing);
    // A terminal's Ctrl-C must not end the keeper.
    rustix::process::setsid()?;
    #[cfg(target_os = "linux")]
    {
        // Orphans of the agent become children of this process, and are found when everything has to end.
        rustix::process::set_child_subreaper(Some(Pid::INIT))?;
        rustix::thread::set_name(c"tiller-keeper").ok();
        // The run's secret is in memory, and the agent runs as the same user.
        rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)?;
    }

    let mut orders = Frames::default();
    let instruction = loop {
        if let Some((kind, body)) = orders.next()? {
            match Order::decode(kind, body)? {
                Some(Order::Start(instruction)) => break *instruction,
                _ => continue,
            }
        }
        let mut buffer = [0; 4096];
        match server.read(&mut buffer)? {
            0 => return Ok(None),
            count => orders.push(&buffer[..count]),
        }
    };
    let folder = folder.to_owned();
    match Keeper::start(folder, instruction, server.try_clone()?, listener, orders) {
        Ok(keeper) => Ok(Some(keeper)),
        Err(error) => {
            let mut bytes = Vec::new();
            Report::NotStarted {
                reason: error.to_string(),
            }
            .encode(&mut bytes);
            server.write_all(&bytes)?;
            Ok(None)
        }
    }
}

struct Keeper {
    folder: PathBuf,
    listener: UnixListener,
    /// Receives a byte for each signal.
    child_signals: UnixStream,
    end_signals: UnixStream,
    server: Option<ConnectedProgram>,
    callers: Callers,
    /// When the last program disconnected, or the agent last wrote something; meaningless while a program is connected.
    quiet_since: Instant,
    grace: Duration,
    decision_grace: Duration,
    pid: Pid,
    tree: Tree,
    started: Instant,
    /// The keeper's end of a socket pair. Child processes of the agent could open a pipe for writing through `/proc`;
    /// they can't open a socket.
    stdin: Option<UnixStream>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    stderr_tail: VecDeque<u8>,
    input: VecDeque<u8>,
    last_input: u64,
    close_input: bool,
    /// Since when the agent is to end.
    asked_to_end: Option<Instant>,
    output: Appender,
    /// Output that was read from the agent and not written yet because the disk is full.
    stuck: Vec<u8>,
    doing: Doing,
    long_lines: LongLines,
    ending: Ending,
    exit: Option<(Option<i32>, Option<i32>, Instant)>,
    /// The agent's end as it was reported, once the output is complete.
    ended: Option<Ended>,
    finished: bool,
}

/// A connected program.
struct ConnectedProgram {
    connection: UnixStream,
    orders: Frames,
    outbox: Vec<u8>,
    /// The program got the state. Reports before that would look like the answer to its greeting.
    greeted: bool,
    /// The output has grown since the last report in the outbox.
    wrote: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    No,
    InputClosed(Instant),
    Terminated(Instant),
    Killed,
}

impl Keeper {
    fn start(
        folder: PathBuf,
        instruction: Instruction,
        server: UnixStream,
        listener: UnixListener,
        orders: Frames,
    ) -> io::Result<Self> {
        let Instruction {
            launch,
            mark,
            grace,
            decision_grace,
            signs,
            secret,
        } = instruction;
        let (child_signals, signalled) = UnixStream::pair()?;
        signal_hook::low_level::pipe::register(SIGCHLD, signalled)?;
        let (end_signals, signalled) = UnixStream::pair()?;
        signal_hook::low_level::pipe::register(SIGTERM, signalled)?;
        for stream in [&child_signals, &end_signals, &server] {
            stream.set_nonblocking(true)?;
        }
        listener.set_nonblocking(true)?;
        let output = Appender::create(&folder)?;
        if let Some(count) = launch.open_files {
            // The keeper has the same limit, which is more than it needs. A higher limit does not harm the agent.
            tiller_process::limit_open_files(count).ok();
        }

        let (stdin, theirs) = UnixStream::pair()?;
        let mut command = Command::new(&launch.program);
        command
            .args(&launch.args)
            .env_clear()
            .envs(&launch.env)
            .env(RUN_MARK, &mark)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let cwd = launch.open_cwd()?;
        if let Some(cwd) = &cwd {
            command.current_dir(cwd.path());
        }
        let started = Instant::now();
        let mut child = command.spawn()?;
        // With the agent's end of the socket pair, which must be closed when the agent has ended.
        drop((command, cwd));
        let pid = Pid::from_child(&child);
        let mut tree = Tree::new(pid, mark).kept_by_this_process();
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        // All children are reaped in one place, see `reap`.
        drop(child);
        for pipe in [
            Some(stdin.as_fd()),
            stdout.as_ref().map(AsFd::as_fd),
            stderr.as_ref().map(AsFd::as_fd),
        ] {
            rustix::io::ioctl_fionbio(
                pipe.ok_or_else(|| io::Error::other("the agent has no pipes"))?,
                true,
            )?;
        }
        #[cfg(target_os = "linux")]
        if let Some(stdout) = &stdout {
            // A system with a smaller limit is slower, nothing else.
            rustix::pipe::fcntl_setpipe_size(stdout, PIPE).ok();
        }
        if let Err(error) = write_pid(&folder, &tree) {
            tree.kill();
            return Err(error);
        }
        // The keeper holds none of the user's folders, so that they can be unmounted and removed.
        std::env::set_current_dir("/")?;
        let mut keeper = Self {
            folder,
            listener,
            child_signals,
            end_signals,
            server: None,
            callers: Callers::new(secret),
            quiet_since: started,
            grace,
            decision_grace,
            pid,
            tree,
            started,
            stdin: Some(stdin),
            stdout,
            stderr,
            stderr_tail: VecDeque::new(),
            input: VecDeque::new(),
            last_input: 0,
            close_input: false,
            asked_to_end: None,
            output,
            stuck: Vec::new(),
            doing: Doing::new(signs),
            long_lines: LongLines::default(),
            ending: Ending::No,
            exit: None,
            ended: None,
            finished: false,
        };
        keeper.server = Some(ConnectedProgram {
            connection: server,
            orders,
            outbox: Vec::new(),
            greeted: false,
            wrote: false,
        });
        keeper.send_state();
        // Frames that arrived together with the instruction.
        keeper.take_orders();
        Ok(keeper)
    }

    fn run(&mut self) -> io::Result<()> {
        let mut buffer = vec![0; READ];
        #[cfg(target_os = "linux")]
        tiller_process::let_go_of_code();
        loop {
            self.advance();
            if self.is_done() {
                break;
            }
            self.send_report();
            let ready = self.wait()?;
            if ready.child {
                drain(&mut self.child_signals);
                self.reap();
            }
            if ready.end {
                drain(&mut self.end_signals);
                self.ask_to_end();
                self.begin_to_end();
            }
            // First of all: the agent's output must be stored before the agent gets more input.
            if ready.stdout {
                self.read_output(&mut buffer);
            }
            if ready.stderr {
                self.read_errors(&mut buffer);
            }
            if ready.server {
                self.read_server(&mut buffer);
            }
            if ready.listener
                && let Ok((connection, _)) = self.listener.accept()
            {
                self.callers.add(connection);
            }
            if ready.callers
                && let Some((connection, orders)) = self.callers.proved(&mut buffer)
            {
                // Frames of the previous program come before those of the next one.
                self.read_server(&mut buffer);
                self.connect_program(connection, orders);
            }
            if ready.stdin {
                self.write_input();
            }
        }
        if self.finished {
            // The program has ended the agent's leftovers with its own patience. But processes that came later could
            // not be recognised once the keeper has gone.
            if self.has_children() {
                self.kill_all();
            }
            fs::remove_dir_all(&self.folder).ok();
        } else {
            self.sweep();
        }
        Ok(())
    }

    /// Ends the processes that the agent left behind.
    fn sweep(&mut self) {
        if self.tree.terminate() > 0 {
            let deadline = Instant::now() + STAGE;
            while Instant::now() < deadline && !self.tree.living().is_empty() {
                std::thread::sleep(LOOK_AGAIN);
            }
            self.kill_all();
        }
    }

    /// Kills until no process is left: a killed process may have started another in the meantime.
    fn kill_all(&mut self) {
        let deadline = Instant::now() + KILL_TIME;
        while self.tree.kill() > 0 && Instant::now() < deadline {
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    /// Whether any process is left that became a child of this one. Only asks the kernel, because this is checked at
    /// the end of every agent.
    fn has_children(&mut self) -> bool {
        self.reap();
        !matches!(wait(WaitOptions::NOHANG), Err(rustix::io::Errno::CHILD))
    }

    /// Whether nothing is left to keep, or nobody to keep it for: the files have the rest.
    fn is_done(&self) -> bool {
        self.finished || (self.ended.is_some() && self.server.is_none())
    }

    /// Waits until something can be done or is due.
    fn wait(&self) -> io::Result<Ready> {
        let mut waiting = Waiting::default();
        waiting.add(&self.child_signals, PollFlags::IN, |ready| &mut ready.child);
        waiting.add(&self.end_signals, PollFlags::IN, |ready| &mut ready.end);
        waiting.add(&self.listener, PollFlags::IN, |ready| &mut ready.listener);
        self.callers.wait_for(&mut waiting);
        if let Some(server) = &self.server {
            let mut flags = PollFlags::empty();
            if self.input.len() < MOST_INPUT {
                flags |= PollFlags::IN;
            }
            if !server.outbox.is_empty() {
                flags |= PollFlags::OUT;
            }
            waiting.add(&server.connection, flags, |ready| &mut ready.server);
        }
        if let Some(stdout) = &self.stdout
            && self.stuck.is_empty()
            && self.output.needed() < MOST_NEEDED
        {
            waiting.add(stdout, PollFlags::IN, |ready| &mut ready.stdout);
        }
        if let Some(stderr) = &self.stderr {
            waiting.add(stderr, PollFlags::IN, |ready| &mut ready.stderr);
        }
        if let Some(stdin) = &self.stdin
            && !self.input.is_empty()
        {
            waiting.add(stdin, PollFlags::OUT, |ready| &mut ready.stdin);
        }
        let timeout = self.next_deadline().map(|deadline| {
            let left = deadline.saturating_duration_since(Instant::now());
            // A little more than the remaining time: waking up too early means waking up twice.
            Timespec::try_from(left + Duration::from_millis(1)).unwrap_or(Timespec {
                tv_sec: 60,
                tv_nsec: 0,
            })
        });
        waiting.until(timeout.as_ref())
    }

    fn next_deadline(&self) -> Option<Instant> {
        let stage = match self.ending {
            Ending::InputClosed(since) | Ending::Terminated(since) => Some(since + STAGE),
            Ending::Killed => Some(Instant::now() + RETRY),
            Ending::No => None,
        };
        let alone = (self.server.is_none() && self.exit.is_none() && self.ending == Ending::No).then(|| {
            let look = Instant::now() + LOOK;
            self.given_up_at().map_or(look, |at| at.min(look))
        });
        let retry = (!self.stuck.is_empty()).then(|| Instant::now() + RETRY);
        let complete = match self.exit {
            Some((.., at)) if self.ended.is_none() && self.stuck.is_empty() => Some(at + AFTER_EXIT),
            // Blocked output is retried; whether to give up is decided then.
            _ => None,
        };
        [stage, alone, retry, complete].into_iter().flatten().min()
    }

    /// Does what is due.
    fn advance(&mut self) {
        let now = Instant::now();
        if !self.stuck.is_empty() {
            let stuck = std::mem::take(&mut self.stuck);
            self.append(&stuck);
        }
        if let Some((code, signal, at)) = self.exit
            && self.ended.is_none()
        {
            if self.stuck.is_empty() && self.stdout.is_some() && now >= at + AFTER_EXIT {
                self.drain_output();
            }
            let said = self.stdout.is_none() || now >= at + AFTER_EXIT;
            if said && (self.stuck.is_empty() || self.has_waited_enough(at, now)) {
                self.complete(code, signal, at);
            }
        }
        if self.server.is_none() && self.exit.is_none() && self.ending == Ending::No {
            let abandoned = self.given_up_at().is_some_and(|at| now >= at);
            if abandoned && self.doing.waits() {
                self.end_waiting();
            } else if abandoned || !self.folder.exists() {
                self.begin_to_end();
            }
        }
        match self.ending {
            Ending::InputClosed(since) if now >= since + STAGE => {
                self.tree.terminate();
                self.ending = Ending::Terminated(now);
            }
            Ending::Terminated(since) if now >= since + STAGE => {
                self.tree.kill();
                self.ending = Ending::Killed;
            }
            _ => {}
        }
    }

    /// When an agent without a program is ended. `None`: not while it works.
    fn given_up_at(&self) -> Option<Instant> {
        self.quiet_since
            .checked_add(self.doing.patience(self.grace, self.decision_grace)?)
    }

    /// Ends an agent that waits for an answer, and says why in its last words. At once: an agent whose input ends, or that is
    /// asked to end, may take that for the answer 'no' and go on with its turn.
    fn end_waiting(&mut self) {
        self.stderr = None;
        self.stderr_tail.extend(waited_in_vain(self.decision_grace));
        self.ask_to_end();
        self.tree.living();
        self.tree.kill();
        self.ending = Ending::Killed;
    }

    /// Whether the last output of an agent that ended at `exit` has waited long enough for disk space. If the agent was
    /// told to end, the wait is short; if the program disconnected, the next one may come and free some space.
    fn has_waited_enough(&self, exit: Instant, now: Instant) -> bool {
        match self.asked_to_end {
            Some(asked) => now >= asked.max(exit) + STAGE,
            None => self.server.is_none() && now >= self.quiet_since.max(exit) + self.grace,
        }
    }

    /// Reads what is left in an ended agent's pipe, for which there was no space before.
    fn drain_output(&mut self) {
        let mut buffer = vec![0; READ];
        // Not forever: a child process of the agent may hold the pipe and keep writing.
        for _ in 0..=PIPE / READ {
            if self.stdout.is_none() || !self.stuck.is_empty() {
                break;
            }
            self.read_output(&mut buffer);
        }
    }

    fn ask_to_end(&mut self) {
        self.asked_to_end.get_or_insert_with(Instant::now);
    }

    /// Ends the agent without its program.
    fn begin_to_end(&mut self) {
        if self.ending == Ending::No && self.exit.is_none() {
            self.ask_to_end();
            // While parents and children are still connected.
            self.tree.living();
            self.stdin = None;
            self.ending = Ending::InputClosed(Instant::now());
        }
    }

    fn reap(&mut self) {
        // Includes orphans of the agent.
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            if pid == self.pid {
                self.exit = Some((status.exit_status(), status.terminating_signal(), Instant::now()));
                self.stdin = None;
            }
        }
    }

    /// The agent has ended and its output is complete, or as complete as the disk allows.
    fn complete(&mut self, code: Option<i32>, signal: Option<i32>, at: Instant) {
        self.stdout = None;
        self.stderr = None;
        self.stuck = Vec::new();
        let tail: Vec<u8> = self.stderr_tail.drain(..).collect();
        let ended = Ended {
            code,
            signal,
            stderr_tail: String::from_utf8_lossy(&tail).trim().to_owned(),
            uptime: at - self.started,
        };
        let end = self.output.end();
        // On a full disk the file is missing: then a later program only knows that the agent has ended.
        write_exit(&self.folder, &ended, self.last_input, end).ok();
        // A program that has just connected is told in its turn.
        if let Some(server) = self.server.as_mut().filter(|server| server.greeted) {
            // The program ends the agent's leftovers, with its own patience.
            Report::Exited {
                ended: ended.clone(),
                end,
            }
            .encode(&mut server.outbox);
        }
        self.ended = Some(ended);
    }

    fn read_output(&mut self, buffer: &mut [u8]) {
        let Some(stdout) = &mut self.stdout else { return };
        match stdout.read(buffer) {
            Ok(0) => self.stdout = None,
            Ok(count) => {
                let bytes = &buffer[..count];
                self.doing.says(bytes);
                self.quiet_since = Instant::now();
                let kept = self.long_lines.cut(bytes);
                self.append(&kept);
            }
            Err(error) if is_transient(&error) => {}
            Err(_) => self.stdout = None,
        }
    }

    fn append(&mut self, bytes: &[u8]) {
        let (written, outcome) = self.output.append(bytes);
        if outcome.is_err() {
            self.stuck = bytes[written..].to_vec();
        }
        if written > 0
            && let Some(server) = &mut self.server
        {
            server.wrote = true;
        }
    }

    fn read_errors(&mut self, buffer: &mut [u8]) {
        let Some(stderr) = &mut self.stderr else { return };
        match stderr.read(buffer) {
            Ok(0) => self.stderr = None,
            Ok(count) => {
                let count = count.min(buffer.len());
                self.stderr_tail.extend(&buffer[..count]);
                let extra = self.stderr_tail.len().saturating_sub(STDERR);
                self.stderr_tail.drain(..extra);
            }
            Err(error) if is_transient(&error) => {}
            Err(_) => self.stderr = None,
        }
    }

    /// The newest program replaces the previous one.
    fn connect_program(&mut self, connection: UnixStream, orders: Frames) {
        if let Some(server) = &mut self.server {
            Report::Replaced.encode(&mut server.outbox);
            self.send_report();
            self.end_without_program();
        }
        self.server = Some(ConnectedProgram {
            connection,
            orders,
            outbox: Vec::new(),
            greeted: false,
            wrote: false,
        });
        self.send_state();
        self.take_orders();
    }

    fn read_server(&mut self, buffer: &mut [u8]) {
        loop {
            let Some(server) = &mut self.server else { return };
            match server.connection.read(buffer) {
                Ok(0) => return self.detach(),
                Ok(count) => server.orders.push(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return self.detach(),
            }
            self.take_orders();
            if self.input.len() >= MOST_INPUT {
                return;
            }
        }
    }

    fn take_orders(&mut self) {
        let mut orders = Vec::new();
        if let Some(server) = &mut self.server {
            loop {
                match server.orders.next() {
                    Ok(Some((kind, body))) => match Order::decode(kind, body) {
                        Ok(order) => orders.extend(order),
                        Err(_) => return self.detach(),
                    },
                    Ok(None) => break,
                    Err(_) => return self.detach(),
                }
            }
        }
        for order in orders {
            match order {
                Order::Start(_) => {}
                Order::Attach { .. } => self.send_state(),
                Order::Input { number, line } => self.take_input(number, &line),
                Order::CloseInput => {
                    self.close_input = true;
                    self.ask_to_end();
                    self.write_input();
                }
                Order::Forget { before } => self.output.forget(before),
                Order::Finish => self.finished = self.exit.is_some(),
            }
        }
    }

    fn take_input(&mut self, number: u64, line: &[u8]) {
        // A line that is not forwarded does not count: another agent may get it.
        if !self.listens() || (number > 0 && number <= self.last_input) {
            return;
        }
        if number > 0 {
            self.last_input = number;
            self.doing.busy = true;
        }
        self.doing.hears(line);
        self.input.extend(line);
        self.input.push_back(b'\n');
        self.write_input();
    }

    /// Whether the agent still accepts input. An agent whose input has ended, or will, is about to end.
    fn listens(&self) -> bool {
        self.exit.is_none() && self.ending == Ending::No && self.stdin.is_some() && !self.close_input
    }

    fn write_input(&mut self) {
        while let Some(stdin) = &mut self.stdin {
            if self.input.is_empty() {
                if self.close_input {
                    self.stdin = None;
                }
                break;
            }
            match stdin.write(self.input.as_slices().0) {
                Ok(count) => drop(self.input.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => {
                    // The agent no longer reads; its end will be reported.
                    self.stdin = None;
                    self.input.clear();
                }
            }
        }
        if self.input.is_empty() && self.input.capacity() > READ {
            self.input = VecDeque::new();
        }
    }

    fn detach(&mut self) {
        self.server = None;
        self.quiet_since = Instant::now();
        self.end_without_program();
    }

    /// The program told its agent to end, and disconnected before the agent did.
    fn end_without_program(&mut self) {
        if self.close_input {
            self.begin_to_end();
        }
    }

    fn send_state(&mut self) {
        let (end, listens) = (self.output.end(), self.listens());
        let Some(server) = &mut self.server else { return };
        server.greeted = true;
        Report::Running {
            pid: self.pid.as_raw_nonzero().get().cast_unsigned(),
            last_input: self.last_input,
            end,
            listens,
        }
        .encode(&mut server.outbox);
        if let Some(ended) = &self.ended {
            Report::Exited {
                ended: ended.clone(),
                end,
            }
            .encode(&mut server.outbox);
        }
    }

    fn send_report(&mut self) {
        let end = self.output.end();
        let Some(server) = &mut self.server else { return };
        loop {
            if server.outbox.is_empty() {
                // Only the newest position counts, so a slow program finds one report, not thousands. And a program
                // that has just connected gets the state first.
                if !server.greeted || !std::mem::take(&mut server.wrote) {
                    return;
                }
                Report::Wrote { end }.encode(&mut server.outbox);
            }
            match server.connection.write(&server.outbox) {
                Ok(count) => drop(server.outbox.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => return self.detach(),
            }
        }
    }
}

fn drain(signals: &mut UnixStream) {
    let mut buffer = [0; 64];
    while matches!(signals.read(&mut buffer), Ok(count) if count > 0) {}
}

fn is_transient(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}
