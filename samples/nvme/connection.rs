// SPDX-License-Identifier: GPL-2.0

//! The connection of a queue, over which capsules go: commands to the target, and responses back.

use crate::{
    capsule::{
        self,
        Capsule,
        Message,
        Purpose, //
    },
    greeting::{
        greeting,
        rejection, //
    },
    region::Regions,
    target::Target, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use kfabric::{
    consumer::{
        CompletionQueueOptions,
        Connected,
        Connecting,
        Ended,
        Errno,
        MsgEndpoint,
        Refused,
        RequestQueue,
        RequestReader,
        TransferFlags, //
    },
    num::index, //
};
use nvme::QueueConfig;

/// Time between two checks for cancellation, in milliseconds, and maximum number of checks until
/// the target accepts.
const LOOK: u32 = 100;
const LOOKS: u32 = 100;

/// Maximum number of commands under way that ask for asynchronous events. The admin queue has them.
const ASYNC_EVENTS: u16 = 1;

/// A connection to a target. Dropping it ends the connection, and sleeps until all posted capsules
/// have come back to the queue of completions. No key of its regions is valid then.
pub(crate) struct Connection {
    // Dropped in this order.
    pub(crate) regions: Pin<KBox<Regions>>,
    endpoint: Endpoint<Connected>,
    /// The completions of responses, and of commands unless `sent` has these.
    pub(crate) completions: Arc<RequestQueue<Message, Purpose>>,
    /// The completions of commands, which the handler of responses looks for: an interrupt for each
    /// command would cost more.
    pub(crate) sent: Option<Arc<RequestQueue<Message, Purpose>>>,
    /// Maximum number of pieces of data behind a command.
    pub(crate) pieces: usize,
}

impl Connection {
    /// Connects a queue. Sleeps until the target has accepted, a signal comes, or nobody wants the
    /// connection any more.
    ///
    /// # Errors
    ///
    /// The log has the reason.
    ///
    /// - `ECONNREFUSED`: the target rejects the connection, or nobody listens there.
    /// - `ETIMEDOUT`: the target doesn't answer.
    /// - `EINTR`: a signal came, or the connection was cancelled.
    /// - The errors of [`Target::path`].
    pub(crate) fn new<R: RequestReader<Message, Purpose>>(
        target: &Target,
        config: &QueueConfig,
        is_cancelled: &dyn Fn() -> bool,
        reader: KBox<R>,
    ) -> Result<Self> {
        let path = target.path(config.qid)?;
        let (info, domain) = (path.info()?, &path.domain);
        let events = match config.qid {
            0 => ASYNC_EVENTS,
            _ => 0,
        };
        let receives = config.entries.saturating_add(events);
        // Of each entry the command, the response, and the registration.
        let size = 3 * usize::from(receives);
        let mut options = CompletionQueueOptions::default().size(size);
        if let Some(cpu) = config.cpu {
            options = options.cpu(cpu);
        }
        let polled = || {
            let options = CompletionQueueOptions::default().size(size);
            RequestQueue::open(domain, options)
        };
        let (completions, sent) = match (config.is_polled, config.qid) {
            (true, _) => (polled()?, None),
            // Nobody waits for the response to the command that asks for events.
            (false, 0) => (RequestQueue::open_read_by(domain, options, reader)?, None),
            (false, _) => {
                let responses = RequestQueue::open_read_by(domain, options, reader)?;
                (responses, Some(polled()?))
            }
        };
        let transmit = sent.as_ref().unwrap_or(&completions);
        let endpoint = MsgEndpoint::open(domain, info, transmit, &completions)?.enable()?;
        // The target may respond as soon as the connection is there.
        for _ in 0..receives {
            endpoint.recv(capsule::for_response()?)?;
        }
        let greeting = greeting(config);
        let connecting = endpoint.connect(&greeting)?;
        let endpoint = wait(connecting, config.qid, is_cancelled)?;
        // Data that begin within a page are in one page more.
        let pages = index(target.limits().max_segments) + 1;
        let regions = Regions::new(domain, &endpoint, config.entries.into(), pages)?;
        Ok(Self {
            endpoint,
            completions,
            sent,
            regions,
            // The command is a piece, too.
            pieces: info.iov_limit().saturating_sub(1),
        })
    }

    /// Sends a capsule. Unless it is the `last`, the provider may delay it until the next one or
    /// until [`flush`](Self::flush). Any context.
    ///
    /// # Errors
    ///
    /// With the capsule:
    ///
    /// - `EAGAIN`: the queue of the device is full.
    /// - `ENOTCONN`: the connection has ended.
    pub(crate) fn send(&self, capsule: Capsule, last: bool) -> Result<(), Refused<Capsule>> {
        match last {
            true => self.endpoint.send(capsule),
            false => self.endpoint.with(TransferFlags::MORE).send(capsule),
        }
    }

    /// Sends the capsules that wait for more. Any context.
    pub(crate) fn flush(&self) {
        // If it fails, the connection has ended, and the capsules come back.
        let _ = self.endpoint.flush();
    }

    /// Calls `f` with each command that was sent, if the handler must look for these. Any context.
    pub(crate) fn each_sent(&self, f: impl FnMut(Ended<Message, Purpose>)) {
        if let Some(sent) = &self.sent {
            // If it fails, there is nothing to read.
            let _ = sent.each(f);
        }
    }

    /// Posts the receive of a response. Any context.
    pub(crate) fn receive(&self, capsule: Capsule) -> Result<(), Refused<Capsule>> {
        self.endpoint.recv(capsule)
    }

    /// Ends the connection, so that the posted capsules come back. May sleep.
    pub(crate) fn shut_down(&self) {
        // If it fails, the connection has ended.
        let _ = self.endpoint.shutdown();
    }
}

type Endpoint<S> = MsgEndpoint<S, Message, Purpose>;

/// Waits until an endpoint is connected.
fn wait(
    mut connecting: Endpoint<Connecting>,
    qid: u16,
    is_cancelled: &dyn Fn() -> bool,
) -> Result<Endpoint<Connected>> {
    let mut looks = 0..LOOKS;
    loop {
        let error = match connecting.wait(Some(LOOK)) {
            Ok(connected) => return Ok(connected),
            Err(error) => error,
        };
        let (errno, why) = (error.errno(), rejection(error.data()));
        let errno = match (error.into_inner(), is_cancelled()) {
            (Some(_), true) => Errno::EINTR,
            (Some(pending), false) if errno == Errno::ETIMEDOUT && looks.next().is_some() => {
                connecting = pending;
                continue;
            }
            _ => errno,
        };
        pr_err!("queue {qid}: not connected: {errno}{why}\n");
        return Err(errno.into());
    }
}
