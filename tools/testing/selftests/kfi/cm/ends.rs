// SPDX-License-Identifier: GPL-2.0

//! How connections end.

use kernel::{
    prelude::*,
    sync::Arc, //
};
use rdma::{
    cm::{
        Connection,
        Listener,
        Step, //
    },
    wr::{
        Receive,
        WorkRequest, //
    }, //
};

use crate::{
    check::Case, //
    expect,
    expect_eq,
    memory::Memory,
    side::{
        all,
        at,
        not_connected,
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
    },
};

pub(crate) const CASES: &[Case] = &[
    (c"disconnect", disconnect),
    (c"drop_flushes", drop_flushes),
    (c"drained_before", drained_before),
    (c"any_order", any_order),
];

/// Checks an endpoint that was drained before it is connected. It takes nothing more, and it can't
/// be connected, because its queue pair is in error.
fn drained_before() -> Result {
    let bench = Bench::new()?;
    let memory = Memory::new(&bench.local, 4096, all())?;
    let (near, far) = (Side::new(&bench)?, Side::new(&bench)?);
    near.endpoint.drain(0);
    let late = near.post_receive(Receive::new(memory.part(0..8)?)?);
    expect_eq!(late.err(), Some(not_connected()));
    let callers = Callers::new()?;
    let listener = Listener::new(at(V4, 0), 4, callers.clone())?;
    let to = listener.local().ok_or(EINVAL)?;
    let diary = near.diary.clone();
    let _ours = Connection::open(&near.endpoint, None, to, &proposal(b""), diary)?;
    let incoming = callers.next()?;
    let _theirs = incoming.accept(&far.endpoint, &proposal(b""), far.diary.clone())?;
    expect_eq!(
        near.diary.next()?,
        Told::Failed(Step::Request, EINVAL.to_errno())
    );
    Ok(())
}

/// Posts as many receives as there is space for, and no more.
pub(crate) fn receives(side: &Side, memory: &Memory) -> Result<KVec<Arc<Outcome>>> {
    let mut all = KVec::new();
    for _ in 0..DEPTH {
        let receive = Receive::new(memory.part(0..8)?)?;
        all.push(side.post_receive(receive)?, GFP_KERNEL)?;
    }
    let more = side.post_receive(Receive::new(memory.part(0..8)?)?);
    expect_eq!(more.err(), Some(EAGAIN));
    Ok(all)
}

/// Checks that the receives have been flushed, each once.
pub(crate) fn flushed(outcomes: &[Arc<Outcome>]) -> Result {
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
        expect_eq!(late.err(), Some(not_connected()));
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
    // The side that ends the connection isn't told.
    expect_eq!(near.1.diary.now(), None);
    Ok(())
}

/// Drops all parts of a connection, in orders that a number encodes.
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
