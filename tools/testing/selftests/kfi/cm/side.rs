// SPDX-License-Identifier: GPL-2.0

//! A side of a connection: an endpoint with its queues, and what completes there.

use core::net::{
    IpAddr,
    Ipv4Addr,
    Ipv6Addr,
    SocketAddr, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Full,
            Relaxed, //
        },
        Arc, //
    }, //
};
use rdma::{
    cm::{
        ConnParam,
        Connection,
        Endpoint,
        Listener,
        Proposal,
        Resolved, //
    },
    gather::{
        Buffer,
        Gather, //
    },
    port::{
        Gid,
        Path, //
    },
    qp::{
        Depths,
        Peer,
        ReadyToSend,
        Reliability, //
    },
    request::{
        CompletedRequest,
        Request, //
    },
    wc::Arrival,
    wr::{
        Receive,
        WorkRequest, //
    },
    Access,
    AccessFlags,
    Cq,
    Pd,
    Qp,
    RegQp,
    WrError, //
};

use crate::{
    expect,
    expect_eq,
    told::{
        wait_for,
        Callers,
        Diary,
        Told, //
    }, //
};

/// How long connecting may take, in milliseconds.
pub(crate) const LIMIT: u32 = 60_000;
/// How long to drain, in seconds.
pub(crate) const DRAIN: u32 = 60;
/// How many requests there may be in each queue.
pub(crate) const DEPTH: u32 = 16;

/// How many bytes may be copied when they are posted.
pub(crate) const INLINE: u32 = 32;

/// Returns all rights of peers and of the device.
pub(crate) fn all() -> AccessFlags {
    Access::LocalWrite | Access::RemoteRead | Access::RemoteWrite | Access::RemoteAtomic
}

/// The addresses that the device under test has.
pub(crate) const V4: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 51, 100, 1));
pub(crate) const V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));

/// Returns an address with a port.
pub(crate) fn at(ip: IpAddr, port: u16) -> SocketAddr {
    SocketAddr::new(ip, port)
}

/// Returns the error for a request to a broken queue pair.
pub(crate) fn not_connected() -> Error {
    // No kernel before 7.3 has the constant.
    Error::from_errno(-107)
}

/// Returns the proposal for a connection.
pub(crate) fn proposal(private_data: &[u8]) -> Proposal<'_> {
    Proposal {
        terms: ConnParam::default(),
        private_data,
        limit: LIMIT,
        stall: 0,
    }
}

/// How a request ended.
pub(crate) struct Outcome {
    /// How often it has.
    times: Atomic<u32>,
    kind: Atomic<u32>,
    /// The arrival: bytes, the data with them, and the number or key.
    came: [Atomic<u32>; 3],
}

/// In short.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    Done,
    Flushed,
    Failed(u32),
    Other,
}

impl Outcome {
    fn new() -> Result<Arc<Self>> {
        let this = Self {
            times: Atomic::new(0),
            kind: Atomic::new(0),
            came: [const { Atomic::new(0) }; 3],
        };
        Ok(Arc::new(this, GFP_KERNEL)?)
    }

    fn put(&self, ended: &CompletedRequest<'_>) {
        let kind = match &ended.result {
            Ok(arrival) => {
                let with = match arrival {
                    Arrival {
                        imm: Some(it),
                        written: true,
                        ..
                    } => (3, *it),
                    Arrival { imm: Some(it), .. } => (1, *it),
                    Arrival {
                        invalidated: Some(it),
                        ..
                    } => (2, *it),
                    _ => (0, 0),
                };
                let came = [arrival.bytes, with.0, with.1];
                for (to, from) in self.came.iter().zip(came) {
                    to.store(from, Relaxed);
                }
                1
            }
            Err(WrError::Flushed) => 2,
            Err(WrError::Failed(status)) => 100 + status.as_raw(),
            Err(_) => 3,
        };
        self.kind.store(kind, Relaxed);
        self.times.fetch_add(1, Full);
    }

    /// Returns how the request ended, if it has; an error if it has more than once.
    pub(crate) fn now(&self) -> Result<Option<Kind>> {
        match self.times.load(Acquire) {
            0 => Ok(None),
            1 => Ok(Some(match self.kind.load(Relaxed) {
                1 => Kind::Done,
                2 => Kind::Flushed,
                failed @ 100.. => Kind::Failed(failed - 100),
                _ => Kind::Other,
            })),
            _ => Err(EEXIST),
        }
    }

    /// Returns the arrival that came with the end.
    pub(crate) fn arrival(&self) -> Arrival {
        let [bytes, what, with] = [0, 1, 2].map(|i: usize| {
            let it = self.came.get(i);
            it.map_or(0, |it| it.load(Relaxed))
        });
        Arrival {
            bytes,
            imm: (what & 1 != 0).then_some(with),
            invalidated: (what == 2).then_some(with),
            written: what == 3,
        }
    }

    /// Waits until it has ended.
    pub(crate) fn wait(&self) -> Result<Kind> {
        wait_for(|| self.now().transpose())?
    }
}

/// The resources that both sides share: the device, and a queue pair to register on.
pub(crate) struct Bench {
    pub(crate) pd: Arc<Pd>,
    pub(crate) local: Arc<RegQp>,
}

impl Bench {
    /// Makes the resources on the device that leads to the address.
    pub(crate) fn new() -> Result<Self> {
        let resolved = Resolved::new(None, at(V4, 9), LIMIT)?;
        let pd = Pd::alloc(resolved.device())?;
        let local = RegQp::new(connect_to_self(&pd)?, DRAIN)?;
        Ok(Self { pd, local })
    }
}

/// Makes a queue pair and connects it to itself on the first port, by the first GID that has a
/// network device.
fn connect_to_self(pd: &Arc<Pd>) -> Result<Qp<ReadyToSend>> {
    let depths = Depths {
        send: DEPTH,
        receive: 0,
        segments: 1,
        inline: 0,
    };
    let port = pd.device().port(1).ok_or(ENODEV)?;
    let attr = port.query()?;
    let gid =
        (0..attr.gids).find_map(|index| Gid::get(port, index).ok().filter(|gid| gid.mac().is_ok()));
    let path = Path::to_self(port, attr.lid, attr.mtu, gid)?;
    let cq = Cq::alloc(pd.device(), depths.in_send_queue(), None)?;
    let how = Reliability::default();
    let qp =
        Qp::create(pd, [&cq, &cq], depths, None)?.init(port.number(), AccessFlags::default())?;
    let itself = Peer {
        number: qp.number(),
        psn: 0,
    };
    qp.connect(path, itself, itself.psn, &how)
}

/// A side.
pub(crate) struct Side {
    pub(crate) endpoint: Arc<Endpoint>,
    pub(crate) diary: Arc<Diary>,
}

impl Side {
    pub(crate) fn new(bench: &Bench) -> Result<Self> {
        Self::with_inline(bench, INLINE)
    }

    /// Makes a side whose driver should copy `inline` bytes of a request.
    pub(crate) fn with_inline(bench: &Bench, inline: u32) -> Result<Self> {
        let cq = Cq::alloc(bench.pd.device(), 2 * (DEPTH + 2), None)?;
        cq.add_listener();
        let depths = Depths {
            send: DEPTH,
            receive: DEPTH,
            segments: 2,
            inline,
        };
        let qp = Qp::create(&bench.pd, [&cq, &cq], depths, None)?.init(1, all())?;
        expect_eq!(qp.inline_limit(), inline);
        Ok(Self {
            endpoint: Endpoint::new(qp)?,
            diary: Diary::new()?,
        })
    }

    /// Makes a gather of `length` equal bytes for a request on this side.
    pub(crate) fn copied(&self, byte: u8, length: u32) -> Result<Gather<Buffer>> {
        let bytes = KVec::from_elem(byte, length.try_into()?, GFP_KERNEL)?;
        self.endpoint.copied(bytes, GFP_KERNEL)
    }

    pub(crate) fn post<K: Send + 'static>(&self, request: WorkRequest<K>) -> Result<Arc<Outcome>> {
        let (request, outcome) = watched(request)?;
        self.endpoint.post(request).map_err(|failed| failed.error)?;
        Ok(outcome)
    }

    pub(crate) fn post_receive<K: Send + 'static>(
        &self,
        request: Receive<K>,
    ) -> Result<Arc<Outcome>> {
        let (request, outcome) = watched(request)?;
        self.endpoint
            .post_receive(request)
            .map_err(|failed| failed.error)?;
        Ok(outcome)
    }
}

/// Makes a request, and its outcome.
#[expect(clippy::type_complexity, reason = "the closure's type has no name")]
pub(crate) fn watched<W: Send + 'static>(
    request: W,
) -> Result<(
    KBox<Request<W, impl FnOnce(CompletedRequest<'_>) + Send + 'static>>,
    Arc<Outcome>,
)> {
    let outcome = Outcome::new()?;
    let then = {
        let outcome = outcome.clone();
        move |ended: CompletedRequest<'_>| outcome.put(&ended)
    };
    Ok((Request::new(request, then, GFP_KERNEL)?, outcome))
}

/// Two sides, connected.
pub(crate) struct Pair {
    pub(crate) near: (Connection, Side),
    pub(crate) far: (Connection, Side),
}

impl Pair {
    /// Connects two sides, over a listener that goes then.
    pub(crate) fn new(bench: &Bench, ip: IpAddr) -> Result<Self> {
        Self::with_inline(bench, ip, INLINE)
    }

    /// Connects two sides as [`new`](Self::new) does, but the drivers should copy `inline` bytes of
    /// a request.
    pub(crate) fn with_inline(bench: &Bench, ip: IpAddr, inline: u32) -> Result<Self> {
        let near = Side::with_inline(bench, inline)?;
        let far = Side::with_inline(bench, inline)?;
        let callers = Callers::new()?;
        let listener = Listener::new(at(ip, 0), 4, callers.clone())?;
        let to = listener.local().ok_or(EINVAL)?;
        let wish = proposal(b"");
        let ours = Connection::open(&near.endpoint, None, to, &wish, near.diary.clone())?;
        let incoming = callers.next()?;
        let theirs = incoming.accept(&far.endpoint, &wish, far.diary.clone())?;
        for side in [&near, &far] {
            let told = side.diary.next()?;
            expect!(matches!(told, Told::Established(_)));
        }
        Ok(Self {
            near: (ours, near),
            far: (theirs, far),
        })
    }

    /// Ends the connection on both sides; all requests complete.
    pub(crate) fn close(self, limit: u32) -> Result {
        expect!(self.near.0.close(limit));
        expect!(self.far.0.close(limit));
        Ok(())
    }
}
