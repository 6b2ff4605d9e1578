//! Waits for the first of several events.

use std::io;
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The events that occurred.
#[derive(Default)]
pub(crate) struct Ready {
    pub(crate) child: bool,
    pub(crate) end: bool,
    pub(crate) listener: bool,
    pub(crate) callers: bool,
    pub(crate) server: bool,
    pub(crate) stdout: bool,
    pub(crate) stderr: bool,
    pub(crate) stdin: bool,
}

/// The descriptors to wait for, and the events that they stand for.
#[derive(Default)]
pub(crate) struct Waiting<'a> {
    descriptors: Vec<PollFd<'a>>,
    names: Vec<fn(&mut Ready) -> &mut bool>,
}

impl<'a> Waiting<'a> {
    pub(crate) fn add(
        &mut self,
        descriptor: &'a impl AsFd,
        flags: PollFlags,
        name: fn(&mut Ready) -> &mut bool,
    ) {
        self.descriptors.push(PollFd::new(descriptor, flags));
        self.names.push(name);
    }

    pub(crate) fn until(mut self, timeout: Option<&Timespec>) -> io::Result<Ready> {
        match poll(&mut self.descriptors, timeout) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut ready = Ready::default();
        for (descriptor, name) in self.descriptors.iter().zip(self.names) {
            *name(&mut ready) |= !descriptor.revents().is_empty();
        }
        Ok(ready)
    }
}
