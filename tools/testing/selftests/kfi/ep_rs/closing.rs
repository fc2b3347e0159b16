// SPDX-License-Identifier: GPL-2.0

//! Closing with requests under way.

use crate::pair::{
    check,
    empty,
    failed,
    tags,
    Pair,
    Place,
    PATIENCE, //
};
use kernel::prelude::*;
use kfabric::consumer::Errno;

/// Requests come back by the queue when their endpoint is closed, and are dropped with the queue.
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
