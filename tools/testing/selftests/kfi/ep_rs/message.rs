// SPDX-License-Identifier: GPL-2.0

//! Messages.

use crate::pair::{
    check,
    done,
    empty,
    filled,
    pattern,
    Pair,
    Place, //
};
use kernel::prelude::*;
use kfabric::consumer::{
    Errno,
    Kind,
    Request, //
};

/// Checks that each request comes back with its buffer, and that the bytes have arrived.
pub(crate) fn messages_arrive(place: &Place) -> Result {
    let pair = Pair::open(place)?;
    for (tag, len) in [0, 1, 100, 4096, 65536].into_iter().enumerate() {
        pair.passive.recv(empty(len + 1, tag)?)?;
        pair.active.send(filled(1, len, tag + 10)?)?;
        let (sent, _) = done(&pair.active_side.tx, tag + 10, Kind::Send)?;
        let (received, message) = done(&pair.passive_side.rx, tag, Kind::Recv)?;
        check("the length", message.len == len && message.data.is_none())?;
        check(
            "the bytes",
            received.memory().get(..len) == Some(&pattern(1, len)?[..]),
        )?;
        check("no byte more", received.memory().get(len) == Some(&0))?;
        // The same two requests, the other way round.
        let (bytes, tag_of) = received.into_inner();
        check("the context", tag_of.0 == tag && bytes.len() == len + 1)?;
        pair.active.recv(Request::new(bytes, tag_of)?)?;
        pair.passive.send(sent)?;
        done(&pair.passive_side.tx, tag + 10, Kind::Send)?;
        let (received, message) = done(&pair.active_side.rx, tag, Kind::Recv)?;
        check("the length back", message.len == len)?;
        check(
            "the bytes back",
            received.memory().get(..len) == Some(&pattern(1, len)?[..]),
        )?;
    }
    check("nothing more", pair.active_side.rx.read()?.is_none())?;
    // Five messages each way. Each counter counts one way.
    check("sends", pair.sends.read() == 5 && pair.sends.readerr() == 0)?;
    check(
        "receives",
        pair.recvs.read() == 5 && pair.recvs.readerr() == 0,
    )
}

/// Checks parts of buffers, numbers along with messages, and messages without a request.
pub(crate) fn parts_and_data_arrive(place: &Place) -> Result {
    let pair = Pair::open(place)?;
    let mut receive = empty(100, 1)?;
    receive.set_part(40, 20)?;
    let mut send = filled(7, 100, 2)?;
    send.set_part(10, 20)?;
    let beyond = send.set_part(90, 11);
    check("beyond the buffer", beyond == Err(Errno::EINVAL))?;
    pair.passive.recv(receive)?;
    pair.active.send_data(send, 0x1234_5678)?;
    done(&pair.active_side.tx, 2, Kind::Send)?;
    let (received, message) = done(&pair.passive_side.rx, 1, Kind::Recv)?;
    check(
        "the number",
        message.data == Some(0x1234_5678) && message.len == 20,
    )?;
    let whole = pattern(7, 100)?;
    check(
        "the part",
        received.memory().get(40..60) == whole.get(10..30),
    )?;
    let zeroes = [0; 40];
    check(
        "before it",
        received.memory().get(..40) == Some(&zeroes[..]),
    )?;
    check(
        "behind it",
        received.memory().get(60..) == Some(&zeroes[..]),
    )?;

    pair.passive.recv(empty(16, 3)?)?;
    pair.active.inject(&pattern(9, 16)?)?;
    let (received, _) = done(&pair.passive_side.rx, 3, Kind::Recv)?;
    check("injected", received.memory()[..] == pattern(9, 16)?[..])?;
    check("nothing comes back", pair.active_side.tx.read()?.is_none())
}

/// Checks that a request that can't be posted comes back to its poster unchanged.
pub(crate) fn what_is_refused_comes_back(place: &Place) -> Result {
    let pair = Pair::open(place)?;
    // The queue has 16 places.
    for tag in 0..16 {
        pair.passive.recv(empty(8, tag)?)?;
    }
    let refused = pair.passive.recv(filled(3, 8, 99)?).err().ok_or(EIO)?;
    check("it is full", refused.errno() == Errno::EAGAIN)?;
    let mut back = refused.into_inner();
    check("its context", back.context().0 == 99)?;
    check("its bytes", back.memory()[..] == pattern(3, 8)?[..])?;

    // The part that was asked for isn't there any more.
    back.set_part(4, 4)?;
    back.memory_mut().truncate(7);
    let refused = pair.active.send(back).err().ok_or(EIO)?;
    check("it is too short", refused.errno() == Errno::EINVAL)?;
    let mut back = refused.into_inner();
    back.set_part(0, 7)?;
    pair.active
        .send_data(back, 1 << 32)
        .err()
        .map_or(Err(EIO), |refused| {
            check("too large a number", refused.errno() == Errno::EINVAL)
        })?;

    pair.active.shutdown()?;
    pair.active.wait_shutdown(crate::pair::PATIENCE)?;
    let refused = pair.active.send(empty(8, 100)?).err().ok_or(EIO)?;
    check("no connection", refused.errno() == Errno::ENOTCONN)?;
    let (bytes, tag) = refused.into_inner().into_inner();
    check("it is whole", bytes.len() == 8 && tag.0 == 100)
}
