// SPDX-License-Identifier: GPL-2.0

//! Messages of a header and bio_vecs behind it.

use crate::{
    bio_vecs::Sectors,
    pair::{
        check,
        done,
        pattern,
        Pair,
        Place,
        Tag, //
    }, //
};
use kernel::prelude::*;
use kfabric::consumer::{
    Errno,
    Framed,
    Kind,
    Request, //
};

/// Length of a piece in bytes, and the distance of two pieces, which are not adjacent.
const LEN: usize = 8;
const DISTANCE: usize = 16;
/// Number of bytes that can be received.
const MOST: usize = 256;

type Message = Framed<Sectors>;

/// Makes a message with a header of `header` bytes and `parts` parts.
fn message(header: usize, parts: usize) -> Result<Request<Message, Tag>> {
    let mut message = Framed::new(pattern(7, header)?);
    let data = (0..parts).map(|part| (0, part * DISTANCE, LEN));
    message.set_data(Some(Sectors::of(1, data, true)?));
    Ok(Request::new(message, Tag::new(1))?)
}

/// Checks that as many pieces arrive as the offer allows, with and without a header. A message with more comes back.
pub(crate) fn messages(place: &Place) -> Result {
    let pair = Pair::<Message>::open(place)?;
    let source = place.source()?;
    let most = source.iter().next().ok_or(ENODEV)?.iov_limit();
    for (header, parts) in [(0, 0), (0, 1), (0, most), (5, 0), (5, 1), (5, most - 1)] {
        let room = Framed::new(KVec::from_elem(!0, MOST, GFP_KERNEL)?);
        pair.passive.recv(Request::new(room, Tag::new(2))?)?;
        pair.active.send(message(header, parts)?)?;
        done(&pair.active_side.tx, 1, Kind::Send)?;
        let (received, how) = done(&pair.passive_side.rx, 2, Kind::Recv)?;
        let (front, rest) = received.memory().header().split_at(how.len);
        check("its length", how.len == header + parts * LEN)?;
        check("its header", front.starts_with(&pattern(7, header)?))?;
        check("its data", front.iter().skip(header).all(|&byte| byte == 0))?;
        check("nothing behind", rest.iter().all(|&byte| byte == !0))?;
    }
    let refused = pair.active.send(message(5, most)?).err().ok_or(EIO)?;
    check("too many pieces", refused.errno() == Errno::EINVAL)?;
    let back = refused.into_inner();
    check(
        "its own header",
        back.memory().header() == &pattern(7, 5)?[..],
    )
}
