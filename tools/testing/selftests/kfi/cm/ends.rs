// SPDX-License-Identifier: GPL-2.0

//! How connections end, or come to nothing.

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
use rdma::{
    cm::{
        Connection,
        Incoming,
        Listener,
        Proposal,
        Requests,
        Resolved,
        Step,
        REJECTED_BY_CONSUMER,
        REJECTED_NO_LISTENER, //
    },
    wr::{
        Receive,
        WorkRequest, //
    }, //
};

use crate::{
    expect,
    expect_eq,
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
        LIMIT,
        V4, //
    },
    told::{
        Callers,
        Told, //
    },
    Case, //
};

pub(crate) const CASES: &[Case] = &[
    (c"disconnect", disconnect),
    (c"drop_flushes", drop_flushes),
    (c"broken_before", broken_before),
    (c"reject", reject),
    (c"refuse_where_told", refuse_where_told),
    (c"no_listener", no_listener),
    (c"silent", silent),
    (c"not_answered", not_answered),
    (c"caller_gone", caller_gone),
    (c"not_resolved", not_resolved),
    (c"once", once),
    (c"any_order", any_order),
];

/// An endpoint on which something has failed before it is connected, here in that it was drained: it takes
/// nothing more, and its connection ends by itself, though the peer does nothing.
fn broken_before() -> Result {
    let bench = Bench::new()?;
    let memory = Memory::new(&bench.local, 4096, all())?;
    // It ends after as long as connecting may take, which nobody knows.
    for limit in [1000, 4000, 16_000, LIMIT] {
        let (near, far) = (Side::new(&bench)?, Side::new(&bench)?);
        near.endpoint.drain(0);
        let late = near.post_receive(Receive::new(memory.part(0..8)?)?);
        expect_eq!(late.err(), Some(EIO));
        let callers = Callers::new()?;
        let listener = Listener::new(at(V4, 0), 4, callers.clone())?;
        let to = listener.local().ok_or(EINVAL)?;
        let wish = Proposal {
            limit,
            ..proposal(b"")
        };
        let diary = near.diary.clone();
        let _ours = Connection::open(&near.endpoint, None, to, &wish, diary)?;
        let incoming = callers.next()?;
        let _theirs = incoming.accept(&far.endpoint, &proposal(b""), far.diary.clone())?;
        match near.diary.next()? {
            Told::Failed(_, error) if error == ETIMEDOUT.to_errno() => continue,
            told => expect!(matches!(told, Told::Established(_))),
        }
        let late = near.post(WorkRequest::send(memory.part(0..8)?));
        expect_eq!(late.err(), Some(EIO));
        expect_eq!(near.diary.next()?, Told::Disconnected);
        return Ok(());
    }
    Err(ETIMEDOUT)
}

/// A connection that is begun, to where `callers` are told.
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

/// As many receives as there is room for, and no more.
fn receives(side: &Side, memory: &Memory) -> Result<KVec<Arc<Outcome>>> {
    let mut all = KVec::new();
    for _ in 0..DEPTH {
        let receive = Receive::new(memory.part(0..8)?)?;
        all.push(side.post_receive(receive)?, GFP_KERNEL)?;
    }
    let more = side.post_receive(Receive::new(memory.part(0..8)?)?);
    expect_eq!(more.err(), Some(EAGAIN));
    Ok(all)
}

/// They have been flushed, each once.
fn flushed(outcomes: &[Arc<Outcome>]) -> Result {
    for outcome in outcomes {
        expect_eq!(outcome.now()?, Some(Kind::Flushed));
    }
    Ok(())
}

fn disconnect() -> Result {
    let bench = Bench::new()?;
    let memory = Memory::new(&bench.local, 4096, all())?;
    let pair = Pair::new(&bench, V4)?;
    let near = receives(&pair.near.1, &memory)?;
    let far = receives(&pair.far.1, &memory)?;
    pair.near.0.disconnect();
    for side in [&pair.near, &pair.far] {
        expect_eq!(side.1.diary.next()?, Told::Disconnected);
        expect_eq!(side.0.step(), Step::Ended);
        let late = side.1.post(WorkRequest::send(memory.part(0..8)?));
        expect_eq!(late.err(), Some(EIO));
    }
    // Again, which does nothing.
    pair.near.0.disconnect();
    pair.close(DRAIN)?;
    flushed(&near)?;
    flushed(&far)
}

fn drop_flushes() -> Result {
    let bench = Bench::new()?;
    let memory = Memory::new(&bench.local, 4096, all())?;
    let Pair { near, far } = Pair::new(&bench, V4)?;
    let outcomes = receives(&near.1, &memory)?;
    drop(near.0);
    expect_eq!(far.1.diary.next()?, Told::Disconnected);
    expect!(near.1.endpoint.drain(DRAIN));
    flushed(&outcomes)?;
    // Whoever ends it isn't told.
    expect_eq!(near.1.diary.now(), None);
    Ok(())
}

fn reject() -> Result {
    let bench = Bench::new()?;
    let memory = Memory::new(&bench.local, 4096, all())?;
    let near = Side::new(&bench)?;
    let outcomes = receives(&near, &memory)?;
    let (ours, _listener, callers) = begin(&near, b"please")?;
    callers.next()?.reject(b"sorry")?;
    match near.diary.next()? {
        Told::Rejected(reason, data) => {
            expect_eq!(reason, REJECTED_BY_CONSUMER);
            expect_eq!(data.len(), 148);
            expect!(data.starts_with(b"sorry\0"));
        }
        other => {
            expect_eq!(other, Told::PathChanged);
        }
    }
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
        match near.diary.next()? {
            Told::Rejected(reason, data) => {
                expect_eq!(reason, REJECTED_BY_CONSUMER);
                expect!(data.starts_with(said));
            }
            other => {
                expect_eq!(other, Told::PathChanged);
            }
        }
        expect!(ours.close(DRAIN));
    }
    Ok(())
}

fn no_listener() -> Result {
    let bench = Bench::new()?;
    let near = Side::new(&bench)?;
    let to = at(V4, 9);
    let ours = Connection::open(&near.endpoint, None, to, &proposal(b""), near.diary.clone())?;
    match near.diary.next()? {
        Told::Rejected(reason, _) => {
            expect_eq!(reason, REJECTED_NO_LISTENER);
        }
        other => {
            expect_eq!(other, Told::PathChanged);
        }
    }
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
    expect_eq!(told, Told::Failed(Step::Request, ETIMEDOUT.to_errno()));
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
    match near.diary.next()? {
        Told::Rejected(reason, _) => {
            expect_eq!(reason, REJECTED_BY_CONSUMER);
        }
        other => {
            expect_eq!(other, Told::PathChanged);
        }
    }
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

/// All that there is of a connection, dropped in an order that a number tells.
fn any_order() -> Result {
    const ORDERS: [[usize; 4]; 6] = [
        [0, 1, 2, 3],
        [3, 2, 1, 0],
        [1, 0, 3, 2],
        [2, 3, 0, 1],
        [0, 2, 1, 3],
        [3, 1, 2, 0],
    ];
    let bench = Bench::new()?;
    let memory = Memory::new(&bench.local, 4096, all())?;
    for order in ORDERS {
        let Pair { near, far } = Pair::new(&bench, V4)?;
        let mut outcomes = receives(&near.1, &memory)?;
        for outcome in receives(&far.1, &memory)? {
            outcomes.push(outcome, GFP_KERNEL)?;
        }
        let mut connections = [Some(near.0), Some(far.0)];
        let mut sides = [Some(near.1), Some(far.1)];
        for what in order {
            match what {
                0 | 1 => drop(connections.get_mut(what).map(Option::take)),
                _ => drop(sides.get_mut(what - 2).map(Option::take)),
            }
        }
        // Flushed, or gone with the queue pair.
        for outcome in &outcomes {
            expect!(matches!(outcome.wait()?, Kind::Flushed | Kind::Other));
        }
    }
    Ok(())
}
