// SPDX-License-Identifier: GPL-2.0

//! A connection to a target, over which capsules go: commands there, responses back.

use crate::{
    command::{
        Command,
        COMMAND, //
    },
    options::Options,
    response::{
        Response,
        RESPONSE, //
    }, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use kfabric::consumer::{
    BindsRegions,
    CompletionQueueOptions,
    Connected,
    Domain,
    Ended,
    Errno,
    Fabric,
    Hints,
    Info,
    InfoList,
    Kind,
    MrMode,
    MsgEndpoint,
    Request,
    RequestQueue,
    RequestReader, //
};

/// How long the target may take to accept a connection, in milliseconds.
const PATIENCE: u32 = 10_000;

/// For how many regions of a queue for I/O there is memory in any case.
const RESERVED: usize = 4;

/// In how many pieces the memory of a request is at most.
pub(crate) const MAX_PIECES: usize = 256;

/// The purpose of memory that is sent or received.
pub(crate) enum Tag {
    /// A command, by the place in its queue that it belongs to.
    Command(u16),
    /// Room for a response.
    Response,
}

/// The memory of a command or a response, to be sent or received.
pub(crate) struct Capsule(Request<KVec<u8>, Tag>);

impl Capsule {
    /// Makes a capsule for commands of one place in a queue, with `data` bytes of space for data.
    /// May sleep.
    pub(crate) fn new(place: u16, data: usize) -> Result<Self> {
        let bytes = KVec::from_elem(0, COMMAND + data, GFP_KERNEL)?;
        Ok(Self(Request::new(bytes, Tag::Command(place))?))
    }

    /// Writes a command of a place, with `data` bytes of [data](Self::data) behind it. Any context.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: there aren't that many.
    pub(crate) fn set(&mut self, place: u16, command: &Command, data: usize) -> Result<(), Errno> {
        *self.0.context_mut() = Tag::Command(place);
        let to = self.0.memory_mut().iter_mut();
        to.zip(command.as_bytes())
            .for_each(|(to, from)| *to = *from);
        self.0.set_part(0, COMMAND + data)
    }

    /// Returns the space for `len` bytes of data, if there is as much. Any context.
    pub(crate) fn data(&mut self, len: usize) -> Option<&mut [u8]> {
        self.0.memory_mut().get_mut(COMMAND..COMMAND + len)
    }

    /// Checks whether the capsule has space for data. Any context.
    pub(crate) fn has_room(&self) -> bool {
        self.0.memory().len() > COMMAND
    }
}

/// An event on a connection.
pub(crate) enum Event {
    /// A command of this place was sent, and its capsule can be used again.
    Sent(u16, Capsule),
    /// There is a response.
    Response(Response),
    /// Something has failed, and nothing good will come any more. If it was a command, its capsule comes
    /// back.
    Broken(Errno, Option<(u16, Capsule)>),
}

/// Returns the offer whose regions are bound to the connection that they are for.
fn wanted(offers: &InfoList) -> Result<&Info> {
    let by_endpoint = |info: &&Info| info.mr_mode().has(MrMode::ENDPOINT);
    offers.iter().find(by_endpoint).ok_or(ENODEV)
}

/// Where a target is: the device that leads there.
pub(crate) struct Way {
    offers: InfoList,
    fabric: Arc<Fabric>,
}

impl Way {
    /// Looks for it. Sleeps.
    ///
    /// # Errors
    ///
    /// - `ENODATA`: no device of this machine's leads there.
    pub(crate) fn find(options: &Options) -> Result<Self> {
        let hints = Hints::new()?
            .prov_name(c"verbs")?
            .msg()
            .mr_mode(MrMode::VIRT_ADDR | MrMode::PROV_KEY | MrMode::ENDPOINT)
            .peer(options.address)?;
        let offers = hints.getinfo()?;
        let fabric = Fabric::open(wanted(&offers)?)?;
        Ok(Self { offers, fabric })
    }

    /// Returns the maximum number of pieces of memory of a region.
    pub(crate) fn max_pieces(&self) -> usize {
        wanted(&self.offers).map_or(1, Info::mr_iov_limit)
    }
}

/// A connection.
pub(crate) struct Transport {
    // Dropped in this order; what was posted has ended then, and goes with the queue.
    endpoint: MsgEndpoint<Connected, KVec<u8>, Tag>,
    queue: Arc<RequestQueue<KVec<u8>, Tag>>,
    domain: Arc<Domain>,
}

impl Transport {
    /// Connects a queue for `entries` commands at once. If there is a reader, it reads the events.
    /// The caller can wait for those that the reader leaves. Sleeps until the target has answered.
    ///
    /// # Errors
    ///
    /// - `ECONNREFUSED`: it doesn't want to, or nobody listens there.
    /// - `ETIMEDOUT`.
    pub(crate) fn connect<R: RequestReader<KVec<u8>, Tag>>(
        way: &Way,
        queue: u16,
        entries: u16,
        controller: u16,
        reader: Option<KBox<R>>,
    ) -> Result<Self> {
        let info = wanted(&way.offers)?;
        // A domain of its own: nobody else can have a key in it. So the target's invalidation is
        // enough to end a key, also if the device is software.
        let domain = Domain::open(&way.fabric, info)?;
        if reader.is_some() {
            // A task that frees memory by writing it to this disk mustn't wait for memory.
            if let Err(errno) = domain.reserve(RESERVED, way.max_pieces().min(MAX_PIECES)) {
                pr_warn!("queue {queue}: nothing is reserved: {errno}\n");
            }
        }
        let places = 2 * usize::from(entries) + 2;
        let options = CompletionQueueOptions::default().size(places).waits();
        let requests = match reader {
            Some(reader) => RequestQueue::open_read_by(&domain, options, reader)?,
            None => RequestQueue::open(&domain, options)?,
        };
        let endpoint = MsgEndpoint::open(&domain, info, &requests, &requests)?.enable()?;
        // Before it is connected: the first response may be there at once.
        for _ in 0..entries {
            let bytes = KVec::from_elem(0, RESPONSE, GFP_KERNEL)?;
            endpoint.recv(Request::new(bytes, Tag::Response)?)?;
        }
        let connecting = endpoint.connect(&greeting(queue, entries, controller))?;
        let endpoint = connecting.wait(Some(PATIENCE)).map_err(|failed| {
            let why = rejection(failed.data());
            pr_err!("queue {queue}: not connected: {}{why}\n", failed.errno());
            Error::from(failed.errno())
        })?;
        Ok(Self {
            endpoint,
            queue: requests,
            domain,
        })
    }

    pub(crate) fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    /// Returns the endpoint that regions are bound to.
    pub(crate) fn endpoint(&self) -> &impl BindsRegions {
        &self.endpoint
    }

    /// Sends a command, whose capsule comes back with [`Event::Sent`]. Any context.
    ///
    /// # Errors
    ///
    /// With the capsule:
    ///
    /// - `EAGAIN`: too many are under way.
    /// - `ENOTCONN`.
    pub(crate) fn send(&self, capsule: Capsule) -> Result<(), (Errno, Capsule)> {
        self.endpoint
            .send(capsule.0)
            .map_err(|refused| (refused.errno(), Capsule(refused.into_inner())))
    }

    /// Waits for the next event, for `msecs` milliseconds or for ever; `None` if there is none.
    /// Sleeps.
    pub(crate) fn wait(&self, msecs: Option<u32>) -> Result<Option<Event>> {
        Ok(self.queue.wait(msecs)?.map(|ended| self.event(ended)))
    }

    /// Returns the next event, if there is one. Any context.
    pub(crate) fn read(&self) -> Option<Event> {
        self.queue.read().ok()?.map(|ended| self.event(ended))
    }

    /// Returns the event for a request that has ended. Any context.
    pub(crate) fn event(&self, ended: Ended<KVec<u8>, Tag>) -> Event {
        match ended {
            Ended::Done(request, done) => match (done.kind, request.context()) {
                (_, Tag::Command(place)) => Event::Sent(*place, Capsule(request)),
                (Kind::Recv, Tag::Response) => {
                    let bytes = request.memory().get(..done.len).unwrap_or_default();
                    let response = Response::parse(bytes);
                    // Before anything else is sent that it would be for.
                    let again = self.endpoint.recv(request);
                    match (response, again) {
                        (Some(response), Ok(())) => Event::Response(response),
                        (Some(_), Err(refused)) => Event::Broken(refused.errno(), None),
                        (None, _) => {
                            pr_err!("a response of {} bytes\n", done.len);
                            Event::Broken(Errno::ETRUNC, None)
                        }
                    }
                }
                _ => Event::Broken(Errno::EIO, None),
            },
            Ended::Failed(request, failure) => {
                let place = match request.context() {
                    Tag::Command(place) => Some(*place),
                    Tag::Response => None,
                };
                Event::Broken(failure.errno, place.map(|place| (place, Capsule(request))))
            }
            Ended::Lost(failure) | Ended::InjectFailed(failure) => {
                Event::Broken(failure.errno, None)
            }
        }
    }

    /// Ends the connection; what is under way fails. May sleep.
    pub(crate) fn shut_down(&self) {
        // Or it has ended already.
        let _ = self.endpoint.shutdown();
    }
}

/// Returns the private data of a host that connects.
fn greeting(queue: u16, entries: u16, controller: u16) -> [u8; 32] {
    let mut greeting = [0; 32];
    let numbers = [0, queue, entries, entries.saturating_sub(1), controller];
    let bytes = numbers.into_iter().flat_map(u16::to_le_bytes);
    greeting
        .iter_mut()
        .zip(bytes)
        .for_each(|(to, from)| *to = from);
    greeting
}

/// Returns a text for the private data of a target that rejects.
fn rejection(data: &[u8]) -> &'static str {
    match data {
        [_, _, status, _, ..] => match status {
            1 => ": greeting too short",
            2 => ": unknown format",
            3 => ": invalid queue",
            4 => ": queue too long",
            5 | 6 => ": no room left",
            _ => "",
        },
        _ => "",
    }
}
