// SPDX-License-Identifier: GPL-2.0

//! Reading and writing a peer's memory.

use crate::pair::{
    check,
    done,
    empty,
    failed,
    filled,
    pattern,
    Pair,
    Place,
    Tag,
    PATIENCE, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use kfabric::consumer::{
    Access,
    Errno,
    Kind,
    Mr,
    MrPart,
    Remote,
    RemotePiece,
    Request,
    TransferFlags, //
};

const LEN: usize = 5000;

fn all() -> Access {
    Access::REMOTE_READ | Access::REMOTE_WRITE
}

/// Buffers of one side, and a region of the other.
pub(crate) fn reads_and_writes(place: &Place) -> Result {
    let pair = Pair::open(place)?;
    let mr = pair.passive_side.domain.reg(pattern(1, LEN)?, all())?;
    let at = |offset: u64| Remote {
        addr: mr.base() + offset,
        key: mr.key(),
    };
    pair.active.read(empty(1000, 1)?, at(100))?;
    let (read, _) = done(&pair.active_side.tx, 1, Kind::Read)?;
    check(
        "read",
        read.memory().get(..) == pattern(1, LEN)?.get(100..1100),
    )?;

    pair.active.write(filled(9, 1000, 2)?, at(2000))?;
    done(&pair.active_side.tx, 2, Kind::Write)?;
    check("written", mr.compare(2000, &pattern(9, 1000)?)?.is_none())?;
    check(
        "before it",
        mr.compare(0, pattern(1, LEN)?.get(..2000).ok_or(EIO)?)?
            .is_none(),
    )?;

    pair.passive.recv(empty(8, 3)?)?;
    pair.active.write_data(filled(5, 100, 4)?, at(0), 77)?;
    done(&pair.active_side.tx, 4, Kind::Write)?;
    let (told, how) = done(&pair.passive_side.rx, 3, Kind::RemoteWrite)?;
    check("told of it", how.data == Some(77))?;
    check("its memory is as it was", told.memory()[..] == [0; 8])?;
    check("written, too", mr.compare(0, &pattern(5, 100)?)?.is_none())?;

    pair.active.inject_write(&pattern(3, 16)?, at(3000))?;
    // It comes before what is posted after it.
    pair.active.read(empty(16, 6)?, at(3000))?;
    let (read, _) = done(&pair.active_side.tx, 6, Kind::Read)?;
    check("injected", read.memory()[..] == pattern(3, 16)?[..])?;

    // A key that is none ends the connection.
    let bad = Remote {
        addr: mr.base() + 4001,
        ..at(0)
    };
    pair.active.write(filled(7, 1000, 5)?, bad)?;
    let back = failed(&pair.active_side.tx, 5, Errno::EACCES)?;
    check("its bytes", back.memory()[..] == pattern(7, 1000)?[..])?;
    pair.active.wait_shutdown(PATIENCE)?;
    pair.passive.wait_shutdown(PATIENCE)?;
    check(
        "nothing written",
        mr.compare(4001, pattern(1, LEN)?.get(4001..).ok_or(EIO)?)?
            .is_none(),
    )?;
    mr.close()?;
    Ok(())
}

/// Checks a transfer to several pieces of the peer's memory by one request.
pub(crate) fn pieces(place: &Place) -> Result {
    let pair = Pair::open(place)?;
    let mr = pair.passive_side.domain.reg(pattern(1, LEN)?, all())?;
    let piece = |offset: u64, len| RemotePiece {
        key: mr.key(),
        base: mr.base() + offset,
        len,
    };
    // Not in their order, and one twice.
    let from = [
        piece(3000, 100),
        piece(10, 7),
        piece(3000, 100),
        piece(0, 1),
    ];
    pair.active.read_pieces(empty(208, 1)?, &from)?;
    let (read, _) = done(&pair.active_side.tx, 1, Kind::Read)?;
    let all = pattern(1, LEN)?;
    let mut at = 0;
    for (first, len) in [(3000, 100), (10, 7), (3000, 100), (0, 1)] {
        let same = read.memory().get(at..at + len) == all.get(first..first + len);
        check("read, one behind the other", same)?;
        at += len;
    }
    let to = [piece(4000, 50), piece(100, 150), piece(2000, 1)];
    pair.active.write_pieces(filled(9, 201, 2)?, &to)?;
    done(&pair.active_side.tx, 2, Kind::Write)?;
    let bytes = pattern(9, 201)?;
    let mut want = pattern(1, LEN)?;
    let mut at = 0;
    for (first, len) in [(4000, 50), (100, 150), (2000, 1)] {
        let place = want.get_mut(first..first + len).ok_or(EIO)?;
        place.copy_from_slice(bytes.get(at..at + len).ok_or(EIO)?);
        at += len;
    }
    check("written, and nothing else", mr.compare(0, &want)?.is_none())?;
    // Pieces of another length in total, none, or too many.
    let many = [piece(0, 1); 17];
    for (len, pieces) in [(200, &to[..]), (8, &[][..]), (17, &many[..])] {
        let refused = pair.active.write_pieces(filled(3, len, 3)?, pieces).err();
        let refused = refused.ok_or(EIO)?;
        check("refused", refused.errno() == Errno::EINVAL)?;
        check("comes back", refused.into_inner().memory().len() == len)?;
    }
    mr.close()?;
    Ok(())
}

/// Checks several requests for which the device is told once, one that waits for reads, and unknown
/// flags.
pub(crate) fn flags(place: &Place) -> Result {
    let pair = Pair::open(place)?;
    let mr = pair.passive_side.domain.reg(pattern(1, LEN)?, all())?;
    let at = |offset: u64| Remote {
        addr: mr.base() + offset,
        key: mr.key(),
    };
    let more = pair.active.with(TransferFlags::MORE);
    pair.passive.with(TransferFlags::MORE).recv(empty(8, 1)?)?;
    pair.passive.recv(empty(8, 2)?)?;
    pair.passive.recv(empty(8, 3)?)?;
    more.write(filled(9, 1000, 4)?, at(2000))?;
    more.send(filled(7, 8, 5)?)?;
    more.write_data(filled(5, 100, 6)?, at(0), 77)?;
    more.read(empty(100, 7)?, at(2000))?;
    let both = TransferFlags::FENCE | TransferFlags::DELIVERY_COMPLETE;
    pair.active.with(both).send_data(filled(8, 8, 8)?, 78)?;
    done(&pair.active_side.tx, 4, Kind::Write)?;
    done(&pair.active_side.tx, 5, Kind::Send)?;
    done(&pair.active_side.tx, 6, Kind::Write)?;
    let (read, _) = done(&pair.active_side.tx, 7, Kind::Read)?;
    done(&pair.active_side.tx, 8, Kind::Send)?;
    check(
        "read what was written",
        read.memory()[..] == pattern(9, 100)?[..],
    )?;
    check("written", mr.compare(2000, &pattern(9, 1000)?)?.is_none())?;
    check(
        "written, and told",
        mr.compare(0, &pattern(5, 100)?)?.is_none(),
    )?;
    for (tag, kind, data, first) in [
        (1, Kind::Recv, None, Some(7)),
        (2, Kind::RemoteWrite, Some(77), None),
        (3, Kind::Recv, Some(78), Some(8)),
    ] {
        let (came, how) = done(&pair.passive_side.rx, tag, kind)?;
        check("its data", how.data == data)?;
        let bytes = match first {
            Some(first) => pattern(first, 8)?,
            None => KVec::from_elem(0, 8, GFP_KERNEL)?,
        };
        check("its bytes", came.memory()[..] == bytes[..])?;
    }
    let fence = pair.passive.with(TransferFlags::FENCE);
    let refused = fence.recv(empty(8, 9)?).err().ok_or(EIO)?;
    check(
        "no fence for a receive",
        refused.errno() == Errno::EBADFLAGS,
    )?;
    check("comes back", refused.into_inner().context().0 == 9)?;
    mr.close()?;
    Ok(())
}

/// Checks atomic operations on eight bytes of the peer's memory.
pub(crate) fn atomics(place: &Place) -> Result {
    let pair = Pair::<KVec<u8>>::open(place)?;
    let mr = pair.passive_side.domain.reg(pattern(0, 64)?, all())?;
    let at = |offset: u64| Remote {
        addr: mr.base() + offset,
        key: mr.key(),
    };
    let is = |offset, value: u64| -> Result<bool> {
        Ok(mr.compare(offset, &value.to_ne_bytes())?.is_none())
    };
    let before = {
        let mut word = [0; 8];
        word.copy_from_slice(pattern(0, 64)?.get(8..16).ok_or(EIO)?);
        u64::from_ne_bytes(word)
    };
    let came = |tag, value: u64| -> Result {
        let (back, _) = done(&pair.active_side.tx, tag, Kind::Atomic)?;
        check("what was there", back.memory()[..] == value.to_ne_bytes())
    };
    pair.active.fetch_add(empty(8, 1)?, at(8), 5)?;
    came(1, before)?;
    check("added", is(8, before.wrapping_add(5))?)?;
    pair.active.fetch(empty(8, 2)?, at(8))?;
    came(2, before.wrapping_add(5))?;
    pair.active.compare_swap(empty(8, 3)?, at(8), 1, 2)?;
    came(3, before.wrapping_add(5))?;
    check("not as expected", is(8, before.wrapping_add(5))?)?;
    pair.active
        .compare_swap(empty(8, 4)?, at(8), before.wrapping_add(5), 7)?;
    came(4, before.wrapping_add(5))?;
    pair.active.inject_add(at(8), 3)?;
    pair.active.fetch(empty(8, 5)?, at(8))?;
    came(5, 10)?;
    let set = pair.active.inject_set(at(8), 99);
    if place.writes_atomically {
        set?;
        pair.active.fetch(empty(8, 6)?, at(8))?;
        came(6, 99)?;
    } else {
        check("set", set == Err(Errno::EOPNOTSUPP))?;
    }
    check(
        "others",
        mr.compare(0, pattern(0, 64)?.get(..8).ok_or(EIO)?)?
            .is_none()
            && mr
                .compare(16, pattern(0, 64)?.get(16..).ok_or(EIO)?)?
                .is_none(),
    )?;
    for (len, offset) in [(16, 8), (8, 4)] {
        let no = pair.active.fetch(empty(len, 7)?, at(offset)).err();
        let no = no.map(|refused| refused.errno());
        check("not eight at eight", no == Some(Errno::EINVAL))?;
    }
    mr.close()?;
    Ok(())
}

/// Checks requests with parts of regions instead of buffers.
pub(crate) fn regions_lend_parts(place: &Place) -> Result {
    let pair = Pair::<MrPart<KVec<u8>>>::open(place)?;
    let register = |side: &crate::pair::Side<_>, first| -> Result<_> {
        let mr = side.domain.reg(pattern(first, LEN)?, all())?;
        Ok(Arc::new(mr, GFP_KERNEL)?)
    };
    let (from, to) = (
        register(&pair.active_side, 1)?,
        register(&pair.passive_side, 2)?,
    );
    let part = |mr: &Arc<Mr<KVec<u8>>>, offset, len, tag| -> Result<_> {
        let part = MrPart::new(mr.clone(), offset, len)?;
        Ok(Request::new(part, Tag::new(tag))?)
    };
    let beyond = MrPart::new(from.clone(), LEN, 1).err();
    check("beyond the region", beyond == Some(Errno::EINVAL))?;
    pair.passive.recv(part(&to, 1000, 100, 1)?)?;
    pair.active.send(part(&from, 10, 100, 2)?)?;
    let (sent, _) = done(&pair.active_side.tx, 2, Kind::Send)?;
    done(&pair.passive_side.rx, 1, Kind::Recv)?;
    check("where it is from", Arc::ptr_eq(sent.memory().mr(), &from))?;
    let bytes = pattern(1, LEN)?;
    check(
        "received",
        to.compare(1000, bytes.get(10..110).ok_or(EIO)?)?.is_none(),
    )?;
    let remote = Remote {
        addr: to.base(),
        key: to.key(),
    };
    pair.active.write(part(&from, 0, 1000, 3)?, remote)?;
    done(&pair.active_side.tx, 3, Kind::Write)?;
    check(
        "written",
        to.compare(0, bytes.get(..1000).ok_or(EIO)?)?.is_none(),
    )?;
    // A region of another domain is none here, if regions have descriptors.
    let refused = pair.active.send(part(&to, 0, 10, 4)?).err();
    check(
        "of another domain",
        refused.map(|refused| refused.errno()) == place.has_descriptors.then_some(Errno::EINVAL),
    )
}
