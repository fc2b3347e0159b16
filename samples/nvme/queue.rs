// SPDX-License-Identifier: GPL-2.0

//! A queue of I/O commands.
//!
//! A command has a place in it, which is its request's tag, and part of its id. It has ended when its capsule was sent and the
//! response is there, whichever comes first; then its key is ended, and then its request.
//!
//! [`IoQueue::take`] takes what has arrived, mostly in softirq. It ends commands without keys, and
//! commands whose key the target has ended. It leaves the others to a work item, which may sleep.
//! Lock order: the places are a leaf.

mod io;
mod places;
mod queue_gate;

use crate::{
    identify::Namespace,
    keys::Call,
    transport::{
        Event,
        Transport, //
    }, //
};
use block::Op;
use io::Prepared;
pub(crate) use io::RequestRefusal;
use kernel::{
    impl_has_work,
    new_work,
    prelude::*,
    sync::Arc,
    workqueue::{
        Queue,
        Work,
        WorkItem, //
    }, //
};
use kfabric::{
    consumer::Errno,
    irqlock::IrqLock,
    new_irq_lock,
    NoIo, //
};
use places::{
    number_of,
    Places, //
};
pub(crate) use queue_gate::{
    QueueGate,
    Reader, //
};

/// How many commands at once have data in their capsules.
const ROOMY: u16 = 32;

/// Which of the links of a controller, which has one after the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LinkNumber(pub(crate) u32);

/// The owner of queues.
pub(crate) trait Owner: Send + Sync + 'static {
    /// Reports that a queue of this link is of no use any more. May be called more than once, and
    /// after the queue was stopped. May sleep.
    fn broken(&self, link: LinkNumber, errno: Errno);

    /// Returns the workqueue for the work of queues.
    fn tasks(&self) -> &Queue;
}

/// How the memory of requests gets to the target.
#[derive(Clone, Copy)]
pub(crate) struct Memory {
    /// By which call it is registered,
    pub(crate) call: Call,
    /// in how many pieces at most;
    pub(crate) pieces: usize,
    /// and how many bytes go in a capsule instead.
    pub(crate) in_capsule: u32,
}

/// A queue of I/O commands.
#[pin_data]
pub(crate) struct IoQueue {
    link: LinkNumber,
    number: u16,
    transport: Transport,
    inlet: Arc<QueueGate>,
    memory: Memory,
    #[pin]
    places: IrqLock<Places>,
    owner: Arc<dyn Owner>,
    /// Ends what is over, where that may take time.
    #[pin]
    work: Work<IoQueue>,
}

impl_has_work! {
    impl HasWork<Self> for IoQueue { self.work }
}

impl IoQueue {
    /// Makes a queue of a link over a connection, for `depth` commands at once. May sleep.
    pub(crate) fn new(
        (link, number): (LinkNumber, u16),
        (transport, inlet): (Transport, Arc<QueueGate>),
        owner: Arc<dyn Owner>,
        depth: u16,
        memory: Memory,
    ) -> Result<Arc<Self>> {
        let roomy = match memory.in_capsule {
            0 => (0, 0),
            bytes => (depth.min(ROOMY), usize::try_from(bytes)?),
        };
        let places = Places::new(depth, memory.pieces, roomy)?;
        let queue = pin_init!(Self {
            link,
            number,
            transport,
            inlet,
            memory,
            places <- new_irq_lock!(places, c"kfi_nvme_places"),
            owner,
            work <- new_work!("kfi_nvme_queue"),
        });
        Arc::pin_init(queue, GFP_KERNEL)
    }

    /// Returns the link of the queue.
    pub(crate) fn link(&self) -> LinkNumber {
        self.link
    }

    /// Begins a request on a namespace. May sleep, but not for I/O.
    ///
    /// # Errors
    ///
    /// With the request, if it should be tried again.
    pub(crate) fn submit(
        &self,
        namespace: u32,
        format: &Namespace,
        request: block::Request,
    ) -> Result<(), RequestRefusal> {
        let _noio = NoIo::enter();
        let Ok(number) = u16::try_from(request.tag()) else {
            return Err(RequestRefusal(request, Errno::EINVAL));
        };
        let data = self.fits_in_capsule(&request);
        let begun = self.places.with(|places| places.begin(number, data));
        let Some((id, mut capsule, list)) = begun else {
            return Err(RequestRefusal(request, Errno::EAGAIN));
        };
        let prepared = self.prepare(namespace, format, request, list, &mut capsule);
        let (not_taken, list) = match prepared {
            Ok(Prepared {
                io,
                command,
                data,
                list,
            }) => {
                let set = capsule.set(number, &command.with_id(id), data);
                // Before it is sent: the response may be there at once.
                self.places.with(|places| places.send(number, io, list));
                let sent = match set {
                    Ok(()) => self.transport.send(capsule),
                    Err(errno) => Err((errno, capsule)),
                };
                let Err((errno, back)) = sent else {
                    return Ok(());
                };
                capsule = back;
                let io = self.places.with(|places| places.abandon(number));
                let request = io.and_then(|io| self.close(number, io));
                (request.map(|request| RequestRefusal(request, errno)), None)
            }
            Err(refused) => refused,
        };
        self.places.with(|places| {
            places.give_back(number, capsule);
            places.list(number, list);
        });
        match not_taken {
            Some(not_taken) => Err(not_taken),
            None => Ok(()),
        }
    }

    /// Checks whether the data of a request fit in its capsule.
    fn fits_in_capsule(&self, request: &block::Request) -> bool {
        let most = self.memory.in_capsule;
        match request.op() {
            Op::Write => request.bytes() <= most,
            Op::Discard => most >= 16,
            _ => false,
        }
    }

    /// Takes what comes from here on, until it is [stopped](Self::stop). To be called once. May sleep.
    pub(crate) fn start(self: &Arc<Self>) {
        self.inlet.open(self);
    }

    /// Takes what has happened on the connection. Any context.
    fn take(self: &Arc<Self>, event: Event) {
        let number = match event {
            Event::Sent(number, capsule) => {
                self.places.with(|places| places.give_back(number, capsule));
                number
            }
            Event::Response(response) => {
                let id = response.id;
                if !self.places.with(|places| places.respond(response)) {
                    pr_err!("queue {}: a response to nothing: {id:#06x}\n", self.number);
                    return self.broken(Errno::EIO);
                }
                number_of(id)
            }
            Event::Broken(errno, capsule) => {
                if let Some((number, capsule)) = capsule {
                    self.places.with(|places| places.give_back(number, capsule));
                }
                return self.broken(errno);
            }
        };
        let Some((io, status)) = self.places.with(|places| places.over(number)) else {
            return;
        };
        match io.at_once() {
            Ok((request, list)) => {
                if list.is_some() {
                    self.places.with(|places| places.list(number, list));
                }
                request.end(status);
            }
            Err(io) => {
                self.places.with(|places| places.keep(number, io, status));
                self.work();
            }
        }
    }

    /// Leaves it to the work item to tell the owner. Any context.
    fn broken(self: &Arc<Self>, errno: Errno) {
        self.places.with(|places| places.broken = Some(errno));
        self.work();
    }

    /// Has the work item do what there is to do. Any context.
    fn work(self: &Arc<Self>) {
        // Already queued is as good.
        let _ = self.owner.tasks().enqueue(self.clone());
    }

    /// Ends what is over. Sleeps.
    fn settle(&self) {
        while let Some((number, io, status)) = self.places.with(|places| places.kept()) {
            if let Some(request) = self.close(number, io) {
                request.end(status);
            }
        }
    }

    /// Ends the connection, and returns when nothing is taken any more. Then each request that has not
    /// ended goes to `left`. Sleeps.
    ///
    /// To be called when nothing is submitted any more, and once.
    pub(crate) fn stop(&self, mut left: impl FnMut(block::Request)) {
        self.transport.shut_down();
        self.inlet.shut();
        self.settle();
        // The remaining commands are given up: the target may or may not have carried them out, and
        // repeating them does no harm.
        for number in 0..self.places.with(|places| places.depth()) {
            let io = self.places.with(|places| places.abandon(number));
            if let Some(request) = io.and_then(|io| self.close(number, io)) {
                left(request);
            }
        }
    }
}

impl WorkItem for IoQueue {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let _noio = NoIo::enter();
        this.settle();
        if let Some(errno) = this.places.with(|places| places.broken.take()) {
            this.owner.broken(this.link, errno);
        }
    }
}
