// SPDX-License-Identifier: GPL-2.0

//! Commands one at a time, for which somebody waits: those of the admin queue, and the first on any
//! other.

use crate::{
    command::Command,
    keys::{
        Call,
        Key,
        KeyedBuffer, //
    },
    response::Response,
    transport::{
        Capsule,
        Event,
        Transport, //
    }, //
};
use kernel::prelude::*;
use kfabric::consumer::Access;

/// How long a command may take, in milliseconds.
const PATIENCE: u32 = 15_000;

/// A connection for commands one at a time.
pub(crate) struct Channel {
    transport: Transport,
    /// By which data are registered.
    call: Call,
    /// Unless it is lost, and the connection with it.
    capsule: Option<Capsule>,
    id: u16,
}

impl Channel {
    /// Makes a channel over a connection. May sleep.
    pub(crate) fn new(transport: Transport, call: Call) -> Result<Self> {
        Ok(Self {
            transport,
            call,
            capsule: Some(Capsule::new(0, 0)?),
            id: 0,
        })
    }

    pub(crate) fn into_transport(self) -> Transport {
        self.transport
    }

    pub(crate) fn shut_down(&self) {
        self.transport.shut_down();
    }

    /// Has a command carried out. Sleeps.
    ///
    /// # Errors
    ///
    /// - The status of the target.
    /// - `ENOTCONN`, `ETIMEDOUT`: the connection is of no use any more.
    pub(crate) fn execute(&mut self, what: &str, command: Command) -> Result<Response> {
        let response = self.try_execute(command)?;
        match response.status.is_ok() {
            true => Ok(response),
            false => {
                pr_err!("{what}: {}\n", response.status);
                Err(response.status.to_error())
            }
        }
    }

    /// Executes a command with data that the target reads. Sleeps.
    pub(crate) fn write(&mut self, what: &str, command: Command, data: &[u8]) -> Result<Response> {
        let mut buffer = KVec::new();
        buffer.extend_from_slice(data, GFP_KERNEL)?;
        self.with_data(what, command, buffer, Access::REMOTE_READ)
            .map(|(response, _)| response)
    }

    /// Executes a command with `len` bytes of data that the target writes, and returns them.
    /// Sleeps.
    pub(crate) fn read(&mut self, what: &str, command: Command, len: usize) -> Result<KVec<u8>> {
        let buffer = KVec::from_elem(0, len, GFP_KERNEL)?;
        self.with_data(what, command, buffer, Access::REMOTE_WRITE)
            .map(|(_, data)| data)
    }

    fn with_data(
        &mut self,
        what: &str,
        command: Command,
        buffer: KVec<u8>,
        access: Access,
    ) -> Result<(Response, KVec<u8>)> {
        let (keyed, key): (_, Key) = KeyedBuffer::new(&self.transport, self.call, buffer, access)?;
        let response = self.execute(what, command.with_key(Some(key)));
        // In any case, and before it is known what has come of it.
        let buffer = keyed.close()?;
        Ok((response?, buffer))
    }

    fn try_execute(&mut self, command: Command) -> Result<Response> {
        let mut capsule = self.capsule.take().ok_or(ENOTCONN())?;
        self.id = self.id.wrapping_add(1);
        capsule.set(0, &command.with_id(self.id), 0)?;
        if let Err((errno, capsule)) = self.transport.send(capsule) {
            self.capsule = Some(capsule);
            return Err(errno.into());
        }
        let mut response = None;
        while self.capsule.is_none() || response.is_none() {
            match self.transport.wait(Some(PATIENCE))? {
                Some(Event::Sent(_, capsule)) => self.capsule = Some(capsule),
                Some(Event::Response(came)) if came.id == self.id => response = Some(came),
                Some(Event::Response(came)) => {
                    pr_err!("a response to nothing: {}\n", came.id);
                    return Err(EIO);
                }
                Some(Event::Broken(errno, _)) => return Err(errno.into()),
                None => {
                    // The target may still answer: that would be to nothing.
                    self.shut_down();
                    return Err(ETIMEDOUT);
                }
            }
        }
        response.ok_or(EIO)
    }
}

/// Returns "not connected". The kernel has a constant for it from 7.3 on.
#[allow(non_snake_case)]
fn ENOTCONN() -> Error {
    kfabric::consumer::Errno::ENOTCONN.into()
}
