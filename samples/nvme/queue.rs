// SPDX-License-Identifier: GPL-2.0

//! A queue of I/O commands.
//!
//! A command has a place in it, which is its request's tag. It has ended when its capsule was sent and the
//! response is there, whichever comes first; then its key is ended, and then its request.
//!
//! One task takes what comes ([`IoQueue::start`]), so it may sleep to end keys. Lock order: the places are a
//! leaf.

mod io;

use crate::{
    identify::Namespace,
    keys::Call,
    response::Response,
    transport::{
        Capsule,
        Event,
        Transport, //
    }, //
};
use block::{
    Pieces,
    Status, //
};
use io::Io;
pub(crate) use io::NotTaken;
use kernel::{
    impl_has_work,
    new_spinlock,
    new_work,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        Completion,
        SpinLock, //
    },
    workqueue::{
        Queue,
        Work,
        WorkItem, //
    }, //
};
use kfabric::{
    consumer::Errno,
    NoIo, //
};

/// A place for a command.
struct Place {
    /// Unless it is being sent.
    capsule: Option<Capsule>,
    /// Room to list a request's memory, unless it is in use.
    list: Option<Pieces>,
    /// What the command under way is for.
    io: Option<Io>,
    /// How it has ended.
    response: Option<Response>,
}

/// What has ended, and how.
type Over = (u16, Io, Status);

impl Place {
    /// What is over now, if the response is there, and the capsule back.
    fn over(&mut self, number: u16) -> Option<Over> {
        self.capsule.as_ref()?;
        let status = self.response?.status.to_block();
        self.response = None;
        Some((number, self.io.take()?, status))
    }
}

/// Who is told that a queue is of no use any more.
pub(crate) trait Owner: Send + Sync + 'static {
    /// It isn't. May be told more than once. May sleep.
    fn broken(&self, errno: Errno);
}

/// A queue of I/O commands.
#[pin_data]
pub(crate) struct IoQueue {
    number: u16,
    transport: Transport,
    /// How the memory of requests is registered.
    call: Call,
    #[pin]
    places: SpinLock<KVec<Place>>,
    owner: Arc<dyn Owner>,
    stops: Atomic<bool>,
    #[pin]
    stopped: Completion,
    /// Takes what comes.
    #[pin]
    work: Work<IoQueue>,
}

impl_has_work! {
    impl HasWork<Self> for IoQueue { self.work }
}

impl IoQueue {
    /// A queue over a connection, for so many commands at once with so many pieces of memory, registered by
    /// a call. May sleep.
    pub(crate) fn new(
        number: u16,
        transport: Transport,
        owner: Arc<dyn Owner>,
        depth: u16,
        (call, pieces): (Call, usize),
    ) -> Result<Arc<Self>> {
        let mut places = KVec::with_capacity(depth.into(), GFP_KERNEL)?;
        for number in 0..depth {
            let place = Place {
                capsule: Some(Capsule::new(number)?),
                list: Some(Pieces::with_capacity(pieces)?),
                io: None,
                response: None,
            };
            places.push(place, GFP_KERNEL)?;
        }
        let queue = pin_init!(Self {
            number,
            transport,
            call,
            places <- new_spinlock!(places),
            owner,
            stops: Atomic::new(false),
            stopped <- Completion::new(),
            work <- new_work!("kfi_nvme_queue"),
        });
        Arc::pin_init(queue, GFP_KERNEL)
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
    ) -> Result<(), NotTaken> {
        let _noio = NoIo::enter();
        let Ok(number) = u16::try_from(request.tag()) else {
            return Err(NotTaken(request, Errno::EINVAL));
        };
        let taken = {
            let mut places = self.places.lock();
            places
                .get_mut(usize::from(number))
                .and_then(|place| Some((place.capsule.take()?, place.list.take())))
        };
        let Some((mut capsule, list)) = taken else {
            return Err(NotTaken(request, Errno::EAGAIN));
        };
        let (io, command, list) = match self.prepare(namespace, format, request, list) {
            Ok(prepared) => prepared,
            Err((not_taken, list)) => {
                self.with_place(number, |place| {
                    (place.capsule, place.list) = (Some(capsule), list);
                });
                return match not_taken {
                    Some(not_taken) => Err(not_taken),
                    None => Ok(()),
                };
            }
        };
        capsule.set(&command.with_id(number));
        // Before it is sent: the response may be there at once.
        self.with_place(number, |place| {
            // Nothing that came before is about it.
            (place.io, place.list, place.response) = (Some(io), list, None);
        });
        let Err((errno, capsule)) = self.transport.send(capsule) else {
            return Ok(());
        };
        let io = self.with_place(number, |place| {
            place.capsule = Some(capsule);
            place.io.take()
        });
        match io.flatten().and_then(|io| self.close(number, io)) {
            Some(request) => Err(NotTaken(request, errno)),
            None => Ok(()),
        }
    }

    /// Takes what comes, in a task of this queue's, until it is [stopped](Self::stop). To be called once.
    pub(crate) fn start(self: &Arc<Self>, tasks: &Queue) {
        // It isn't queued yet.
        let _ = tasks.enqueue(self.clone());
    }

    fn take(&self, event: Event) {
        let over = match event {
            Event::Sent(number, capsule) => self.with_place(number, |place| {
                place.capsule = Some(capsule);
                place.over(number)
            }),
            Event::Response(response) => {
                let number = response.id;
                let over = self.with_place(number, |place| {
                    place.io.as_ref()?;
                    place.response = Some(response);
                    Some(place.over(number))
                });
                match over.flatten() {
                    Some(over) => Some(over),
                    None => {
                        pr_err!("queue {}: a response to nothing: {number}\n", self.number);
                        self.owner.broken(Errno::EIO);
                        return;
                    }
                }
            }
            Event::Broken(errno, capsule) => {
                if let Some((number, capsule)) = capsule {
                    self.with_place(number, |place| place.capsule = Some(capsule));
                }
                if !self.stops.load(Relaxed) {
                    self.owner.broken(errno);
                }
                return;
            }
        };
        if let Some((number, io, status)) = over.flatten() {
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
        self.stops.store(true, Relaxed);
        self.transport.shut_down();
        self.transport.wake();
        self.stopped.wait_for_completion();
        // Whatever has come until now is of no interest any more: the target may or may not have done
        // it, and doing it again does no harm.
        let depth = self.places.lock().len();
        for number in 0..u16::try_from(depth).unwrap_or(u16::MAX) {
            let io = self.with_place(number, |place| place.io.take());
            if let Some(request) = io.flatten().and_then(|io| self.close(number, io)) {
                left(request);
            }
        }
    }

    fn with_place<R>(&self, number: u16, f: impl FnOnce(&mut Place) -> R) -> Option<R> {
        self.places.lock().get_mut(usize::from(number)).map(f)
    }
}

impl WorkItem for IoQueue {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let _noio = NoIo::enter();
        while !this.stops.load(Relaxed) {
            match this.transport.wait(None) {
                Ok(Some(event)) => this.take(event),
                Ok(None) => (),
                Err(_) => break,
            }
        }
        this.stopped.complete_all();
    }
}
