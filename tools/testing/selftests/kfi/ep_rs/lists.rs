// SPDX-License-Identifier: GPL-2.0

//! Memory in several places at this side.

use crate::pair::{
    check,
    done,
    pattern,
    Pair,
    Place,
    Tag, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    }, //
};
use kfabric::consumer::{
    Access,
    Backing,
    Domain,
    Errno,
    Kind,
    Local,
    LocalList,
    MrPart,
    Options,
    Pages,
    Remote,
    Request,
    TransferFlags, //
};

const LEN: usize = 5000;

/// The next key that no region has had.
static KEYS: Atomic<u64> = Atomic::new(1);

/// Memory in several places: how it is made of bytes, and what its bytes are.
struct Form<B> {
    make: fn(&Arc<Domain>, &[u8]) -> Result<B>,
    bytes: fn(&B) -> Result<KVec<u8>>,
}

impl<B: Local> Form<B> {
    fn request(&self, domain: &Arc<Domain>, bytes: &[u8], tag: usize) -> Result<Request<B, Tag>> {
        let memory = (self.make)(domain, bytes)?;
        Ok(Request::new(memory, Tag::new(tag))?)
    }

    /// Makes a request of zeroes. A part of it is transferred.
    fn room(&self, domain: &Arc<Domain>, offset: usize, tag: usize) -> Result<Request<B, Tag>> {
        let mut room = self.request(domain, &zeroes(LEN)?, tag)?;
        room.set_part(offset, LEN - offset - 1)?;
        Ok(room)
    }

    /// Has the memory these bytes from `offset` on, and nothing but zeroes before and behind?
    fn check(&self, what: &str, memory: &B, offset: usize, bytes: &[u8]) -> Result {
        let mut want = zeroes(LEN)?;
        let part = want.get_mut(offset..offset + bytes.len()).ok_or(EIO)?;
        part.copy_from_slice(bytes);
        check(what, (self.bytes)(memory)?[..] == want[..])
    }
}

fn zeroes(len: usize) -> Result<KVec<u8>> {
    Ok(KVec::from_elem(0, len, GFP_KERNEL)?)
}

/// Splits bytes into four pieces, one of them empty and one short.
fn split(bytes: &[u8]) -> Result<[&[u8]; 4]> {
    let (first, rest) = bytes.split_at_checked(bytes.len() / 3).ok_or(EIO)?;
    let (second, third) = rest.split_at_checked(1).ok_or(EIO)?;
    Ok([first, &[], second, third])
}

fn copied(bytes: &[u8]) -> Result<KVec<u8>> {
    let mut copy = KVec::new();
    copy.extend_from_slice(bytes, GFP_KERNEL)?;
    Ok(copy)
}

/// Checks every transfer with memory of that form at this side.
fn transfers<B: Local>(place: &Place, form: &Form<B>) -> Result {
    let pair = Pair::<B>::open(place)?;
    let (near, far) = (&pair.active_side.domain, &pair.passive_side.domain);
    let bytes = pattern(1, 2500)?;

    pair.passive.recv(form.room(far, 1600, 1)?)?;
    pair.active.send(form.request(near, &bytes, 2)?)?;
    done(&pair.active_side.tx, 2, Kind::Send)?;
    let (received, message) = done(&pair.passive_side.rx, 1, Kind::Recv)?;
    check("the length", message.len == bytes.len())?;
    form.check("a message", received.memory(), 1600, &bytes)?;

    // Of this, only the end of the first piece, the second, and the start of the third.
    let mut send = form.request(near, &bytes, 3)?;
    send.set_part(800, 100)?;
    let beyond = send.set_part(800, 1701);
    check("beyond the end", beyond == Err(Errno::EINVAL))?;
    pair.passive.recv(form.room(far, 0, 4)?)?;
    pair.active.send_data(send, 99)?;
    done(&pair.active_side.tx, 3, Kind::Send)?;
    let (received, message) = done(&pair.passive_side.rx, 4, Kind::Recv)?;
    let part = bytes.get(800..900).ok_or(EIO)?;
    check("the number", message.data == Some(99) && message.len == 100)?;
    form.check("a part", received.memory(), 0, part)?;

    let there = pattern(5, LEN)?;
    let mr = far.reg(copied(&there)?, Access::REMOTE_READ | Access::REMOTE_WRITE)?;
    let at = |offset: u64| Remote {
        addr: mr.base() + offset,
        key: mr.key(),
    };
    pair.active.read(form.room(near, 1000, 5)?, at(0))?;
    let (read, _) = done(&pair.active_side.tx, 5, Kind::Read)?;
    let part = there.get(..LEN - 1001).ok_or(EIO)?;
    form.check("read", read.memory(), 1000, part)?;

    let more = pair.active.with(TransferFlags::MORE);
    more.write(form.request(near, &bytes, 6)?, at(10))?;
    pair.passive.recv(form.room(far, 0, 7)?)?;
    pair.active
        .write_data(form.request(near, &bytes, 8)?, at(2490), 7)?;
    done(&pair.active_side.tx, 6, Kind::Write)?;
    done(&pair.active_side.tx, 8, Kind::Write)?;
    let (_, told) = done(&pair.passive_side.rx, 7, Kind::RemoteWrite)?;
    check("told of it", told.data == Some(7))?;
    let mut want = copied(&there)?;
    for offset in [10, 2490] {
        let part = want.get_mut(offset..offset + bytes.len()).ok_or(EIO)?;
        part.copy_from_slice(&bytes);
    }
    check("written, and nothing else", mr.compare(0, &want)?.is_none())?;
    check("nothing more", pair.active_side.tx.read()?.is_none())?;

    let word = form.request(near, &zeroes(8)?, 9)?;
    let refused = pair.active.fetch_add(word, at(0), 1).err().ok_or(EIO)?;
    check("a word is in one place", refused.errno() == Errno::EINVAL)?;
    mr.close()?;
    Ok(())
}

/// Buffers that have nothing to do with each other, and too many of them.
pub(crate) fn buffers(place: &Place) -> Result {
    let form = Form {
        make: |_, bytes| {
            let mut list = KVec::new();
            for piece in split(bytes)? {
                list.push(copied(piece)?, GFP_KERNEL)?;
            }
            Ok(LocalList::new(list))
        },
        bytes: |list: &LocalList<KVec<u8>>| {
            let mut bytes = KVec::new();
            for piece in list.pieces() {
                bytes.extend_from_slice(piece, GFP_KERNEL)?;
            }
            Ok(bytes)
        },
    };
    transfers(place, &form)?;

    let pair = Pair::open(place)?;
    let mut list = KVec::new();
    for _ in 0..17 {
        list.push(pattern(3, 2)?, GFP_KERNEL)?;
    }
    let many = Request::new(LocalList::new(list), Tag::new(1))?;
    let refused = pair.active.send(many).err().ok_or(EIO)?;
    check("too many", refused.errno() == Errno::EINVAL)?;
    // A part of it that has no more than there can be.
    let mut back = refused.into_inner();
    check("all are there", back.memory().pieces().len() == 17)?;
    back.set_part(3, 31)?;
    let mut room = KVec::new();
    room.push(zeroes(31)?, GFP_KERNEL)?;
    let room = LocalList::new(room);
    pair.passive.recv(Request::new(room, Tag::new(2))?)?;
    pair.active.send(back)?;
    done(&pair.active_side.tx, 1, Kind::Send)?;
    let (received, message) = done(&pair.passive_side.rx, 2, Kind::Recv)?;
    check("their length", message.len == 31)?;
    let received = received.memory().pieces().first().ok_or(EIO)?;
    let ended = received.iter().eq([4, 3].iter().cycle().take(31));
    check("the bytes of sixteen", ended)
}

/// Checks transfers with parts of regions.
pub(crate) fn regions(place: &Place) -> Result {
    let form = Form {
        make: |domain, bytes| {
            let mut list = KVec::new();
            for piece in split(bytes)? {
                // With something before it that isn't to be touched.
                let mut memory = zeroes(5)?;
                memory.extend_from_slice(piece, GFP_KERNEL)?;
                // Only where the provider chooses none, but then each needs one of its own.
                let key = KEYS.fetch_add(1, Relaxed);
                let options = Options::new(Access::SEND | Access::RECV).requested_key(key);
                let mr = Arc::new(domain.reg(memory, options)?, GFP_KERNEL)?;
                list.push(MrPart::new(mr, 5, piece.len())?, GFP_KERNEL)?;
            }
            Ok(LocalList::new(list))
        },
        bytes: |list: &LocalList<MrPart<KVec<u8>>>| {
            let mut bytes = KVec::new();
            for part in list.pieces() {
                let mut all = zeroes(part.mr().len())?;
                part.mr().read(0, &mut all)?;
                let (before, piece) = all.split_at_checked(5).ok_or(EIO)?;
                check("before it", before == [0; 5])?;
                bytes.extend_from_slice(piece, GFP_KERNEL)?;
            }
            Ok(bytes)
        },
    };
    transfers(place, &form)
}

/// Checks transfers with pages, as bio_vecs.
pub(crate) fn pages(place: &Place) -> Result {
    let form = Form {
        make: |_, bytes| {
            let mut pages = Pages::zeroed_at(3000, bytes.len())?;
            pages.write(0, bytes)?;
            Ok(pages)
        },
        bytes: |pages: &Pages| {
            let mut bytes = zeroes(pages.len())?;
            pages.read(0, &mut bytes)?;
            Ok(bytes)
        },
    };
    transfers(place, &form)
}
