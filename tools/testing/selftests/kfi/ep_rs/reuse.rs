// SPDX-License-Identifier: GPL-2.0

//! Regions that are filled with the memory of one request after the other.

use crate::{
    bio_vecs::{
        Sectors,
        LEN, //
    },
    pair::{
        check,
        done,
        empty,
        filled,
        pattern,
        tags,
        Pair,
        Place, //
    }, //
};
use kernel::prelude::*;
use kfabric::consumer::{
    Access,
    Backing,
    BioVecList,
    EmptyMr,
    Errno,
    FilledMr,
    Kind,
    Remote, //
};

const ROUNDS: usize = 40;

/// Sends something, which takes the registration with it.
fn tell(pair: &Pair, round: usize) -> Result {
    pair.active.recv(empty(8, 1)?)?;
    pair.passive.send(filled(1, 8, 2)?)?;
    done(&pair.passive_side.tx, 2, Kind::Send)?;
    done(&pair.active_side.rx, 1, Kind::Recv)?;
    check("a round", round < ROUNDS)
}

/// Has the peer write to the memory, and invalidate the key.
fn access(pair: &Pair, mr: &FilledMr<Sectors>) -> Result {
    let (addr, key) = (mr.base(), mr.key());
    pair.active
        .write(filled(3, mr.len(), 3)?, Remote { addr, key })?;
    done(&pair.active_side.tx, 3, Kind::Write)?;
    pair.passive.recv(empty(8, 4)?)?;
    pair.active.send_invalidating(filled(1, 8, 5)?, key)?;
    done(&pair.active_side.tx, 5, Kind::Send)?;
    let (_, how) = done(&pair.passive_side.rx, 4, Kind::Recv)?;
    check("the key is invalidated", how.invalidated == Some(key))
}

/// Fills a region again and again. The memory comes back each time.
pub(crate) fn again_and_again(place: &Place) -> Result {
    let place = place.binding();
    let pair: Pair = Pair::open(&place)?;
    let opened = EmptyMr::open(&pair.passive_side.domain, &pair.passive, 2);
    if !place.reuses {
        return check("there are none", opened.err() == Some(Errno::ENOSYS));
    }
    let mut mr = opened?;
    for round in 0..ROUNDS {
        let full = mr.fill(Sectors::new(true)?, Access::REMOTE_WRITE)?;
        check("its length", full.len() == LEN)?;
        match round % 2 {
            0 => tell(&pair, round)?,
            _ => {
                pair.passive.flush()?;
                tell(&pair, round)?;
            }
        }
        let key = full.key();
        let full = full.empty_now().err().ok_or(EIO)?;
        check("not while the peer has it", full.errno() == Errno::EAGAIN)?;
        let full = full.into_inner();
        check("the same", full.key() == key)?;
        access(&pair, &full)?;
        let (empty, sectors) = match full.empty_now() {
            Ok(both) => both,
            Err(busy) => busy.into_inner().empty()?,
        };
        let bytes = BioVecList::new(sectors);
        check("written", bytes.compare(0, &pattern(3, LEN)?)?.is_none())?;
        mr = empty;
    }
    refusals(mr)
}

/// Checks that refused memory comes back, and the memory of a dropped region.
fn refusals(mr: EmptyMr) -> Result {
    let refused = mr
        .fill(Sectors::new(false)?, Access::REMOTE_WRITE)
        .err()
        .ok_or(EIO)?;
    check("it may not be written", refused.errno() == Errno::EINVAL)?;
    let (mr, sectors) = refused.into_inner();
    let full = mr.fill(sectors, Access::REMOTE_READ)?;
    check("there is memory", tags() == 1)?;
    drop(full);
    check("it is freed", tags() == 0)
}
