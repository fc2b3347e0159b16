// SPDX-License-Identifier: GPL-2.0

//! Several requests in one go.

use kernel::prelude::*;
use rdma::{
    gather::Gather,
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
        watched,
        Bench,
        Kind,
        Pair,
        DEPTH,
        DRAIN,
        INLINE,
        V4, //
    },
    transfer::{
        done,
        memory,
        with_pair,
        CELLS,
        END, //
    },
};

pub(crate) const CASES: &[Case] = &[
    (c"chain", || with_pair(chain)),
    (c"chain_dropped", || with_pair(dropped)),
    (c"chain_one_bad", || with_pair(one_bad)),
    (c"chain_inline", inline_elsewhere),
];

/// Checks requests of several kinds that are posted in one go, in order.
fn chain(bench: &Bench, pair: &Pair) -> Result {
    let (from, into) = memory(bench, 9)?;
    let target = Memory::new(&bench.local, 4096, all())?;
    let received = pair.far.1.post_receive(Receive::new(into.part(0..END)?)?)?;
    let mut chain = pair.near.1.endpoint.begin_chain()?;
    expect!(chain.is_empty());
    let (write, written) = watched(WorkRequest::write(from.part(0..8)?, target.remote(8)))?;
    let (read, was_read) = watched(WorkRequest::read(from.part(8..16)?, target.remote(8))?)?;
    let request = WorkRequest::send(from.part(0..END)?).fenced();
    let (send, sent) = watched(request)?;
    let (bytes, copied) = watched(WorkRequest::write(
        pair.near.1.copied(1, 8)?,
        target.remote(0),
    ))?;
    chain.push(write).map_err(|failed| failed.error)?;
    chain.push(read).map_err(|failed| failed.error)?;
    chain.push(send).map_err(|failed| failed.error)?;
    chain.push(bytes).map_err(|failed| failed.error)?;
    expect_eq!(written.now()?, None);
    chain.post()?;
    for outcome in [&written, &was_read, &sent, &copied, &received] {
        done(outcome)?;
    }
    // The bytes that were read were sent: the fence has waited for the read.
    expect_eq!(into.differ(0..1, 9, 0), 0);
    expect_eq!(into.cell(1), into.cell(0));
    expect_eq!(into.differ(2..CELLS, 9, 0), 0);
    expect_eq!(target.cell(0), 0x0101_0101_0101_0101);
    Ok(())
}

/// Checks that a chain takes as many requests as there is space for and no more. When they are
/// given up, there is space again.
fn dropped(bench: &Bench, pair: &Pair) -> Result {
    let (from, into) = memory(bench, 1)?;
    for _ in 0..3 {
        let mut chain = pair.near.1.endpoint.begin_chain()?;
        let mut outcomes = KVec::new();
        for room in (0..=DEPTH).map(|i| i < DEPTH) {
            let request = WorkRequest::write(from.part(0..8)?, into.remote(0));
            let (request, outcome) = watched(request)?;
            match chain.push(request) {
                Ok(()) => expect!(room),
                Err(failed) => expect!(!room && failed.error == EAGAIN),
            }
            outcomes.push(outcome, GFP_KERNEL)?;
        }
        // That one was never taken.
        drop(outcomes.pop());
        drop(chain);
        for outcome in &outcomes {
            expect_eq!(outcome.now()?, Some(Kind::Other));
        }
    }
    expect_eq!(into.cell(0), 0);
    Ok(())
}

/// Checks a chain in which one request has too many segments: the driver takes those before it.
fn one_bad(bench: &Bench, pair: &Pair) -> Result {
    let (from, into) = memory(bench, 1)?;
    let mut chain = pair.near.1.endpoint.begin_chain()?;
    let (good, gone) = watched(WorkRequest::write(from.part(0..8)?, into.remote(0)))?;
    let parts = [0..8, 8..16, 16..24].map(|part| (from.lend(), part));
    let parts = Gather::parts(parts.into_iter(), GFP_KERNEL)?;
    let (bad, refused) = watched(WorkRequest::send(parts))?;
    let (late, too_late) = watched(WorkRequest::write(from.part(8..16)?, into.remote(8)))?;
    chain.push(good).map_err(|failed| failed.error)?;
    chain.push(bad).map_err(|failed| failed.error)?;
    chain.push(late).map_err(|failed| failed.error)?;
    expect!(chain.post().is_err());
    done(&gone)?;
    expect_eq!(refused.wait()?, Kind::Other);
    expect_eq!(too_late.wait()?, Kind::Other);
    expect_eq!(into.differ(0..1, 1, 0), 0);
    expect_eq!(into.cell(1), 0);
    Ok(())
}

/// Checks that bytes which one driver copies are never posted to a queue pair whose driver copies
/// fewer.
fn inline_elsewhere() -> Result {
    let bench = Bench::new()?;
    let pair = Pair::new(&bench, V4)?;
    let other = Pair::with_inline(&bench, V4, INLINE - 1)?;
    let near = &other.near.1.endpoint;
    let copied = || pair.near.1.copied(1, INLINE);
    let (alone, _) = watched(WorkRequest::send(copied()?))?;
    expect_eq!(near.post(alone).map_err(|not| not.error), Err(EINVAL));
    let mut chain = near.begin_chain()?;
    let (first, _) = watched(WorkRequest::send(copied()?))?;
    expect_eq!(chain.push(first).map_err(|not| not.error), Err(EINVAL));
    let (silent, _) = watched(WorkRequest::send(copied()?))?;
    expect_eq!(
        chain.push_unsignaled(silent).map_err(|not| not.error),
        Err(EINVAL)
    );
    expect!(chain.is_empty());
    drop(chain);
    pair.close(DRAIN)?;
    other.close(DRAIN)
}
