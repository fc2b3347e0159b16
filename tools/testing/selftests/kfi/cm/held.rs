// SPDX-License-Identifier: GPL-2.0

//! All that there may be of connections, while their device goes.

use kernel::{
    prelude::*,
    sync::Arc, //
};
use rdma::{
    client::{
        Client,
        Registration, //
    },
    cm::{
        Connection,
        Endpoint,
        Incoming,
        Listener, //
    },
    in_flight::InFlightRef,
    request::{
        CompletedRequest,
        Request, //
    },
    wr::{
        Receive,
        Remote,
        WorkRequest, //
    },
    Device,
    Gather,
    ValidMr, //
};

use crate::{
    expect,
    memory::Memory,
    side::{
        all,
        at,
        proposal,
        Bench,
        Kind,
        Outcome,
        Pair,
        Side,
        DEPTH,
        DRAIN,
        V4, //
    },
    told::{
        Callers,
        Told, //
    }, //
};

kernel::sync::global_lock! {
    // SAFETY: Initialized first of all, when the module is loaded.
    unsafe(uninit) static HELD: Mutex<Option<Held>> = None;
}

kernel::sync::global_lock! {
    // SAFETY: Initialized first of all, when the module is loaded.
    unsafe(uninit) static CLIENT: Mutex<Option<Pin<KBox<Registration<Owner>>>>> = None;
}

/// The connections on the device.
struct Held {
    /// Receives wait on both sides, and one side writes without end.
    pair: Pair,
    outcomes: KVec<Arc<Outcome>>,
    listener: Listener,
    /// A request that hasn't been answered, and who has asked.
    incoming: Incoming,
    asking: (Connection, Side),
    /// Nobody answers.
    silent: (Connection, Side),
    /// In this order.
    _memory: [Memory; 2],
    _bench: Bench,
}

impl Held {
    fn new() -> Result<Self> {
        let bench = Bench::new()?;
        let memory = [
            Memory::new(&bench.local, 4096, all())?,
            Memory::new(&bench.local, 4096, all())?,
        ];
        let [from, into] = &memory;
        let pair = Pair::new(&bench, V4)?;
        let mut outcomes = KVec::new();
        for side in [&pair.near.1, &pair.far.1] {
            for _ in 0..DEPTH {
                let receive = Receive::new(into.part(0..8)?)?;
                outcomes.push(side.post_receive(receive)?, GFP_KERNEL)?;
            }
        }
        let far = pair.far.1.endpoint.clone();
        again(&far, from.lend(), into.remote(0))?;

        let callers = Callers::new()?;
        let listener = Listener::new(at(V4, 0), 4, callers.clone())?;
        let to = listener.local().ok_or(EINVAL)?;
        let open = |to| {
            let side = Side::new(&bench)?;
            let diary = side.diary.clone();
            let opened = Connection::open(&side.endpoint, None, to, &proposal(b""), diary);
            opened.map(|connection| (connection, side))
        };
        let asking = open(to)?;
        let incoming = callers.next()?;
        let silent = open(at(crate::failed::NOBODY, 9))?;
        Ok(Self {
            pair,
            outcomes,
            listener,
            incoming,
            asking,
            silent,
            _memory: memory,
            _bench: bench,
        })
    }

    /// Ends all.
    fn end(self) -> Result {
        let outcomes = self.outcomes;
        self.pair.close(DRAIN)?;
        for outcome in &outcomes {
            expect!(outcome.now()? == Some(Kind::Flushed));
        }
        drop(self.incoming);
        expect!(self.asking.0.close(DRAIN));
        expect!(self.silent.0.close(DRAIN));
        drop(self.listener);
        Ok(())
    }

    /// Checks that each connection is told that the device goes.
    fn is_told(&self) -> Result {
        let diaries = [
            &self.pair.near.1.diary,
            &self.pair.far.1.diary,
            &self.asking.1.diary,
            &self.silent.1.diary,
        ];
        for diary in diaries {
            // One side of the pair can have told the other before, or be told by it.
            let told = diary.next()?;
            expect!(matches!(
                told,
                Told::DeviceRemoval | Told::Disconnected | Told::Failed(..)
            ));
        }
        Ok(())
    }
}

/// Writes a region to the peer, and again when that has completed, which is in softirq context,
/// until it fails.
fn again(endpoint: &Arc<Endpoint>, from: InFlightRef<ValidMr>, to: Remote) -> Result {
    let memory = Gather::part(from.clone(), 0..4096)?;
    let at = endpoint.clone();
    let then = move |ended: CompletedRequest<'_>| {
        if ended.result.is_ok() {
            // Refused when it is over.
            let _ = once_more(&at, from, to);
        }
    };
    let request = Request::new(WorkRequest::write(memory, to), then, GFP_ATOMIC)?;
    endpoint.post(request).map_err(|failed| failed.error)
}

/// Posts as [`again`] does, which can't name itself.
fn once_more(endpoint: &Arc<Endpoint>, from: InFlightRef<ValidMr>, to: Remote) -> Result {
    again(endpoint, from, to)
}

/// Has connections on the device.
struct Owner;

rdma::impl_client!(Owner);

impl Client for Owner {
    const NAME: &'static CStr = c"kfi_cm";
    type Data = KBox<()>;

    fn add(device: &Device) -> Result<Self::Data> {
        let _ = device;
        Ok(KBox::new((), GFP_KERNEL)?)
    }

    fn remove(_device: &Device, _data: Self::Data) {
        // Other devices stay in these tests.
        end("in time");
    }
}

fn end(when: &str) {
    let held = HELD.lock().take();
    if let Some(held) = held {
        let ended = held.end();
        pr_info!("ended {when}: {ended:?}\n");
    }
}

pub(crate) fn hold(client: bool) -> Result {
    // SAFETY: First of all, and once: the module goes if this fails.
    unsafe {
        HELD.init();
        CLIENT.init();
    }
    let held = Held::new()?;
    *HELD.lock() = Some(held);
    if client {
        let registered = KBox::try_pin_init(Registration::new(), GFP_KERNEL);
        match registered {
            Ok(registered) => *CLIENT.lock() = Some(registered),
            Err(error) => {
                end("at once");
                return Err(error);
            }
        }
    }
    Ok(())
}

pub(crate) fn release() {
    let held = HELD.lock().take();
    if let Some(held) = held {
        let told = held.is_told();
        pr_info!("told: {told:?}\n");
        let ended = held.end();
        pr_info!("ended late: {ended:?}\n");
    }
    let client = CLIENT.lock().take();
    drop(client);
}
