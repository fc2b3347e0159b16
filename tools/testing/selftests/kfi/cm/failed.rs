// SPDX-License-Identifier: GPL-2.0

//! Connections that come to nothing.

use core::net::{
    IpAddr,
    Ipv4Addr, //
};
use kernel::{
    prelude::*,
    sync::Arc,
    time::{
        Instant,
        Monotonic, //
    }, //
};
use rdma::cm::{
    Connection,
    Incoming,
    Listener,
    Proposal,
    Requests,
    Resolved,
    Step,
    REJECTED_BY_CONSUMER,
    REJECTED_NO_LISTENER, //
};

use crate::{
    check::Case, //
    ends::{
        flushed,
        receives, //
    },
    expect,
    expect_eq,
    memory::Memory,
    side::{
        all,
        at,
        proposal,
        Bench,
        Pair,
        Side,
        DRAIN,
        LIMIT,
        V4, //
    },
    told::{
        Callers,
        Told, //
    },
};

mod c {
    unsafe extern "C" {
        pub(super) safe fn kfi_cm_over_ipoib() -> bool;
    }
}

/// Returns the step at which a connection to [`NOBODY`] fails. IPoIB asks for the peer's address, which
/// nobody answers.
pub(crate) fn silent_step() -> Step {
    match c::kfi_cm_over_ipoib() {
        true => Step::Address,
        false => Step::Request,
    }
}

pub(crate) const CASES: &[Case] = &[
    (c"reject", reject),
    (c"refuse_where_told", refuse_where_told),
    (c"no_listener", no_listener),
    (c"silent", silent),
    (c"not_answered", not_answered),
    (c"caller_gone", caller_gone),
    (c"not_resolved", not_resolved),
    (c"once", once),
];

/// Begins a connection to a listener that tells `callers`.
fn begin(side: &Side, private_data: &[u8]) -> Result<(Connection, Listener, Arc<Callers>)> {
    let callers = Callers::new()?;
    let listener = Listener::new(at(V4, 0), 4, callers.clone())?;
    let to = listener.local().ok_or(EINVAL)?;
    let ours = Connection::open(
        &side.endpoint,
        None,
        to,
        &proposal(private_data),
        side.diary.clone(),
    )?;
    Ok((ours, listener, callers))
}

fn reject() -> Result {
    let bench = Bench::new()?;
    let memory = Memory::new(&bench.local, 4096, all())?;
    let near = Side::new(&bench)?;
    let outcomes = receives(&near, &memory)?;
    let (ours, _listener, callers) = begin(&near, b"please")?;
    callers.next()?.reject(b"sorry")?;
    let data = near.diary.rejected(REJECTED_BY_CONSUMER)?;
    expect_eq!(data.len(), 148);
    expect!(data.starts_with(b"sorry\0"));
    expect!(ours.close(DRAIN));
    flushed(&outcomes)
}

/// Drops or rejects all requests at once.
struct Wall(&'static [u8]);

impl Requests for Wall {
    fn request(&self, incoming: Incoming) {
        match self.0 {
            [] => drop(incoming),
            data => {
                let _ = incoming.reject(data);
            }
        }
    }
}

fn refuse_where_told() -> Result {
    let bench = Bench::new()?;
    for said in [b"".as_slice(), b"never"] {
        let near = Side::new(&bench)?;
        let wall = Arc::new(Wall(said), GFP_KERNEL)?;
        let listener = Listener::new(at(V4, 0), 4, wall)?;
        let to = listener.local().ok_or(EINVAL)?;
        let ours = Connection::open(&near.endpoint, None, to, &proposal(b""), near.diary.clone())?;
        let data = near.diary.rejected(REJECTED_BY_CONSUMER)?;
        expect!(data.starts_with(said));
        expect!(ours.close(DRAIN));
    }
    Ok(())
}

fn no_listener() -> Result {
    let bench = Bench::new()?;
    let near = Side::new(&bench)?;
    let to = at(V4, 9);
    let ours = Connection::open(&near.endpoint, None, to, &proposal(b""), near.diary.clone())?;
    near.diary.rejected(REJECTED_NO_LISTENER)?;
    expect!(ours.close(DRAIN));
    Ok(())
}

/// An address that nobody has, beside ours. Packets get there without asking for it, and get lost.
pub(crate) const NOBODY: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 51, 100, 77));

fn silent() -> Result {
    let bench = Bench::new()?;
    let memory = Memory::new(&bench.local, 4096, all())?;
    let near = Side::new(&bench)?;
    let outcomes = receives(&near, &memory)?;
    let bound = Proposal {
        limit: 1500,
        ..proposal(b"")
    };
    let began = Instant::<Monotonic>::now();
    let to = at(NOBODY, 9);
    let ours = Connection::open(&near.endpoint, None, to, &bound, near.diary.clone())?;
    let told = near.diary.next()?;
    let took = began.elapsed().as_millis();
    expect_eq!(told, Told::Failed(silent_step(), ETIMEDOUT.to_errno()));
    // The connection manager's own limit is 74 s.
    expect!((1400..60_000).contains(&took));
    expect!(ours.close(DRAIN));
    flushed(&outcomes)?;
    expect_eq!(near.diary.now(), None);
    Ok(())
}

fn not_answered() -> Result {
    let bench = Bench::new()?;
    let near = Side::new(&bench)?;
    let (ours, listener, callers) = begin(&near, b"")?;
    let incoming = callers.next()?;
    // Outlives its listener.
    drop(listener);
    drop(incoming);
    near.diary.rejected(REJECTED_BY_CONSUMER)?;
    drop(ours);
    Ok(())
}

fn caller_gone() -> Result {
    let bench = Bench::new()?;
    let (near, far) = (Side::new(&bench)?, Side::new(&bench)?);
    let (ours, _listener, callers) = begin(&near, b"")?;
    let incoming = callers.next()?;
    drop(ours);
    // Accepted too late, be it known already or not.
    match incoming.accept(&far.endpoint, &proposal(b""), far.diary.clone()) {
        Ok(theirs) => {
            let told = far.diary.next()?;
            expect!(matches!(told, Told::Rejected(..) | Told::Failed(..)));
            expect!(theirs.close(DRAIN));
        }
        Err(error) => {
            expect!(error.to_errno() < 0);
        }
    }
    expect_eq!(near.diary.now(), None);
    Ok(())
}

fn not_resolved() -> Result {
    // No route, no RDMA device there (see cm.sh), no own address.
    let there = |ip| Resolved::new(None, at(ip, 9), LIMIT).err();
    let nowhere = there(IpAddr::V4(Ipv4Addr::new(203, 0, 113, 5)));
    expect_eq!(nowhere.map(Error::to_errno), Some(-101));
    let other = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 9));
    expect_eq!(there(other), Some(ENODEV));
    let from = at(NOBODY, 0);
    expect!(Resolved::new(Some(from), at(V4, 9), LIMIT).is_err());
    expect!(Resolved::new(Some(at(V4, 0)), at(V4, 9), LIMIT).is_ok());
    Ok(())
}

fn once() -> Result {
    let bench = Bench::new()?;
    let pair = Pair::new(&bench, V4)?;
    let side = &pair.near.1;
    let open = |to, data| {
        let (diary, proposal) = (side.diary.clone(), proposal(data));
        Connection::open(&side.endpoint, None, to, &proposal, diary).map(drop)
    };
    expect_eq!(open(at(V4, 9), b"".as_slice()), Err(EBUSY));
    expect_eq!(open(at(V4, 9), &[0; 57]), Err(EINVAL));
    pair.close(DRAIN)
}
