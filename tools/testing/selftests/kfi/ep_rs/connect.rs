// SPDX-License-Identifier: GPL-2.0

//! Connecting, and not.

use crate::pair::{
    check,
    empty,
    Place,
    Side,
    PATIENCE, //
};
use kernel::prelude::*;
use kfabric::consumer::{
    Errno,
    Hints,
    MsgEndpoint, //
};

/// Checks that each side reads the data that the other side sends with its call, and that both know
/// the other's address.
pub(crate) fn data_goes_both_ways(place: &Place) -> Result {
    let listener = place.listener()?;
    let address = listener.address()?;
    check("it has a port", address.port() != 0)?;
    check("its address", address.ip() == place.address.ip())?;
    check("nobody asks", listener.wait(Some(0))?.is_none())?;
    let info = place.peer(address)?;
    let a = Side::<KVec<u8>>::open(info.first())?;
    let endpoint = MsgEndpoint::open(&a.domain, info.first(), &a.tx, &a.rx)?.enable()?;
    // Refused, it can try again.
    let refused = endpoint.connect(&[1; 57]).err().ok_or(EIO)?;
    check("too many bytes", refused.errno() == Errno::EINVAL)?;
    let active = refused.into_inner().connect(&[1; 56])?;
    let request = listener.wait(PATIENCE)?.ok_or(ETIMEDOUT)?;
    check(
        "the request's bytes",
        request.data().get(..56) == Some(&[1; 56]),
    )?;
    check("where it came to", request.source() == Some(address))?;
    check("whose it is", request.peer().is_some())?;
    let p = Side::<KVec<u8>>::open(request.info())?;
    let passive = request.endpoint(&p.domain, &p.tx, &p.rx)?.enable()?;
    // Not yet.
    let early = active.wait(Some(0)).err().ok_or(EIO)?;
    check("it waits", early.errno() == Errno::ETIMEDOUT)?;
    let active = early.into_inner().ok_or(EIO)?;
    let passive = passive.accept(&[2; 196])?;
    let (active, passive) = (active.wait(PATIENCE)?, passive.wait(PATIENCE)?);
    check(
        "the answer's bytes",
        active.data().get(..196) == Some(&[2; 196]),
    )?;
    check("the listener's side", active.peer()? == address)?;
    passive.peer()?;
    // A closed listener has nothing to do with connections.
    listener.close()?;
    check(
        "no end",
        active.wait_shutdown(Some(0)) == Err(Errno::ETIMEDOUT),
    )?;
    active.shutdown()?;
    active.wait_shutdown(PATIENCE)?;
    passive.wait_shutdown(PATIENCE)?;
    check("no peer", active.peer() == Err(Errno::ENOTCONN))?;
    passive.close()?;
    Ok(active.close()?)
}

/// Checks both ways to get no connection: a peer that rejects, and no peer.
pub(crate) fn rejections_are_told(place: &Place) -> Result {
    let listener = place.listener()?;
    let address = listener.address()?;
    let info = place.peer(address)?;
    let a = Side::<KVec<u8>>::open(info.first())?;
    let open = || MsgEndpoint::open(&a.domain, info.first(), &a.tx, &a.rx)?.enable();
    let active = open()?.connect(b"")?;
    let request = listener.wait(PATIENCE)?.ok_or(ETIMEDOUT)?;
    let refused = request.reject(&[3; 149]).err().ok_or(EIO)?;
    check("too many bytes", refused.errno() == Errno::EINVAL)?;
    refused.into_inner().reject(&[3; 148])?;
    let refused = active.wait(PATIENCE).err().ok_or(EIO)?;
    check("refused", refused.errno() == Errno::ECONNREFUSED)?;
    check("the bytes", refused.data().get(..148) == Some(&[3; 148]))?;
    check("it is over", refused.into_inner().is_none())?;

    drop(listener);
    let refused = open()?.connect(b"")?.wait(PATIENCE).err().ok_or(EIO)?;
    check("nobody listens", refused.errno() == Errno::ECONNREFUSED)
}

/// Checks that dropping a request, an endpoint or a listener rejects.
pub(crate) fn requests_that_are_dropped_are_rejected(place: &Place) -> Result {
    let listener = place.listener()?;
    let info = place.peer(listener.address()?)?;
    let a = Side::<KVec<u8>>::open(info.first())?;
    let ask = || -> Result<_> {
        let endpoint = MsgEndpoint::open(&a.domain, info.first(), &a.tx, &a.rx)?.enable()?;
        Ok(endpoint.connect(b"")?)
    };
    let refused = |active: MsgEndpoint<_, _, _>| -> Result {
        let refused = MsgEndpoint::wait(active, PATIENCE).err().ok_or(EIO)?;
        check("refused", refused.errno() == Errno::ECONNREFUSED)
    };

    let active = ask()?;
    drop(listener.wait(PATIENCE)?.ok_or(ETIMEDOUT)?);
    refused(active)?;

    let active = ask()?;
    let request = listener.wait(PATIENCE)?.ok_or(ETIMEDOUT)?;
    let p = Side::<KVec<u8>>::open(request.info())?;
    drop(request.endpoint(&p.domain, &p.tx, &p.rx)?);
    refused(active)?;

    let active = ask()?;
    let request = listener.wait(PATIENCE)?.ok_or(ETIMEDOUT)?;
    listener.close()?;
    refused(active)?;
    // There is no more to be done about it.
    let late = request.endpoint(&p.domain, &p.tx, &p.rx);
    check("too late", late.err() == Some(Errno::EINVAL))
}

/// Checks that queues have the sizes of the hints, and that nobody offers longer queues than there are.
pub(crate) fn queues_have_the_sizes_of_hints(place: &Place) -> Result {
    let listener = place.listener()?;
    let address = listener.address()?;
    let hints = || -> Result<Hints> { Ok(place.hints()?.peer(address)?) };
    let (sends, receives) = hints()?.getinfo()?.first().queue_sizes();
    for (sends, receives) in [(sends + 1, 0), (0, receives + 1)] {
        let refused = hints()?.queue_sizes(sends, receives).getinfo().err();
        check("too long", refused == Some(Errno::ENODATA))?;
    }
    for (sends, receives) in [(sends, receives), (3, 2)] {
        let offers = hints()?.queue_sizes(sends, receives).getinfo()?;
        let info = offers.first();
        check("the sizes", info.queue_sizes() == (sends, receives))?;
        let side = Side::open(info)?;
        let endpoint = MsgEndpoint::open(&side.domain, info, &side.tx, &side.rx)?.enable()?;
        for tag in 0..2 {
            endpoint.recv(empty(8, tag)?)?;
        }
        let third = endpoint
            .recv(empty(8, 2)?)
            .err()
            .map(|refused| refused.errno());
        check(
            "a third receive",
            third == (receives == 2).then_some(Errno::EAGAIN),
        )?;
    }
    Ok(())
}
