// SPDX-License-Identifier: GPL-2.0

//! What goes over a connection.

use kernel::prelude::*;
use rdma::wr::{
    Receive,
    WorkRequest, //
};

use crate::{
    expect_eq,
    memory::Memory,
    side::{
        all,
        Bench,
        Kind,
        Pair,
        DRAIN,
        V4, //
    },
    Case, //
};

pub(crate) const CASES: &[Case] = &[(c"send", send), (c"write", write), (c"read", read)];

/// Longer than a packet.
const BYTES: usize = 32768;
const CELLS: usize = BYTES / 8;
const ALL: core::ops::Range<u64> = 0..BYTES as u64;

/// Memory of both sides, the first one filled.
fn memory(bench: &Bench, seed: u64) -> Result<(Memory, Memory)> {
    let from = Memory::new(&bench.local, BYTES, all())?;
    from.fill(seed);
    Ok((from, Memory::new(&bench.local, BYTES, all())?))
}

fn send() -> Result {
    let bench = Bench::new()?;
    let pair = Pair::new(&bench, V4)?;
    let (from, into) = memory(&bench, 2)?;
    for [this, other] in [[&pair.near, &pair.far], [&pair.far, &pair.near]] {
        into.fill(0);
        let received = other.1.post_receive(Receive::new(into.lend(), ALL)?)?;
        let sent = this.1.post(WorkRequest::send(from.lend(), ALL)?)?;
        expect_eq!(sent.wait()?, Kind::Done);
        expect_eq!(received.wait()?, Kind::Done);
        expect_eq!(into.differ(0..CELLS, 2, 0), 0);
    }
    pair.close(DRAIN)
}

fn write() -> Result {
    let bench = Bench::new()?;
    let pair = Pair::new(&bench, V4)?;
    let (from, into) = memory(&bench, 3)?;
    let request = WorkRequest::write(from.lend(), 8..BYTES as u64 - 8, into.remote(16))?;
    expect_eq!(pair.near.1.post(request)?.wait()?, Kind::Done);
    expect_eq!((into.cell(0), into.cell(1)), (0, 0));
    // One cell further than it was.
    expect_eq!(into.differ(2..CELLS, 3, 0usize.wrapping_sub(1)), 0);
    pair.close(DRAIN)
}

fn read() -> Result {
    let bench = Bench::new()?;
    let pair = Pair::new(&bench, V4)?;
    let (from, into) = memory(&bench, 4)?;
    into.set(0, 5);
    let request = WorkRequest::read(into.lend(), 8..BYTES as u64, from.remote(0))?;
    expect_eq!(pair.far.1.post(request)?.wait()?, Kind::Done);
    expect_eq!(into.cell(0), 5);
    expect_eq!(into.differ(1..CELLS, 4, 0usize.wrapping_sub(1)), 0);
    pair.close(DRAIN)
}
