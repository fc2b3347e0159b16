// SPDX-License-Identifier: GPL-2.0

//! Connecting, and one message.

use core::net::IpAddr;
use kernel::prelude::*;
use rdma::{
    cm::{
        Listener,
        Resolved,
        MAX_ACCEPT_DATA,
        MAX_REQUEST_DATA, //
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
        proposal,
        Bench,
        Kind,
        Side,
        DRAIN,
        LIMIT,
        V4,
        V6, //
    },
    told::{
        Callers,
        Told, //
    },
};

pub(crate) const CASES: &[Case] = &[
    (c"connect_v4", || connect(V4)),
    (c"connect_v6", || connect(V6)),
];

/// Checks that both sides send private data to each other, and that one sends a message.
fn connect(ip: IpAddr) -> Result {
    let bench = Bench::new()?;
    let (near, far) = (Side::new(&bench)?, Side::new(&bench)?);
    let callers = Callers::new()?;
    let listener = Listener::new(at(ip, 0), 4, callers.clone())?;
    let to = listener.local().ok_or(EINVAL)?;
    expect!(to.port() != 0);

    let (from, into) = (
        Memory::new(&bench.local, 4096, all())?,
        Memory::new(&bench.local, 4096, all())?,
    );
    from.fill(1);
    // Before there is a connection.
    let received = far.post_receive(Receive::new(into.part(8..4096)?)?)?;
    let early = near.post(WorkRequest::send(from.part(0..8)?));
    expect_eq!(early.err().map(Error::to_errno), Some(-107));

    let resolved = Resolved::new(None, to, LIMIT)?;
    expect!(resolved.device().is_same(bench.pd.device()));
    let ours = resolved.connect(&near.endpoint, &proposal(b"hello"), near.diary.clone())?;
    let incoming = callers.next()?;
    expect!(incoming.device().is_same(bench.pd.device()));
    expect_eq!(incoming.local(), Some(to));
    expect_eq!(incoming.peer().map(|peer| peer.ip()), Some(ip));
    expect_eq!(incoming.private_data().len(), MAX_REQUEST_DATA);
    expect!(incoming.private_data().starts_with(b"hello\0"));
    expect_eq!(incoming.terms().retry_count, 6);
    let theirs = incoming.accept(&far.endpoint, &proposal(b"welcome"), far.diary.clone())?;
    let welcome = near.diary.established()?;
    expect_eq!(welcome.len(), MAX_ACCEPT_DATA);
    expect!(welcome.starts_with(b"welcome\0"));
    expect_eq!(far.diary.next()?, Told::Established(KVec::new()));

    let sent = near.post(WorkRequest::send(from.part(0..4088)?))?;
    expect_eq!(sent.wait()?, Kind::Done);
    expect_eq!(received.wait()?, Kind::Done);
    expect_eq!(into.cell(0), 0);
    expect_eq!(into.differ(1..512, 1, 0usize.wrapping_sub(1)), 0);

    expect!(ours.close(DRAIN));
    expect_eq!(far.diary.next()?, Told::Disconnected);
    expect!(theirs.close(DRAIN));
    expect_eq!(near.diary.now(), None);
    expect_eq!(far.diary.now(), None);
    Ok(())
}
