// SPDX-License-Identifier: GPL-2.0

//! Receives that endpoints share.

use crate::pair::{
    check,
    done,
    empty,
    filled,
    pattern,
    tags,
    End,
    Place,
    Side,
    Tag,
    PATIENCE, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use kfabric::consumer::{
    Counter,
    Counts,
    Errno,
    Kind,
    MsgEndpoint,
    SharedReceives, //
};

/// Two connections, whose second ends share their receives.
struct Sharing {
    ends: KVec<(End, End)>,
    active: Side,
    passive: Side,
    receives: Arc<SharedReceives<KVec<u8>, Tag>>,
    received: Counter,
}

impl Sharing {
    /// Posts `posted` receives, and connects.
    fn open(place: &Place, posted: usize) -> Result<Self> {
        let listener = place.listener()?;
        let info = place.peer(listener.address()?)?;
        check("they can be shared", info.first().shares_receives())?;
        let (active, passive) = (Side::open(info.first())?, Side::open(info.first())?);
        let other = SharedReceives::open(&active.domain, &passive.rx, 8).err();
        check("of another domain", other == Some(Errno::EINVAL))?;
        let receives = SharedReceives::open(&passive.domain, &passive.rx, 8)?;
        let received = Counter::open(&passive.domain)?;
        receives.count(&received)?;
        let twice = receives.count(&received);
        check("counted already", twice == Err(Errno::EINVAL))?;
        // Before there is an endpoint.
        for tag in 0..posted {
            receives.recv(empty(64, tag)?)?;
        }
        let mut ends = KVec::new();
        for _ in 0..2 {
            let info = info.first();
            let a = MsgEndpoint::open(&active.domain, info, &active.tx, &active.rx)?;
            let a = a.enable()?.connect(b"")?;
            let request = listener.wait(PATIENCE)?.ok_or(ETIMEDOUT)?;
            let p = request.endpoint_sharing(&passive.domain, &passive.tx, &receives)?;
            let counted = p.count(&received, Counts::RECVS);
            check("not of one", counted == Err(Errno::EINVAL))?;
            let p = p.enable()?;
            let own = p.recv(empty(8, 99)?).err().ok_or(EIO)?;
            check("it has none of its own", own.errno() == Errno::EOPNOTSUPP)?;
            let p = p.accept(b"")?;
            ends.push((a.wait(PATIENCE)?, p.wait(PATIENCE)?), GFP_KERNEL)?;
        }
        Ok(Self {
            ends,
            active,
            passive,
            receives,
            received,
        })
    }

    /// Sends from one of the ends, and looks that it came to that receive.
    fn send(&self, end: usize, receive: usize) -> Result {
        let (from, _) = self.ends.get(end).ok_or(EIO)?;
        from.send(filled(3, 10 + receive, 50)?)?;
        done(&self.active.tx, 50, Kind::Send)?;
        let (request, how) = done(&self.passive.rx, receive, Kind::Recv)?;
        check("its length", how.len == 10 + receive)?;
        check(
            "its bytes",
            request.memory().get(..how.len) == Some(&pattern(3, how.len)?[..])
                && request.memory().get(how.len) == Some(&0),
        )
    }
}

/// Messages take receives in their order, by whichever endpoint they come; also when one has gone.
pub(crate) fn whoever_has_a_message(place: &Place) -> Result {
    let mut all = Sharing::open(place, 4)?;
    for receive in 4..8 {
        all.receives.recv(empty(64, receive)?)?;
    }
    let full = all.receives.recv(filled(5, 8, 9)?).err().ok_or(EIO)?;
    check("it is full", full.errno() == Errno::EAGAIN)?;
    let back = full.into_inner();
    check("it comes back", back.memory()[..] == pattern(5, 8)?[..])?;
    for (receive, end) in [0, 1, 1, 0].into_iter().enumerate() {
        all.send(end, receive)?;
    }
    // An open endpoint keeps its receive context open.
    let busy = SharedReceives::close(all.receives.clone()).err();
    let busy = busy.map(|error| error.errno());
    check("it is in use", busy == Some(Errno::EBUSY))?;
    let (a, p) = all.ends.remove(0).map_err(|_| EIO)?;
    a.close()?;
    p.wait_shutdown(PATIENCE)?;
    p.close()?;
    all.send(0, 4)?;
    check("counted", all.received.read() == 5)?;
    // Also one that answers.
    let (a, p) = all.ends.first().ok_or(EIO)?;
    a.recv(empty(20, 30)?)?;
    p.send(filled(1, 20, 31)?)?;
    done(&all.passive.tx, 31, Kind::Send)?;
    let (answer, _) = done(&all.active.rx, 30, Kind::Recv)?;
    check("answered", answer.memory()[..] == pattern(1, 20)?[..])
}

/// Checks that receives that no endpoint has taken come back when the last owner lets go.
pub(crate) fn what_nobody_took_comes_back(place: &Place) -> Result {
    let all = Sharing::open(place, 5)?;
    all.send(1, 0)?;
    check("there are four", tags() == 4)?;
    drop(all.receives);
    // The endpoints have it.
    check("nothing has ended", all.passive.rx.read()?.is_none())?;
    drop(all.ends);
    let mut seen = [false; 5];
    for _ in 0..4 {
        let Some(kfabric::consumer::Ended::Failed(request, failure)) =
            all.passive.rx.wait(PATIENCE)?
        else {
            return check("each has failed", false);
        };
        check("cancelled", failure.errno == Errno::ECANCELED)?;
        let seen = seen.get_mut(request.context().0).ok_or(EIO)?;
        check("once", !core::mem::replace(seen, true))?;
    }
    check("each of them", seen == [false, true, true, true, true])?;
    check("nothing more", all.passive.rx.read()?.is_none())?;
    check("none is left", tags() == 0)
}
