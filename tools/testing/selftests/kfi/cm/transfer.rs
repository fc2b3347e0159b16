// SPDX-License-Identifier: GPL-2.0

//! Transfers over a connection.

use kernel::{
    prelude::*,
    sync::Arc, //
};
use rdma::{
    gather::Gather,
    in_flight::StableRef,
    wc::Arrival,
    wr::{
        Receive,
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
        all,
        not_connected,
        Bench,
        Kind,
        Outcome,
        Pair,
        DRAIN,
        INLINE,
        V4, //
    },
};

pub(crate) const CASES: &[Case] = &[
    (c"send", || with_pair(send)),
    (c"send_with_imm", || with_pair(send_with_imm)),
    (c"send_with_inv", || with_pair(send_with_inv)),
    (c"send_inline", || with_pair(send_inline)),
    (c"send_nothing", || with_pair(send_nothing)),
    (c"write", || with_pair(write)),
    (c"write_with_imm", || with_pair(write_with_imm)),
    (c"read", || with_pair(read)),
    (c"gather", || with_pair(gather)),
    (c"atomics", || with_pair(atomics)),
    (c"refused_by_peer", || with_pair(refused_by_peer)),
    (c"too_long", || with_pair(too_long)),
];

/// Longer than a packet.
const BYTES: usize = 32768;
pub(crate) const CELLS: usize = BYTES / 8;
/// All of it.
pub(crate) const END: u64 = BYTES as u64;
/// By how many cells memory is shifted that has been moved one on.
const ONE_BACK: usize = 0usize.wrapping_sub(1);

pub(crate) fn with_pair(case: fn(&Bench, &Pair) -> Result) -> Result {
    let bench = Bench::new()?;
    let pair = Pair::new(&bench, V4)?;
    case(&bench, &pair)?;
    pair.close(DRAIN)
}

/// Makes memory of both sides, and fills the first one.
pub(crate) fn memory(bench: &Bench, seed: u64) -> Result<(Memory, Memory)> {
    let from = Memory::new(&bench.local, BYTES, all())?;
    from.fill(seed);
    Ok((from, Memory::new(&bench.local, BYTES, all())?))
}

/// Waits until a request has been carried out.
pub(crate) fn done(outcome: &Arc<Outcome>) -> Result {
    expect_eq!(outcome.wait()?, Kind::Done);
    Ok(())
}

/// Returns the arrival of `bytes` bytes.
fn bytes(bytes: u32) -> Arrival {
    Arrival {
        bytes,
        ..Default::default()
    }
}

fn send(bench: &Bench, pair: &Pair) -> Result {
    let (from, into) = memory(bench, 2)?;
    for [this, other] in [[&pair.near, &pair.far], [&pair.far, &pair.near]] {
        into.fill(0);
        let received = other.1.post_receive(Receive::new(into.part(0..END)?)?)?;
        let sent = this
            .1
            .post(WorkRequest::send(from.part(0..END - 8)?).solicited())?;
        done(&sent)?;
        done(&received)?;
        expect_eq!(received.arrival(), bytes(32760));
        expect_eq!(into.differ(0..CELLS - 1, 2, 0), 0);
        expect_eq!(into.differ(CELLS - 1..CELLS, 0, 0), 0);
    }
    Ok(())
}

fn send_with_imm(bench: &Bench, pair: &Pair) -> Result {
    let (from, into) = memory(bench, 5)?;
    let received = pair.far.1.post_receive(Receive::new(into.part(0..END)?)?)?;
    let request = WorkRequest::send_with_imm(from.part(0..64)?, 0xfeed_0001);
    done(&pair.near.1.post(request)?)?;
    done(&received)?;
    let imm = Some(0xfeed_0001);
    expect_eq!(received.arrival(), Arrival { imm, ..bytes(64) });
    expect_eq!(into.differ(0..8, 5, 0), 0);
    expect_eq!(into.cell(8), 0);
    Ok(())
}

fn send_with_inv(bench: &Bench, pair: &Pair) -> Result {
    let (from, into) = memory(bench, 6)?;
    // A key of the side that gets the message.
    let given = Memory::new(&bench.local, 4096, all())?;
    let key = given.lend().get().rkey();
    let write = |from: &Memory| {
        let request = WorkRequest::write(from.part(0..8)?, given.remote(0));
        pair.near.1.post(request)?.wait()
    };
    expect_eq!(write(&from)?, Kind::Done);
    let received = pair.far.1.post_receive(Receive::new(into.part(0..END)?)?)?;
    let request = WorkRequest::send_with_inv(from.part(0..64)?, key);
    done(&pair.near.1.post(request)?)?;
    done(&received)?;
    let invalidated = Some(key);
    expect_eq!(
        received.arrival(),
        Arrival {
            invalidated,
            ..bytes(64)
        }
    );
    expect_eq!(into.differ(0..8, 6, 0), 0);
    // It isn't good for anything any more.
    expect!(write(&from)? != Kind::Done);
    Ok(())
}

fn send_inline(bench: &Bench, pair: &Pair) -> Result {
    let into = Memory::new(&bench.local, 4096, all())?;
    // The driver doesn't copy the last ones.
    for length in [0, 1, 8, INLINE, INLINE + 1, 1024] {
        into.fill(0);
        let received = pair
            .far
            .1
            .post_receive(Receive::new(into.part(0..1024)?)?)?;
        let request = WorkRequest::send(pair.near.1.copied(0xa5, length)?);
        done(&pair.near.1.post(request)?)?;
        done(&received)?;
        expect_eq!(received.arrival(), bytes(length));
        let cells = usize::try_from(length)? / 8;
        for cell in 0..cells {
            expect_eq!(into.cell(cell), 0xa5a5_a5a5_a5a5_a5a5);
        }
        expect_eq!(into.differ(cells + 1..512, 0, 0), 0);
    }
    Ok(())
}

fn send_nothing(_bench: &Bench, pair: &Pair) -> Result {
    let received = pair.far.1.post_receive(Receive::new(Gather::none())?)?;
    let request = WorkRequest::send_with_imm(Gather::none(), 3);
    done(&pair.near.1.post(request)?)?;
    done(&received)?;
    let imm = Some(3);
    expect_eq!(received.arrival(), Arrival { imm, ..bytes(0) });
    Ok(())
}

fn write(bench: &Bench, pair: &Pair) -> Result {
    let (from, into) = memory(bench, 3)?;
    let request = WorkRequest::write(from.part(8..END - 8)?, into.remote(16));
    done(&pair.near.1.post(request)?)?;
    expect_eq!((into.cell(0), into.cell(1)), (0, 0));
    // One cell further than it was.
    expect_eq!(into.differ(2..CELLS, 3, ONE_BACK), 0);
    Ok(())
}

fn write_with_imm(bench: &Bench, pair: &Pair) -> Result {
    let (from, into) = memory(bench, 7)?;
    let received = pair.near.1.post_receive(Receive::new(Gather::none())?)?;
    let request = WorkRequest::write_with_imm(from.part(0..END)?, into.remote(0), u32::MAX);
    done(&pair.far.1.post(request)?)?;
    done(&received)?;
    let arrival = received.arrival();
    expect_eq!((arrival.imm, arrival.written), (Some(u32::MAX), true));
    expect_eq!(arrival.bytes, 32768);
    expect_eq!(into.differ(0..CELLS, 7, 0), 0);
    Ok(())
}

fn read(bench: &Bench, pair: &Pair) -> Result {
    let (from, into) = memory(bench, 4)?;
    into.set(0, 5);
    let request = WorkRequest::read(into.part(8..END)?, from.remote(0))?;
    done(&pair.far.1.post(request)?)?;
    expect_eq!(into.cell(0), 5);
    expect_eq!(into.differ(1..CELLS, 4, ONE_BACK), 0);
    Ok(())
}

/// Checks a message whose second half comes first, when it is sent and when it is received.
fn gather(bench: &Bench, pair: &Pair) -> Result {
    let (from, into) = memory(bench, 8)?;
    let halves = |memory: &Memory| {
        let parts = [(memory.lend(), END / 2..END), (memory.lend(), 0..END / 2)];
        Gather::parts(parts.into_iter(), GFP_KERNEL)
    };
    let request = WorkRequest::write(halves(&from)?, into.remote(0));
    done(&pair.near.1.post(request)?)?;
    expect_eq!(into.differ(0..CELLS / 2, 8, CELLS / 2), 0);
    let back = Memory::new(&bench.local, BYTES, all())?;
    let received = pair.near.1.post_receive(Receive::new(halves(&back)?)?)?;
    done(&pair.far.1.post(WorkRequest::send(into.part(0..END)?))?)?;
    done(&received)?;
    expect_eq!(back.differ(0..CELLS, 8, 0), 0);
    // One more than there is room for.
    let three = [
        (from.lend(), 0..8),
        (from.lend(), 0..8),
        (from.lend(), 0..8),
    ];
    let three = Gather::parts(three.into_iter(), GFP_KERNEL)?;
    expect!(pair
        .near
        .1
        .post(WorkRequest::write(three, into.remote(0)))
        .is_err());
    Ok(())
}

fn atomics(bench: &Bench, pair: &Pair) -> Result {
    let target = Memory::new(&bench.local, 4096, all())?;
    let before = Memory::new(&bench.local, 4096, all())?;
    target.set(3, 40);
    let (post, at) = (|request| pair.near.1.post(request), target.remote(24));
    done(&post(WorkRequest::fetch_and_add(
        before.part(0..8)?,
        at,
        2,
    )?)?)?;
    expect_eq!((before.cell(0), target.cell(3)), (40, 42));
    let swap = |expected, new| {
        let request = WorkRequest::compare_and_swap(before.part(8..16)?, at, expected, new)?;
        done(&post(request)?)
    };
    swap(40, 1)?;
    expect_eq!((before.cell(1), target.cell(3)), (42, 42));
    swap(42, u64::MAX)?;
    expect_eq!((before.cell(1), target.cell(3)), (42, u64::MAX));
    let at = target.remote(4);
    expect!(WorkRequest::fetch_and_add(before.part(0..8)?, at, 2).is_err());
    Ok(())
}

/// `IB_WC_REM_ACCESS_ERR`.
const REM_ACCESS_ERR: u32 = 10;

/// Checks requests with a key that doesn't exist: the first one fails, the others are flushed.
fn refused_by_peer(bench: &Bench, pair: &Pair) -> Result {
    let (from, into) = memory(bench, 1)?;
    let wrong = Remote {
        key: into.remote(0).key ^ 0xff,
        ..into.remote(0)
    };
    let first = pair
        .near
        .1
        .post(WorkRequest::write(from.part(0..8)?, wrong))?;
    let second = pair
        .near
        .1
        .post(WorkRequest::write(from.part(0..8)?, into.remote(0)));
    expect_eq!(first.wait()?, Kind::Failed(REM_ACCESS_ERR));
    match second {
        Ok(second) => {
            expect_eq!(second.wait()?, Kind::Flushed);
        }
        // The first has failed by then.
        Err(error) => {
            expect_eq!(error, not_connected());
        }
    }
    expect_eq!(into.cell(0), 0);
    let late = pair
        .near
        .1
        .post(WorkRequest::write(from.part(0..8)?, into.remote(0)));
    expect_eq!(late.err(), Some(not_connected()));
    Ok(())
}

/// Checks a message that is longer than the receive.
fn too_long(bench: &Bench, pair: &Pair) -> Result {
    let (from, into) = memory(bench, 1)?;
    let received = pair.far.1.post_receive(Receive::new(into.part(0..64)?)?)?;
    let sent = pair.near.1.post(WorkRequest::send(from.part(0..128)?))?;
    // Devices differ in what they say.
    expect!(matches!(received.wait()?, Kind::Failed(_)));
    expect!(matches!(sent.wait()?, Kind::Failed(_)));
    expect_eq!(into.cell(8), 0);
    Ok(())
}
