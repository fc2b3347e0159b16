// SPDX-License-Identifier: GPL-2.0

//! The connection of a queue, over which capsules go: commands to the target, and responses back.

use crate::{
    capsule::{
        self,
        Capsule,
        Message,
        Purpose,
        RESPONSE, //
    },
    greeting::{
        greeting,
        rejection, //
    },
    region::Regions,
    target::{
        usable,
        Target, //
    }, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use kfabric::consumer::{
    CompletionQueueOptions,
    Connected,
    Connecting,
    Domain,
    Ended,
    Errno,
    Fabric,
    MsgEndpoint,
    Refused,
    RequestQueue,
    RequestReader,
    TransferFlags, //
};
use nvme::QueueConfig;

/// Time between two checks for cancellation, in milliseconds, and maximum number of checks until
/// the target accepts.
const LOOK: u32 = 100;
const LOOKS: u32 = 100;

/// Maximum number of pages of a request: 1 MiB.
const MAX_PAGES: usize = 256;

/// A connection to a target. Dropping it ends the connection, and sleeps until all posted capsules
/// have come back to the queue of completions. No key of its regions is valid then.
pub(crate) struct Connection {
    // Dropped in this order.
    pub(crate) regions: Pin<KBox<Regions>>,
    pub(crate) endpoint: Endpoint<Connected>,
    /// The completions of responses, and of commands unless `sent` has these.
    pub(crate) completions: Arc<RequestQueue<Message, Purpose>>,
    /// The completions of commands, which the handler of responses reads: an interrupt for each
    /// command would cost more. It has a handler for commands that complete after their responses.
    pub(crate) sent: Option<Arc<RequestQueue<Message, Purpose>>>,
    /// Maximum number of pieces of data behind a command.
    pub(crate) pieces: usize,
    /// Maximum number of pages of a request.
    pub(crate) pages: u32,
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
    /// - The errors of [`Target::offers`] and of [`usable`].
    pub(crate) fn new<R: RequestReader<Message, Purpose>, S: RequestReader<Message, Purpose>>(
        target: &Target,
        config: &QueueConfig,
        is_cancelled: &dyn Fn() -> bool,
        responses: KBox<R>,
        sent: KBox<S>,
    ) -> Result<Self> {
        // One more for the command of the admin queue that asks for asynchronous events.
        let receives = usize::from(config.entries) + usize::from(config.qid == 0);
        // Each entry posts a registration and a command. It posts an invalidation only after both have
        // completed. The provider adds the space that it needs for draining.
        let transmits = 2 * receives;
        let offers = target.offers(transmits, receives)?;
        let info = usable(&offers)?;
        // No one else has keys in the domain. So if the target invalidates a key, the key has ended on
        // devices in software, too.
        let domain = &Domain::open(&Fabric::open(info)?, info)?;
        // Each entry has two completions: of the command and of the response.
        let size = 2 * receives;
        let options = || {
            let options = CompletionQueueOptions::default().size(size);
            match config.cpu {
                Some(cpu) => options.cpu(cpu),
                None => options,
            }
        };
        // A queue that permits to wait is not polled.
        let interrupts = || RequestQueue::open_read_by(domain, options().waits(), responses);
        let (completions, sent) = match (config.is_polled, config.qid) {
            (true, _) => (RequestQueue::open(domain, options())?, None),
            // Nobody waits for the response to the command that asks for events.
            (false, 0) => (interrupts()?, None),
            (false, _) => {
                let sent = RequestQueue::open_read_by(domain, options(), sent)?;
                (interrupts()?, Some(sent))
            }
        };
        let transmit = sent.as_ref().unwrap_or(&completions);
        let endpoint = MsgEndpoint::open(domain, info, transmit, &completions)?.enable()?;
        // The target may respond as soon as the connection is there.
        for _ in 0..receives {
            endpoint.recv(capsule::new(RESPONSE, Purpose::Response, GFP_KERNEL)?)?;
        }
        let greeting = greeting(config);
        let connecting = endpoint.connect(&greeting)?;
        let endpoint = wait(connecting, config.qid, is_cancelled)?;
        // Data that begin within a page are in one page more.
        let pages = info.mr_iov_limit().saturating_sub(1).clamp(1, MAX_PAGES);
        let regions = Regions::new(domain, &endpoint, config.entries.into(), pages + 1)?;
        Ok(Self {
            endpoint,
            completions,
            sent,
            regions,
            // The command is a piece, too.
            pieces: info.iov_limit().saturating_sub(1),
            pages: u32::try_from(pages)?,
        })
    }

    /// Sends a capsule. Unless it is the `last`, the provider may delay it until the next one or
    /// until the endpoint is flushed. Any context.
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

    /// Calls `f` with each command that was sent, if the handler must look for these. Any context.
    pub(crate) fn each_sent(&self, f: impl FnMut(Ended<Message, Purpose>)) {
        if let Some(sent) = &self.sent {
            // If it fails, there is nothing to read.
            let _ = sent.each(f);
        }
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
