//! Creates the namespaces and supervises them.
//!
//! Two processes belong to the launcher. The **outer** one is the agent's parent as seen from outside: it leads the
//! run's process group, ends with the process that started it, and reports how the agent ended. The **inner** one is
//! the first process of the PID namespace: it hides folders, starts the agent, and adopts its orphans. When it ends,
//! everything in the namespace ends. Both ignore the signals that ask a process to end: those are for the agent.
//!
//! If user namespaces are needed, there are two. The mounts are made in the first; the agent lives in the second, where
//! they can't be undone, because the kernel locks mounts that come from a more privileged namespace.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags,
};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};
use rustix::thread::UnshareFlags;

use super::{PROBE, Plan, mounts, network_args, proxy};
use crate::hosts::HostPattern;

/// How long processes that the agent left behind may take to end on request.
const LEFTOVERS: Duration = Duration::from_secs(1);
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// The exit code if no agent was started.
const NOT_STARTED: u8 = 125;

/// The argument under which bubblewrap starts this program again inside: the number of the channel's descriptor.
const INNER: &str = "--inner=";

/// The task of the inner process.
struct Task {
    plan: Plan,
    /// Program and arguments. Empty: only probe whether it works.
    words: Vec<OsString>,
}

impl Task {
    /// The hosts that can be reached. `None`: the network is as usual.
    fn hosts(&self) -> Option<&[HostPattern]> {
        self.plan.sandbox.as_ref()?.hosts.as_deref()
    }
}

pub(super) fn launch(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let mut plan = Plan::default();
    let mut words = Vec::new();
    let mut channel = None;
    let mut probes = false;
    let mut in_words = false;
    for argument in arguments {
        let inner = argument.to_str().and_then(|text| text.strip_prefix(INNER));
        if in_words {
            // Without the colon that keeps it from being parsed as an argument of the launcher.
            words.push(OsString::from_vec(argument.as_bytes()[1..].to_vec()));
        } else if argument == "--" {
            in_words = true;
        } else if argument == PROBE {
            probes = true;
        } else if let Some(number) = inner.and_then(|number| number.parse().ok()) {
            channel = Some(number);
        } else if !plan.take(&argument) {
            return refuse(&io::Error::other("the launcher got an unknown argument"));
        }
    }
    if words.is_empty() != probes {
        return refuse(&io::Error::other("the launcher got no program to start"));
    }
    let task = Task { plan, words };
    let outcome = match channel {
        Some(number) => {
            // SAFETY: the process that started this one has opened this descriptor for it, and nothing else here uses
            // it.
            let channel = unsafe { OwnedFd::from_raw_fd(number) };
            inner_of_bubblewrap(&task, UnixStream::from(channel))
        }
        None => outer(&task),
    };
    outcome.unwrap_or_else(|error| refuse(&error))
}

fn refuse(error: &io::Error) -> ExitCode {
    // Nobody may be listening.
    writeln!(io::stderr(), "{error}").ok();
    ExitCode::from(NOT_STARTED)
}

/// Messages from the inner process to the outer one, each beginning with a byte.
mod word {
    /// The second user namespace exists: its maps can be written.
    pub(super) const NAMESPACE: u8 = b'n';
    /// The agent has been started.
    pub(super) const STARTED: u8 = b's';
    /// The agent has ended; its raw status follows.
    pub(super) const ENDED: u8 = b'e';
    /// The listeners of a sandbox without a network, as descriptors beside the byte.
    pub(super) const LISTENERS: u8 = b'l';
    /// The start failed; the reason follows.
    pub(super) const FAILED: u8 = b'f';
}

/// An inner process, and the channel to it.
struct Started {
    inner: Pid,
    channel: UnixStream,
    /// No user namespace was needed.
    privileged: bool,
}

fn outer(task: &Task) -> io::Result<ExitCode> {
    leave_signals_to_the_agent()?;
    let parent = rustix::process::getppid();
    // Before there is a namespace whose processes all children of this one would be.
    let ways_out = task.hosts().map(start_proxy).transpose()?;
    let Started {
        inner,
        mut channel,
        privileged,
    } = match &task.plan.bubblewrap {
        Some(bubblewrap) => start_bubblewrap(bubblewrap, task)?,
        None => start_inner(task)?,
    };
    // From here on this process ends with its parent, and the inner one with this one.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    if rustix::process::getppid() != parent {
        return Err(io::Error::other("the keeper has gone"));
    }
    let mut status = None;
    while let Ok(Some((said, descriptors))) = receive(&channel) {
        match said {
            word::NAMESPACE => {
                let maps = if privileged {
                    Maps::all()?
                } else {
                    Maps::of_this_user()
                };
                maps.write(&format!("/proc/{}", inner.as_raw_nonzero()))?;
                channel.write_all(&[0])?;
            }
            word::STARTED => settle()?,
            word::LISTENERS => {
                let ways_out = ways_out
                    .as_ref()
                    .ok_or_else(|| io::Error::other("nobody wants a proxy"))?;
                let descriptors: Vec<_> = descriptors.iter().map(AsFd::as_fd).collect();
                send(ways_out, word::LISTENERS, &descriptors)?;
            }
            word::ENDED => {
                let mut raw = [0; 4];
                channel.read_exact(&mut raw)?;
                status = Some(ExitStatus::from_raw(i32::from_le_bytes(raw)));
            }
            _ => {
                let mut reason = String::new();
                channel.read_to_string(&mut reason)?;
                return Err(io::Error::other(reason));
            }
        }
    }
    let of_inner = loop {
        match rustix::process::waitpid(Some(inner), WaitOptions::empty()) {
            Ok(Some((_, status))) => break ExitStatus::from_raw(status.as_raw()),
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    };
    Ok(end_like(status.unwrap_or(of_inner)))
}

/// The next byte of the channel, and the descriptors that came with it. `None`: the other side has gone.
fn receive(channel: &UnixStream) -> io::Result<Option<(u8, Vec<OwnedFd>)>> {
    let mut said = [0];
    let mut room = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1 + proxy::MAX_LOCAL))];
    let mut control = RecvAncillaryBuffer::new(&mut room);
    let mut into = [io::IoSliceMut::new(&mut said)];
    let received = rustix::io::retry_on_intr(|| {
        rustix::net::recvmsg(channel, &mut into, &mut control, RecvFlags::CMSG_CLOEXEC)
    })?;
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    Ok((received.bytes == 1).then_some((said[0], descriptors)))
}

/// Opens the only ways out of this network namespace and hands them to the outer process.
fn open_ways_out(channel: &UnixStream, hosts: &[HostPattern]) -> io::Result<()> {
    let listeners = proxy::listen(hosts).map_err(|error| named("the proxy can't listen", &error))?;
    let descriptors: Vec<_> = listeners.iter().map(AsFd::as_fd).collect();
    send(channel, word::LISTENERS, &descriptors)
}

fn send(channel: &UnixStream, said: u8, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut room = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1 + proxy::MAX_LOCAL))];
    let mut control = SendAncillaryBuffer::new(&mut room);
    control.push(SendAncillaryMessage::ScmRights(descriptors));
    let said = [said];
    rustix::net::sendmsg(
        channel,
        &[io::IoSlice::new(&said)],
        &mut control,
        SendFlags::empty(),
    )?;
    Ok(())
}

/// Starts the process that serves the listeners, which come over the channel. It has threads, which this process can't have:
/// its children are in another PID namespace.
fn start_proxy(hosts: &[HostPattern]) -> io::Result<UnixStream> {
    let parent = rustix::process::getpid();
    let (channel, theirs) = UnixStream::pair()?;
    // SAFETY: this process has one thread, so the child finds everything as it was.
    match unsafe { libc::fork() } {
        0 => {
            drop(channel);
            // Nobody is left who could want to know why it ended.
            serve_proxy(&theirs, parent, hosts).ok();
            std::process::exit(i32::from(NOT_STARTED));
        }
        pid if pid > 0 => Ok(channel),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Serves until the outer process has gone.
fn serve_proxy(channel: &UnixStream, parent: Pid, hosts: &[HostPattern]) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    if rustix::process::getppid() != Some(parent) {
        return Ok(());
    }
    settle()?;
    while let Some((_, descriptors)) = receive(channel)? {
        proxy::serve(descriptors, hosts)?;
    }
    Ok(())
}

/// Ends as the agent did, so that a waiting process sees the same status.
fn end_like(status: ExitStatus) -> ExitCode {
    if let Some(signal) = status.signal() {
        // Returns only if the signal does not end this process.
        signal_hook::low_level::emulate_default_handler(signal).ok();
    }
    let code = status.code().unwrap_or(i32::from(NOT_STARTED));
    ExitCode::from(u8::try_from(code).unwrap_or(NOT_STARTED))
}

/// Signals that ask a process to end are for the agent, which also gets them.
fn leave_signals_to_the_agent() -> io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
        // A handler instead of ignoring the signal, because the agent would inherit that.
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    Ok(())
}

/// Releases everything that was only for the agent.
fn settle() -> io::Result<()> {
    let nothing = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&nothing)?;
    rustix::stdio::dup2_stdout(&nothing)?;
    rustix::stdio::dup2_stderr(&nothing)?;
    std::env::set_current_dir("/")?;
    crate::slim::let_go_of_code();
    Ok(())
}

fn unshare(flags: UnshareFlags) -> io::Result<()> {
    // SAFETY: this process has one thread, and shares none of its descriptors by number.
    Ok(unsafe { rustix::thread::unshare_unsafe(flags) }?)
}

/// Creates the inner process, the first one of a new PID namespace.
fn start_inner(task: &Task) -> io::Result<Started> {
    let maps = Maps::of_this_user();
    let privileged = unshare(UnshareFlags::NEWPID).is_ok();
    if !privileged {
        unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWPID)
            .map_err(|error| named("a user namespace can't be made", &error))?;
        maps.write("/proc/self")
            .map_err(|error| named("a user namespace can't be used", &error))?;
    }
    let (mut channel, mut theirs) = UnixStream::pair()?;
    // SAFETY: this process has one thread, so the child has a consistent state.
    match unsafe { libc::fork() } {
        0 => {
            // Otherwise the inner process would never notice that the outer one has gone.
            drop(channel);
            let outcome = inner(task, &mut theirs);
            if let Err(error) = outcome {
                tell_failure(&mut theirs, &error);
            }
            // Nothing of the outer process is dropped here.
            std::process::exit(i32::from(NOT_STARTED));
        }
        pid if pid > 0 => {
            let inner = Pid::from_raw(pid).ok_or_else(|| io::Error::other("a process without a number"))?;
            // The inner process can't find out its own pid outside.
            channel.write_all(&pid.to_le_bytes())?;
            Ok(Started {
                inner,
                channel,
                privileged,
            })
        }
        _ => Err(io::Error::last_os_error()),
    }
}

fn named(what: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}

fn tell_failure(channel: &mut UnixStream, error: &io::Error) {
    let mut words = vec![word::FAILED];
    words.extend(error.to_string().into_bytes());
    // If nobody listens, nobody needs to know.
    channel.write_all(&words).ok();
}

fn inner(task: &Task, channel: &mut UnixStream) -> io::Result<()> {
    let mut number = [0; 4];
    channel.read_exact(&mut number)?;
    let here = std::env::current_dir()?;
    let identity = folder_identity()?;
    unshare(UnshareFlags::NEWNS).map_err(|error| named("a mount namespace can't be made", &error))?;
    mounts::make(&task.plan)?;
    if let Some(hosts) = task.hosts() {
        // Made here, it belongs to a user namespace in which the agent has no say.
        unshare(UnshareFlags::NEWNET).map_err(|error| named("a network namespace can't be made", &error))?;
        proxy::switch_on_loopback().map_err(|error| named("the network namespace can't be used", &error))?;
        open_ways_out(channel, hosts)?;
    }
    // The agent records its process id for other programs, which look for it by the pid outside.
    let before = i32::from_le_bytes(number) - 1;
    if let Err(error) = std::fs::write("/proc/sys/kernel/ns_last_pid", before.to_string()) {
        tracing::debug!(%error, "can't give the agent its outer process id; another agent may have the same");
    }
    if task.plan.sandbox.is_some() {
        mounts::protect_kernel()?;
    }
    unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS | UnshareFlags::NEWIPC)
        .map_err(|error| named("a user namespace can't be made", &error))?;
    channel.write_all(&[word::NAMESPACE])?;
    channel.read_exact(&mut [0])?;
    if task.plan.sandbox.is_some() {
        // The mounted folder, which can be written to.
        std::env::set_current_dir(here)?;
        if folder_identity()? != identity {
            return Err(moved());
        }
    }
    run(task, channel)
}

/// The inner process if bubblewrap has created the namespaces.
fn inner_of_bubblewrap(task: &Task, mut channel: UnixStream) -> io::Result<ExitCode> {
    // The agent must not inherit it.
    rustix::io::fcntl_setfd(&channel, rustix::io::FdFlags::CLOEXEC)?;
    let outcome = check_folder().and_then(|()| {
        leave_signals_to_the_agent()?;
        block_termination(false)?;
        if let Some(hosts) = task.hosts() {
            open_ways_out(&channel, hosts)?;
        }
        run(task, &mut channel)
    });
    if let Err(error) = outcome {
        tell_failure(&mut channel, &error);
    }
    Ok(ExitCode::from(NOT_STARTED))
}

/// Starts the agent, and waits until everything has ended.
fn run(task: &Task, channel: &mut UnixStream) -> io::Result<()> {
    // Otherwise signals to the agent's group would reach this process, and its group would have no number.
    rustix::process::setsid()?;
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    let Some((program, arguments)) = task.words.split_first() else {
        channel.write_all(&ended(ExitStatus::from_raw(0)))?;
        std::process::exit(0);
    };
    let child = Command::new(program)
        .args(arguments)
        .env_remove(FOLDER)
        .envs(task.hosts().map(proxy::environment).unwrap_or_default())
        .process_group(0)
        .spawn();
    let agent = Pid::from_child(&child.map_err(|error| named("the agent can't be started", &error))?);
    channel.write_all(&[word::STARTED])?;
    settle()?;
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == agent => {
                end_leftovers();
                channel.write_all(&ended(of(status)))?;
                std::process::exit(0);
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn of(status: WaitStatus) -> ExitStatus {
    ExitStatus::from_raw(status.as_raw())
}

fn ended(status: ExitStatus) -> Vec<u8> {
    let mut words = vec![word::ENDED];
    words.extend(status.into_raw().to_le_bytes());
    words
}

/// Asks the processes that the agent left behind to end. The kernel ends the others together with this process.
fn end_leftovers() {
    let is_alone = || loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(None) => return false,
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return true,
        }
    };
    if is_alone() {
        return;
    }
    // SAFETY: no memory is involved. In the first process of a namespace, -1 stands for all other processes in it.
    unsafe { libc::kill(-1, libc::SIGTERM) };
    let deadline = Instant::now() + LEFTOVERS;
    while !is_alone() && Instant::now() < deadline {
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// The users and groups of a user namespace.
struct Maps {
    uids: String,
    gids: String,
    /// Without rights over groups outside, a process may not change its own.
    deny_groups: bool,
}

impl Maps {
    /// Only this user and group, which every process may map.
    fn of_this_user() -> Self {
        let (uid, gid) = (
            rustix::process::geteuid().as_raw(),
            rustix::process::getegid().as_raw(),
        );
        Self {
            uids: format!("{uid} {uid} 1\n"),
            gids: format!("{gid} {gid} 1\n"),
            deny_groups: true,
        }
    }

    /// All users and groups here, each mapped to itself.
    fn all() -> io::Result<Self> {
        let all = |name: &str| -> io::Result<String> {
            let map = std::fs::read_to_string(format!("/proc/self/{name}"))?;
            let lines = map.lines().filter_map(|line| {
                let mut fields = line.split_ascii_whitespace();
                let (inside, _, count) = (fields.next()?, fields.next()?, fields.next()?);
                Some(format!("{inside} {inside} {count}\n"))
            });
            Ok(lines.collect())
        };
        Ok(Self {
            uids: all("uid_map")?,
            gids: all("gid_map")?,
            deny_groups: false,
        })
    }

    fn write(&self, process: &str) -> io::Result<()> {
        if self.deny_groups {
            std::fs::write(format!("{process}/setgroups"), "deny")?;
        }
        std::fs::write(format!("{process}/uid_map"), &self.uids)?;
        std::fs::write(format!("{process}/gid_map"), &self.gids)
    }
}

/// The folder in which the agent starts, as its device and inode: bubblewrap opens it by its path.
const FOLDER: &str = "TILLER_SHIELD_FOLDER";

fn folder_identity() -> io::Result<String> {
    let folder = std::fs::metadata(".")?;
    Ok(format!("{}:{}", folder.dev(), folder.ino()))
}

fn check_folder() -> io::Result<()> {
    match std::env::var(FOLDER) {
        Ok(expected) if expected == folder_identity()? => Ok(()),
        _ => Err(moved()),
    }
}

fn moved() -> io::Error {
    io::Error::other("the working directory has been moved or replaced")
}

fn start_bubblewrap(bubblewrap: &Path, task: &Task) -> io::Result<Started> {
    let (channel, theirs) = UnixStream::pair()?;
    let this = File::open("/proc/self/exe")?;
    let mut command = Command::new(bubblewrap);
    command
        .args([
            "--unshare-pid",
            "--unshare-ipc",
            "--die-with-parent",
            "--as-pid-1",
        ])
        .args(task.hosts().map(|_| "--unshare-net"))
        .args(mounts::for_bubblewrap(&task.plan)?)
        .arg("--")
        .arg(format!("/proc/self/fd/{}", this.as_raw_fd()))
        .arg("shield")
        .args(network_args(task.hosts()))
        .arg(format!("{INNER}{}", theirs.as_raw_fd()));
    if task.words.is_empty() {
        command.arg(PROBE);
    } else {
        let word = |text: &OsString| {
            let mut word = OsString::from(":");
            word.push(text);
            word
        };
        command.arg("--").args(task.words.iter().map(word));
    }
    command.env(FOLDER, folder_identity()?);
    let numbers = [theirs.as_raw_fd(), this.as_raw_fd()];
    // SAFETY: the closure only makes calls that are safe between fork and exec.
    unsafe {
        command.pre_exec(move || {
            for number in numbers {
                let descriptor = std::os::fd::BorrowedFd::borrow_raw(number);
                rustix::io::fcntl_setfd(descriptor, rustix::io::FdFlags::empty())?;
            }
            // Otherwise bubblewrap would end at once, and everything with it. Requests to end are for the agent.
            block_termination(true)
        });
    }
    let child = command
        .stdin(Stdio::inherit())
        .spawn()
        .map_err(|error| named("bubblewrap can't be started", &error))?;
    // Both now belong to the inner process.
    drop((theirs, this));
    Ok(Started {
        inner: Pid::from_child(&child),
        channel,
        privileged: false,
    })
}

/// Blocks or unblocks requests to end, for this process and the program that it executes.
fn block_termination(block: bool) -> io::Result<()> {
    let how = if block { libc::SIG_BLOCK } else { libc::SIG_UNBLOCK };
    // SAFETY: the call before initialises the set, which is not kept.
    let outcome = unsafe {
        let mut signals = std::mem::zeroed();
        libc::sigemptyset(&raw mut signals);
        for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT] {
            libc::sigaddset(&raw mut signals, signal);
        }
        libc::sigprocmask(how, &raw const signals, std::ptr::null_mut())
    };
    if outcome == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
