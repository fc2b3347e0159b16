// SPDX-License-Identifier: GPL-2.0

//! Ending what is under way.

use crate::pair::{
    check,
    done,
    empty,
    failed,
    filled,
    pattern,
    tags,
    Pair,
    Place,
    PATIENCE, //
};
use kernel::prelude::*;
use kfabric::consumer::{
    Errno,
    Kind, //
};

/// Checks that requests come back by the queue when their endpoint is closed, and are dropped with
/// the queue.
pub(crate) fn what_was_posted_comes_back(place: &Place) -> Result {
    let pair = Pair::open(place)?;
    for tag in 0..3 {
        pair.active.recv(empty(100, tag)?)?;
        pair.passive.recv(empty(100, 10 + tag)?)?;
    }
    check("nothing has ended", pair.active_side.rx.read()?.is_none())?;
    check("there are six", tags() == 6)?;
    pair.active.close()?;
    for tag in 0..3 {
        let back = failed(&pair.active_side.rx, tag, Errno::ECANCELED)?;
        check("its bytes", back.memory()[..] == [0; 100])?;
    }
    check("there are three", tags() == 3)?;
    pair.passive.wait_shutdown(PATIENCE)?;
    // Its queues outlive the endpoint by what they have; nobody reads it.
    drop(pair.active_side);
    drop(pair.passive);
    check("nobody has dropped them", tags() == 3)?;
    drop(pair.passive_side);
    check("they are gone with the queue", tags() == 0)
}

/// Cancels a receive, if the provider has that; the others stay, in their order.
pub(crate) fn what_is_taken_back_comes_back(place: &Place) -> Result {
    let pair = Pair::open(place)?;
    let (from, to) = (&pair.active, &pair.passive);
    let (sent, queue) = (&pair.active_side.tx, &pair.passive_side.rx);
    let mut ids = KVec::new();
    for tag in 0..3 {
        let request = empty(64, tag)?;
        ids.push(request.id(), GFP_KERNEL)?;
        to.recv(request)?;
    }
    let [first, second, _] = ids[..] else {
        return Err(EIO);
    };
    check("of another endpoint", from.cancel(first).is_err())?;
    if place.cancels {
        to.cancel(second)?;
        // Nothing but the request has its memory now.
        let back = failed(queue, 1, Errno::ECANCELED)?;
        check("the same request", back.id() == second)?;
        check("once", to.cancel(second) == Err(Errno::ENOENT))?;
        check(
            "it isn't posted",
            to.cancel(back.id()) == Err(Errno::ENOENT),
        )?;
    } else {
        check("there is none", to.cancel(second) == Err(Errno::ENOSYS))?;
    }
    check("nothing has ended", queue.read()?.is_none())?;
    for tag in (0..3).filter(|tag| !place.cancels || *tag != 1) {
        from.send(filled(7, 10 + tag, 20)?)?;
        done(sent, 20, Kind::Send)?;
        let (request, how) = done(queue, tag, Kind::Recv)?;
        check("its length", how.len == 10 + tag)?;
        check(
            "its bytes",
            request.memory().get(..how.len) == Some(&pattern(7, how.len)?[..]),
        )?;
    }
    check("a message has come for it", to.cancel(first).is_err())
}
