// SPDX-License-Identifier: GPL-2.0

//! The transport, and its connected queues.
//!
//! A request ends when its command was sent, its response is there, and the target can't use its
//! key any more. The handler of completions, mostly in softirq, sees the first two in any order.
//! Mostly the target has invalidated the key with the response. Then the handler ends the request.
//! Otherwise a work item ends the key first.
//!
//! The completion of a command mostly raises no interrupt: the handler of responses reads it. A device
//! may report it after the response. The read that doesn't find it then arms the queue of commands.
//!
//! Lock order: `state` is a leaf.

use crate::{
    capsule::{
        self,
        Capsule,
        Kfi,
        Message,
        Purpose,
        RESPONSE, //
    },
    connection::Connection,
    region::{
        self,
        Region,
        RequestData, //
    },
    target::Target, //
};
use kernel::{
    impl_has_work,
    new_work,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    },
    workqueue::{
        Work,
        WorkItem, //
    }, //
};
use kfabric::{
    consumer::{
        BioVecs,
        Ended,
        Errno,
        Kind,
        RequestReader,
        Requests,
        Transfer, //
    },
    gate::GateGuard,
    irqlock::IrqLock,
    new_irq_lock,
    workqueue::OwnedQueue,
    NoIo,
    PushReserved, //
};
use nvme::{
    Command,
    Events,
    MalformedResponse,
    Options,
    QueueConfig,
    Refusal,
    Request,
    TagParts,
    Transport,
    TransportQueue, //
};

/// A connected queue of a controller. Dropping it ends the connection. May sleep.
pub(crate) struct Queue {
    connection: Connection,
    inner: Arc<Inner>,
    /// Maximum number of bytes of data behind a command.
    in_capsule: u32,
}

/// The part of a queue that the handler of completions uses.
#[pin_data]
struct Inner {
    qid: u16,
    events: Events<Kfi>,
    tasks: Arc<OwnedQueue>,
    #[pin]
    state: IrqLock<State>,
    /// Number of responses whose commands have yet to complete. It may be less for a moment.
    early: Atomic<i32>,
    /// Ends keys where that may sleep.
    #[pin]
    work: Work<Inner>,
}

struct State {
    /// A capsule for the next command that asks for an asynchronous event, if there is one.
    async_event: Option<Capsule>,
    /// Requests whose keys the work item ends, and its action on each. There is space for all requests.
    ended: KVec<(Request<Kfi>, AfterKey)>,
}

/// The action on a request whose key has ended.
#[derive(Clone, Copy)]
enum AfterKey {
    /// Ends the request with its answer, or with an error of the path.
    Complete,
    /// Queues the request again. It was not sent, because a resource is short.
    Requeue,
}

impl_has_work! {
    impl HasWork<Self> for Inner { self.work }
}

impl TagParts for Kfi {
    type Capsule = Capsule;
    /// The region with the data of the request.
    type Slot = Option<Region>;
    type Queue = Queue;
}

impl Transport for Kfi {
    const MAY_SLEEP: bool = false;

    type Controller = Target;

    fn controller(options: &Options<'_>) -> Result<Target> {
        Target::find(options)
    }

    fn slot(_target: &Target, _qid: u16) -> Result<(Capsule, Option<Region>)> {
        Ok((
            capsule::new(Command::SIZE, Purpose::Idle, GFP_KERNEL)?,
            None,
        ))
    }

    fn connect(
        target: &Target,
        config: QueueConfig,
        events: Events<Self>,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<Queue> {
        let state = State {
            async_event: None,
            ended: KVec::with_capacity(config.entries.into(), GFP_KERNEL)?,
        };
        let inner = pin_init!(Inner {
            qid: config.qid,
            events,
            tasks: target.tasks.clone(),
            state <- new_irq_lock!(state, c"kfi_nvme_queue"),
            early: Atomic::new(0),
            work <- new_work!("kfi_nvme_queue"),
        });
        let inner = Arc::pin_init(inner, GFP_KERNEL)?;
        let responses = KBox::new(Responses(inner.clone()), GFP_KERNEL)?;
        let sent = KBox::new(Sent(inner.clone()), GFP_KERNEL)?;
        Ok(Queue {
            connection: Connection::new(target, &config, is_cancelled, responses, sent)?,
            inner,
            in_capsule: config.in_capsule,
        })
    }
}

impl TransportQueue<Kfi> for Queue {
    fn queue_rq(
        &self,
        mut request: Request<Kfi>,
        last: bool,
    ) -> Result<(), (Refusal, Request<Kfi>)> {
        let capsule = match request.take_capsule() {
            // A device has kept the capsule of an earlier request with this tag.
            None => capsule::new(Command::SIZE, Purpose::Idle, GFP_ATOMIC).ok(),
            capsule => capsule,
        };
        let Some(mut capsule) = capsule else {
            self.commit_rqs();
            return Err((Refusal::Busy, request));
        };
        let prepared = self.prepare(&mut request, &mut capsule);
        let (errno, request) = match prepared {
            Ok(()) => match self.send(request, capsule, last) {
                Ok(()) => return Ok(()),
                Err(refused) => refused,
            },
            Err(errno) => {
                capsule::empty(&mut capsule);
                request.put_capsule(capsule);
                (errno, request)
            }
        };
        // Requests that wait for more must not wait for this one.
        self.commit_rqs();
        let is_busy = matches!(errno, Errno::EAGAIN | Errno::ENOMEM | Errno::ENOSPC);
        let then = if is_busy {
            AfterKey::Requeue
        } else {
            AfterKey::Complete
        };
        let Some(request) = self.inner.empty_now(request, then) else {
            // A work item ends the key, and does the rest.
            return Ok(());
        };
        let refusal = match errno {
            _ if is_busy => Refusal::Busy,
            Errno::ENOTCONN | Errno::ENODEV => Refusal::Broken,
            _ => {
                let bytes = request.payload_bytes();
                let qid = self.inner.qid;
                pr_err!("queue {qid}: {bytes} bytes can't be sent: {errno}\n");
                Refusal::Failed(errno.into())
            }
        };
        Err((refusal, request))
    }

    fn max_segments(&self) -> u32 {
        self.connection.pages
    }

    fn commit_rqs(&self) {
        // If it fails, the connection has ended, and the capsules come back.
        let _ = self.connection.endpoint.flush();
    }

    fn async_event(&self, command: &[u8; Command::SIZE]) -> Result {
        let state = &self.inner.state;
        let spare = state.with(|state| state.async_event.take());
        let mut capsule = match spare {
            Some(capsule) => capsule,
            None => capsule::new(Command::SIZE, Purpose::Idle, GFP_KERNEL)?,
        };
        capsule::set(&mut capsule, command)?;
        *capsule.context_mut() = Purpose::AsyncEvent;
        self.connection.send(capsule, true).map_err(|refused| {
            let errno = refused.errno();
            state.with(|state| state.async_event = Some(refused.into_inner()));
            errno.into()
        })
    }

    fn poll(&self) -> bool {
        let mut found = false;
        while let Ok(Some(ended)) = self.connection.completions.read() {
            self.inner.ended(Some(self), ended);
            found = true;
        }
        self.connection.each_sent(|ended| {
            self.inner.ended(Some(self), ended);
            found = true;
        });
        found
    }

    fn abandon(&self, capsule: &mut Option<Capsule>, slot: &mut Option<Region>) {
        if let Some(region) = slot.take() {
            self.connection.regions.empty(region);
        }
        if capsule.is_none() {
            // If this fails, the next request of the tag allocates one.
            *capsule = capsule::new(Command::SIZE, Purpose::Idle, GFP_KERNEL).ok();
        }
    }

    fn stop(&self) {
        // If it fails, the connection has ended.
        let _ = self.connection.endpoint.shutdown();
    }
}

impl Queue {
    /// Completes the command of a request, and copies it to the capsule.
    fn prepare(&self, request: &mut Request<Kfi>, capsule: &mut Capsule) -> Result<(), Errno> {
        if !request.has_data() {
            request.command_mut().set_no_data();
        } else {
            // A device keeps the data of an earlier request with this tag, if these are lent.
            let data = request.lend().map_err(|error| match error {
                EBUSY => Errno::EIO,
                _ => Errno::ENOMEM,
            })?;
            let data = RequestData(data);
            let len = request.payload_bytes();
            if self.fits_in_capsule(request, &data) {
                capsule.memory_mut().set_data(Some(data));
                request.command_mut().set_in_capsule(len);
            } else {
                let region = self.connection.regions.fill(data)?;
                let described = region::describe(&region, request.command_mut());
                *request.slot() = Some(region);
                described?;
            }
        }
        capsule::set(capsule, request.command().as_bytes())
    }

    /// Checks whether the data of a request are sent behind its command.
    fn fits_in_capsule(&self, request: &Request<Kfi>, data: &RequestData) -> bool {
        // The admin queue takes none.
        request.is_write()
            && request.payload_bytes() <= self.in_capsule
            && data.bio_vecs().len() <= self.connection.pieces
    }

    /// Sends the command of a request.
    fn send(
        &self,
        request: Request<Kfi>,
        mut capsule: Capsule,
        last: bool,
    ) -> Result<(), (Errno, Request<Kfi>)> {
        // Before it is sent: the response may be there at once.
        *capsule.context_mut() = Purpose::Command(request.into_sending());
        let Err(refused) = self.connection.send(capsule, last) else {
            return Ok(());
        };
        let errno = refused.errno();
        let mut capsule = refused.into_inner();
        match capsule::take_purpose(&mut capsule) {
            Purpose::Command(sending) => {
                capsule::empty(&mut capsule);
                match sending.refused(capsule) {
                    Some((request, is_answered)) => {
                        if is_answered {
                            self.inner.early.fetch_sub(1, Relaxed);
                        }
                        Err((errno, request))
                    }
                    None => Ok(()),
                }
            }
            // Never so. The request stays until the queue is stopped.
            _ => Ok(()),
        }
    }
}

impl Inner {
    /// Handles a capsule that has come back to a queue, unless the queue stops. Any context.
    fn ended(self: &Arc<Self>, queue: Option<&Queue>, ended: Ended<Message, Purpose>) {
        match ended {
            Ended::Done(mut capsule, done) => match capsule::take_purpose(&mut capsule) {
                Purpose::Response => self.response(queue, capsule, &done),
                purpose => self.sent(capsule, purpose),
            },
            Ended::Failed(mut capsule, failure) => {
                let purpose = capsule::take_purpose(&mut capsule);
                self.sent(capsule, purpose);
                if failure.errno != Errno::ECANCELED {
                    let (qid, errno) = (self.qid, failure.errno);
                    pr_err!("queue {qid}: a transfer failed: {errno}\n");
                }
                self.broken(failure.errno);
            }
            Ended::Lost(failure) | Ended::InjectFailed(failure) => self.broken(failure.errno),
        }
    }

    /// Handles a capsule that was sent, or not.
    fn sent(self: &Arc<Self>, mut capsule: Capsule, purpose: Purpose) {
        match purpose {
            Purpose::Command(sending) => {
                // Before the request can end.
                capsule::empty(&mut capsule);
                if let Some(request) = sending.sent(capsule) {
                    self.early.fetch_sub(1, Relaxed);
                    self.finish(request);
                }
            }
            Purpose::AsyncEvent => self.state.with(|state| state.async_event = Some(capsule)),
            Purpose::Response | Purpose::Idle => (),
        }
    }

    /// Handles a response.
    fn response(self: &Arc<Self>, queue: Option<&Queue>, mut capsule: Capsule, done: &Transfer) {
        let bytes = capsule
            .memory()
            .header()
            .get(..done.len)
            .unwrap_or_default();
        let response = match bytes.len() {
            RESPONSE if done.kind == Kind::Recv => self.events.response(bytes),
            _ => Err(MalformedResponse),
        };
        if response.is_err() {
            let (qid, len) = (self.qid, done.len);
            match len {
                RESPONSE => pr_err!("queue {qid}: a response to nothing: {bytes:02x?}\n"),
                _ => pr_err!("queue {qid}: a response of {len} bytes: {bytes:02x?}\n"),
            }
        }
        *capsule.context_mut() = Purpose::Response;
        // Before the request ends: the next request needs the receive.
        let again = match queue {
            Some(queue) => queue.connection.endpoint.recv(capsule).map_err(Errno::from),
            None => Err(Errno::ENOTCONN),
        };
        match response {
            Ok(Some(request)) => self.finish(request),
            Ok(None) => {
                self.early.fetch_add(1, Relaxed);
            }
            Err(MalformedResponse) => self.broken(Errno::EPROTO),
        }
        if let Err(errno) = again {
            self.broken(errno);
        }
    }

    /// Handles commands that were sent, as long as a response waits for one. If none is there yet, the
    /// read has the handler called for the next one. Any context.
    fn look_for_sent(self: &Arc<Self>, queue: &Queue) {
        let Some(sent) = &queue.connection.sent else {
            return;
        };
        while self.early.load(Relaxed) > 0 {
            let Ok(Some(ended)) = sent.read() else {
                return;
            };
            self.ended(Some(queue), ended);
        }
    }

    /// Ends the key of a request, and then the request. Any context.
    fn finish(self: &Arc<Self>, request: Request<Kfi>) {
        if let Some(request) = self.empty_now(request, AfterKey::Complete) {
            request.complete();
        }
    }

    /// Ends the key of a request. If that may sleep, leaves the request to a work item, which ends
    /// it, too. Any context.
    fn empty_now(
        self: &Arc<Self>,
        mut request: Request<Kfi>,
        then: AfterKey,
    ) -> Option<Request<Kfi>> {
        let Some(region) = request.slot().take() else {
            return Some(request);
        };
        match request.queue().connection.regions.empty_now(region) {
            Ok(()) => Some(request),
            Err(region) => {
                *request.slot() = Some(region);
                self.state
                    .with(|state| state.ended.push_reserved((request, then)));
                // Work that is queued already takes this request, too.
                let _ = self.tasks.enqueue(self.clone());
                None
            }
        }
    }

    /// Reports that the connection has failed. Any context.
    fn broken(&self, errno: Errno) {
        // nvme-core doesn't know the numbers of kfabric.
        self.events.broken(match errno.to_c() {
            -255..=-1 => errno.into(),
            _ => EIO,
        });
    }
}

impl WorkItem for Inner {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        // A task that frees memory may wait for the requests.
        let _noio = NoIo::enter();
        while let Some((mut request, then)) = this.state.with(|state| state.ended.pop()) {
            if let Some(region) = request.slot().take() {
                request.queue().connection.regions.empty(region);
            }
            match then {
                AfterKey::Complete => request.complete(),
                AfterKey::Requeue => request.requeue(),
            }
        }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // No request is left. The last work has dropped its reference then.
        self.inner.tasks.flush();
    }
}

/// The handler of responses, and of commands if there is no other.
struct Responses(Arc<Inner>);

impl RequestReader<Message, Purpose> for Responses {
    fn came(&self, requests: Requests<'_, Message, Purpose>) {
        let inside = self.0.events.queue();
        let queue = inside.as_ref().map(GateGuard::get);
        // If it fails, there is nothing to read.
        let _ = requests.each(|ended| self.0.ended(queue, ended));
        if let Some(queue) = queue {
            self.0.look_for_sent(queue);
        }
    }
}

/// The handler of commands that complete after their responses.
struct Sent(Arc<Inner>);

impl RequestReader<Message, Purpose> for Sent {
    fn came(&self, _: Requests<'_, Message, Purpose>) {
        let inside = self.0.events.queue();
        // Without a response, the handler of responses reads what has come.
        if let Some(queue) = &inside {
            self.0.look_for_sent(queue.get());
        }
    }
}
