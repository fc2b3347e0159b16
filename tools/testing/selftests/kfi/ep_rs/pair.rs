// SPDX-License-Identifier: GPL-2.0

//! A listener, two connected endpoints, and what the cases do with them.

use core::net::SocketAddr;
use kernel::{
    prelude::*,
    str::CStr,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    }, //
};
use kfabric::consumer::{
    CompletionQueueOptions,
    Connected,
    Counter,
    Counts,
    Domain,
    Ended,
    Errno,
    Fabric,
    Hints,
    Info,
    InfoList,
    Kind,
    Listener,
    ListenerOptions,
    Local,
    MrMode,
    MsgEndpoint,
    Request,
    RequestQueue,
    Transfer, //
};

/// No wait here is for something that may not come.
pub(crate) const PATIENCE: Option<u32> = Some(60_000);

/// The provider under test, and what it offers by the table `features.def`.
pub(crate) struct Place {
    pub(crate) provider: &'static CStr,
    pub(crate) address: SocketAddr,
    pub(crate) cancels: bool,
    pub(crate) writes_atomically: bool,
    pub(crate) has_descriptors: bool,
    pub(crate) reuses: bool,
    /// Modes that regions need besides those of all providers.
    pub(crate) mode: MrMode,
}

/// Contexts that there are.
static TAGS: Atomic<i32> = Atomic::new(0);

/// A context with a number, which is counted.
pub(crate) struct Tag(pub(crate) usize);

impl Tag {
    pub(crate) fn new(number: usize) -> Self {
        TAGS.fetch_add(1, Relaxed);
        Self(number)
    }
}

impl Drop for Tag {
    fn drop(&mut self) {
        TAGS.fetch_sub(1, Relaxed);
    }
}

/// Returns the number of requests that exist, posted or not.
pub(crate) fn tags() -> i32 {
    TAGS.load(Relaxed)
}

/// Fails if a request was forgotten.
pub(crate) fn nothing_is_left() -> Result {
    check("no request is left", tags() == 0)
}

/// Says what should be and isn't.
pub(crate) fn check(what: &str, is: bool) -> Result {
    match is {
        true => Ok(()),
        false => {
            pr_err!("not so: {what}\n");
            Err(EIO)
        }
    }
}

/// Makes bytes that differ from their neighbours, and from those of another `first`.
pub(crate) fn pattern(first: u8, len: usize) -> Result<KVec<u8>> {
    let mut bytes = KVec::from_elem(0, len, GFP_KERNEL)?;
    for (byte, value) in bytes.iter_mut().zip((first..=250).cycle()) {
        *byte = value;
    }
    Ok(bytes)
}

/// Makes a request with those bytes.
pub(crate) fn filled(first: u8, len: usize, tag: usize) -> Result<Request<KVec<u8>, Tag>> {
    Ok(Request::new(pattern(first, len)?, Tag::new(tag))?)
}

/// Makes a request with `len` zeroes.
pub(crate) fn empty(len: usize, tag: usize) -> Result<Request<KVec<u8>, Tag>> {
    let zeroes = KVec::from_elem(0, len, GFP_KERNEL)?;
    Ok(Request::new(zeroes, Tag::new(tag))?)
}

pub(crate) type Queue<B = KVec<u8>> = Arc<RequestQueue<B, Tag>>;
pub(crate) type End<B = KVec<u8>> = MsgEndpoint<Connected, B, Tag>;

impl Place {
    /// Returns the same with regions that are bound to endpoints.
    pub(crate) fn binding(&self) -> Self {
        let mode = MrMode::ENDPOINT;
        Self { mode, ..*self }
    }

    pub(crate) fn hints(&self) -> Result<Hints> {
        let mode = MrMode::VIRT_ADDR | MrMode::PROV_KEY | self.mode;
        Ok(Hints::new()?.prov_name(self.provider)?.msg().mr_mode(mode))
    }

    /// Returns the info to listen with.
    pub(crate) fn source(&self) -> Result<InfoList> {
        Ok(self.hints()?.source(self.address)?.getinfo()?)
    }

    /// Returns the info to connect to a listener with.
    pub(crate) fn peer(&self, address: SocketAddr) -> Result<InfoList> {
        Ok(self.hints()?.peer(address)?.getinfo()?)
    }

    /// Returns the first offer with the mode. Providers leave out what they don't need.
    fn choose<'a>(&self, offers: &'a InfoList) -> Result<&'a Info> {
        let chosen = offers.iter().find(|info| info.mr_mode().has(self.mode));
        chosen.ok_or(ENODEV)
    }

    /// Makes a listener.
    pub(crate) fn listener(&self) -> Result<Listener> {
        let source = self.source()?;
        let info = self.choose(&source)?;
        let options = ListenerOptions::default().backlog(4);
        Ok(Listener::open(&Fabric::open(info)?, info, options)?)
    }
}

/// One side: a domain, and a queue in it for each direction.
pub(crate) struct Side<B: Local = KVec<u8>> {
    pub(crate) domain: Arc<Domain>,
    pub(crate) tx: Queue<B>,
    pub(crate) rx: Queue<B>,
}

impl<B: Local> Side<B> {
    /// Opens the domain of an offer.
    pub(crate) fn open(info: &Info) -> Result<Self> {
        let domain = Domain::open(&Fabric::open(info)?, info)?;
        let options = || CompletionQueueOptions::default().size(16).waits();
        Ok(Self {
            tx: RequestQueue::open(&domain, options())?,
            rx: RequestQueue::open(&domain, options())?,
            domain,
        })
    }
}

/// Two sides that are connected.
pub(crate) struct Pair<B: Local = KVec<u8>> {
    pub(crate) active: End<B>,
    pub(crate) passive: End<B>,
    pub(crate) active_side: Side<B>,
    pub(crate) passive_side: Side<B>,
    /// Counter of the transfers that the active side has sent.
    pub(crate) sends: Counter,
    /// Counter of the messages that the passive side has received.
    pub(crate) recvs: Counter,
}

impl<B: Local> Pair<B> {
    /// Connects two sides.
    pub(crate) fn open(place: &Place) -> Result<Self> {
        let listener = place.listener()?;
        let offers = place.peer(listener.address()?)?;
        let info = place.choose(&offers)?;
        let a = Side::<B>::open(info)?;
        let active = MsgEndpoint::open(&a.domain, info, &a.tx, &a.rx)?;
        let sends = Counter::open(&a.domain)?;
        active.count(&sends, Counts::SENDS)?;
        let active = active.enable()?.connect(b"")?;
        let request = listener.wait(PATIENCE)?.ok_or(ETIMEDOUT)?;
        let p = Side::<B>::open(request.info())?;
        let passive = request.endpoint(&p.domain, &p.tx, &p.rx)?;
        let recvs = Counter::open(&p.domain)?;
        passive.count(&recvs, Counts::RECVS)?;
        let twice = passive.count(&recvs, Counts::RECVS);
        check("counted already", twice == Err(Errno::EINVAL))?;
        let passive = passive.enable()?.accept(b"")?;
        Ok(Self {
            active: active.wait(PATIENCE)?,
            passive: passive.wait(PATIENCE)?,
            active_side: a,
            passive_side: p,
            sends,
            recvs,
        })
    }
}

/// Waits for a transfer that has ended well, and looks what it was.
pub(crate) fn done<B: Local>(
    queue: &Queue<B>,
    tag: usize,
    kind: Kind,
) -> Result<(Request<B, Tag>, Transfer)> {
    match queue.wait(PATIENCE)? {
        Some(Ended::Done(request, done)) => {
            check("its context", request.context().0 == tag)?;
            check("its kind", done.kind == kind)?;
            Ok((request, done))
        }
        Some(Ended::Failed(_, failure) | Ended::Lost(failure) | Ended::InjectFailed(failure)) => {
            pr_err!("failed: {failure:?}\n");
            Err(failure.errno.into())
        }
        None => Err(ETIMEDOUT),
    }
}

/// Waits for a transfer that has failed, and looks how.
pub(crate) fn failed<B: Local>(
    queue: &Queue<B>,
    tag: usize,
    errno: Errno,
) -> Result<Request<B, Tag>> {
    match queue.wait(PATIENCE)? {
        Some(Ended::Failed(request, failure)) => {
            check("its context", request.context().0 == tag)?;
            check("its errno", failure.errno == errno)?;
            Ok(request)
        }
        Some(_) => Err(EIO),
        None => Err(ETIMEDOUT),
    }
}
