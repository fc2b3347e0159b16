// SPDX-License-Identifier: GPL-2.0

//! Requests that complete only if they fail: each is told once all the same, with one behind it.

use kernel::{
    prelude::*,
    sync::Arc, //
};
use rdma::{
    cm::Tail,
    wr::{
        Remote,
        WorkRequest, //
    }, //
};

use crate::{
    check::Case, //
    expect,
    expect_eq,
    memory::Memory,
    side::{
        watched,
        Bench,
        Kind,
        Outcome,
        Pair,
        DEPTH,
        DRAIN,
        V4, //
    },
    told::wait_for,
    transfer::{
        done,
        memory,
        with_pair, //
    },
};

pub(crate) const CASES: &[Case] = &[
    (c"quiet_behind", || with_pair(behind)),
    (c"quiet_many", || with_pair(many)),
    (c"quiet_failed", || with_pair(failed)),
    (c"quiet_drained", drained),
];

/// Posts a write of one cell that completes only if it fails.
macro_rules! quietly {
    ($side:expr, $tail:expr, $request:expr) => {{
        let (request, outcome) = watched($request)?;
        let mut chain = $side.endpoint.begin_chain_behind(&mut $tail)?;
        let pushed = chain
            .push_unsignaled(request)
            .map_err(|failed| failed.error);
        $tail = chain.post()?;
        pushed.map(|()| outcome)
    }};
}

/// Makes a write of one cell.
fn write(from: &Memory, into: &Memory, cell: u64) -> Result<WorkRequest<impl Send + 'static>> {
    let at = cell * 8;
    Ok(WorkRequest::write(from.part(at..at + 8)?, into.remote(at)))
}

/// Checks that quiet requests are carried out at once, but nobody is told before a request behind
/// them has completed, also in another chain.
fn behind(bench: &Bench, pair: &Pair) -> Result {
    let (from, into) = memory(bench, 4)?;
    let mut tail: Option<Tail> = None;
    let first = quietly!(pair.near.1, tail, write(&from, &into, 0)?)?;
    let second = quietly!(pair.near.1, tail, write(&from, &into, 1)?)?;
    expect!(tail.is_some());
    // It is carried out.
    wait_for(|| (into.differ(1..2, 4, 0) == 0).then_some(()))?;
    expect_eq!(first.now()?, None);
    expect_eq!(second.now()?, None);
    let mut chain = pair.near.1.endpoint.begin_chain_behind(&mut tail)?;
    let (third, told) = watched(write(&from, &into, 2)?)?;
    chain.push(third).map_err(|failed| failed.error)?;
    expect!(chain.post()?.is_none());
    done(&told)?;
    // Before the one that told.
    expect_eq!(first.now()?, Some(Kind::Done));
    expect_eq!(second.now()?, Some(Kind::Done));
    expect_eq!(into.differ(0..3, 4, 0), 0);
    Ok(())
}

/// Posts one that completes only if it fails; `None` if there is no room just now.
fn post_quietly(
    pair: &Pair,
    from: &Memory,
    into: &Memory,
    tail: &mut Option<Tail>,
) -> Result<Option<Arc<Outcome>>> {
    no_room(quietly!(pair.near.1, *tail, write(from, into, 0)?))
}

/// Posts one that completes.
fn post_told(
    pair: &Pair,
    from: &Memory,
    into: &Memory,
    tail: &mut Option<Tail>,
) -> Result<Option<Arc<Outcome>>> {
    let (request, outcome) = watched(write(from, into, 1)?)?;
    let mut chain = pair.near.1.endpoint.begin_chain_behind(tail)?;
    let pushed = chain.push(request).map_err(|failed| failed.error);
    *tail = chain.post()?;
    no_room(pushed.map(|()| outcome))
}

fn no_room<T>(posted: Result<T>) -> Result<Option<T>> {
    match posted {
        Err(error) if error == EAGAIN => Ok(None),
        posted => posted.map(Some),
    }
}

/// Checks many more quiet requests than the queue has space for: places come back.
fn many(bench: &Bench, pair: &Pair) -> Result {
    let (from, into) = memory(bench, 5)?;
    let mut tail: Option<Tail> = None;
    let mut outcomes = KVec::new();
    for _ in 0..20 * DEPTH {
        let outcome = wait_for(|| post_quietly(pair, &from, &into, &mut tail).transpose())??;
        outcomes.push(outcome, GFP_KERNEL)?;
    }
    let told = wait_for(|| post_told(pair, &from, &into, &mut tail).transpose())??;
    done(&told)?;
    for outcome in &outcomes {
        expect_eq!(outcome.now()?, Some(Kind::Done));
    }
    Ok(())
}

/// Checks that a quiet request that fails is reported once, and that those behind it are flushed.
fn failed(bench: &Bench, pair: &Pair) -> Result {
    let (from, into) = memory(bench, 6)?;
    let mut tail: Option<Tail> = None;
    let good = quietly!(pair.near.1, tail, write(&from, &into, 0)?)?;
    let nowhere = Remote { address: 8, key: 1 };
    let bad = WorkRequest::write(from.part(0..8)?, nowhere);
    let (bad, refused) = watched(bad)?;
    let (late, flushed) = watched(write(&from, &into, 1)?)?;
    let mut chain = pair.near.1.endpoint.begin_chain_behind(&mut tail)?;
    chain.push_unsignaled(bad).map_err(|failed| failed.error)?;
    chain.push(late).map_err(|failed| failed.error)?;
    chain.post()?;
    expect_eq!(flushed.wait()?, Kind::Flushed);
    expect!(matches!(refused.now()?, Some(Kind::Failed(_))));
    expect_eq!(good.now()?, Some(Kind::Done));
    expect_eq!(into.cell(1), 0);
    Ok(())
}

/// Checks that quiet requests with nothing behind them are told when the queue is drained.
fn drained() -> Result {
    let bench = Bench::new()?;
    let pair = Pair::new(&bench, V4)?;
    let (from, into) = memory(&bench, 7)?;
    let mut tail: Option<Tail> = None;
    let one = quietly!(pair.near.1, tail, write(&from, &into, 0)?)?;
    expect!(tail.is_some());
    wait_for(|| (into.differ(0..1, 7, 0) == 0).then_some(()))?;
    expect_eq!(one.now()?, None);
    pair.close(DRAIN)?;
    // The answer may not have come yet.
    expect!(matches!(one.now()?, Some(Kind::Done | Kind::Flushed)));
    Ok(())
}
