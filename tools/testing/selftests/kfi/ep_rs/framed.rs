// SPDX-License-Identifier: GPL-2.0

//! Messages of a header and bio_vecs behind it.

use crate::pair::{
    check,
    done,
    pattern,
    Pair,
    Place,
    Tag, //
};
use kernel::{
    alloc::flags::__GFP_ZERO,
    bindings::bio_vec,
    page::Page,
    prelude::*, //
};
use kfabric::consumer::{
    BioVecs,
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

/// Parts of a page.
///
/// # Invariants
///
/// `list` names parts of the page, which is zeroed.
struct Parts {
    _page: Page,
    list: KVec<bio_vec>,
}

#[expect(unsafe_code, reason = "the trait is unsafe to implement")]
// SAFETY: A pointer to a page may be used by any thread.
unsafe impl Send for Parts {}

#[expect(unsafe_code, reason = "the trait is unsafe to implement")]
// SAFETY: By the type invariant the page is there as long as the value. Nobody has a reference to its bytes.
unsafe impl BioVecs for Parts {
    fn bio_vecs(&self) -> &[bio_vec] {
        &self.list
    }

    fn is_readable(&self) -> bool {
        true
    }

    fn is_writable(&self) -> bool {
        true
    }
}

impl Parts {
    fn new(count: usize) -> Result<Self> {
        let page = Page::alloc_page(GFP_KERNEL | __GFP_ZERO)?;
        let mut list = KVec::with_capacity(count, GFP_KERNEL)?;
        for part in 0..count {
            let bio_vec = bio_vec {
                bv_page: page.as_ptr(),
                bv_len: LEN.try_into()?,
                bv_offset: (part * DISTANCE).try_into()?,
            };
            list.push(bio_vec, GFP_KERNEL)?;
        }
        // INVARIANT: Just made so.
        Ok(Self { _page: page, list })
    }
}

type Message = Framed<Parts>;

/// Makes a message with a header of `header` bytes and `parts` parts.
fn message(header: usize, parts: usize) -> Result<Request<Message, Tag>> {
    let mut message = Framed::new(pattern(7, header)?);
    message.set_data(Some(Parts::new(parts)?));
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
