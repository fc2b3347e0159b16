// SPDX-License-Identifier: GPL-2.0

//! Unit tests of extents, compared with a search page by page, and of scatterlists that can be passed
//! on.

use super::*;
use crate::region::access::Access;
use kernel::page::PAGE_SIZE;
use kfi_bindings::{
    bio_vec,
    kvec, //
};

const PAGE: u64 = widen(PAGE_SIZE);

/// The mark of a scatterlist's last entry.
const END: usize = 2;

/// Returns the page frame of a kernel address.
fn frame_at(index: usize, addr: u64) -> Result<u64, Refusal> {
    let mut frame = 0;
    let at = core::ptr::without_provenance(usize::try_from(addr).unwrap_or(0));
    // SAFETY: The helper takes any address and reads page tables only.
    if unsafe { kfi_bindings::kfi_helper_virt_pfn(at, &mut frame) } {
        Ok(frame)
    } else {
        let refusal = Refusal::new(Errno::EFAULT, c"no memory that may be registered");
        Err(refusal.at(index).value(addr))
    }
}

/// The memory that a walk finds: the bytes that may be registered, joined, and the reason why the
/// walk ended.
#[derive(Default, PartialEq, Debug)]
struct Found {
    runs: KVVec<(u64, u64)>,
    end: Option<Refusal>,
}

impl Found {
    fn add(&mut self, phys: u64, len: u64) -> Result {
        match self.runs.last_mut() {
            Some((start, bytes)) if *start + *bytes == phys => *bytes += len,
            _ => self.runs.push((phys, len), GFP_KERNEL)?,
        }
        Ok(())
    }

    fn refused(mut self, refusal: Refusal) -> Self {
        self.end = Some(refusal);
        self
    }
}

/// Returns a use of memory: peers read it.
fn reads() -> Result<PageUse> {
    let access = Access::parse(Access::REMOTE_READ.bits())?;
    Ok(PageUse {
        writes: access.device_writes(),
        peer_to_peer: false,
    })
}

/// Finds memory one page at a time.
fn page_by_page(
    found: &mut Found,
    index: usize,
    (mut at, mut left): (u64, u64),
    frame: impl Fn(u64) -> Result<u64, Refusal>,
) -> Result<Result<(), Refusal>> {
    while left > 0 {
        let here = left.min(PAGE - at % PAGE);
        let checked = frame(at).and_then(|frame| {
            // SAFETY: Any page frame may be asked about.
            let refused = unsafe { kfi_bindings::kfi_helper_check_page(frame, false, false) };
            match refused {
                c::kfi_helper_refused_KFI_REFUSED_NONE => Ok(frame),
                _ => Err(refusal(refused).at(index).value(at)),
            }
        });
        match checked {
            Ok(frame) => found.add(frame * PAGE + at % PAGE, here)?,
            Err(refusal) => return Ok(Err(refusal)),
        }
        (at, left) = (at.wrapping_add(here), left - here);
    }
    Ok(Ok(()))
}

/// Finds the memory of a list of buffers.
fn slow_kvecs(list: &[kvec]) -> Result<Found> {
    let mut found = Found::default();
    for (index, kvec) in list.iter().enumerate() {
        let refuse = |why, value| Refusal::new(Errno::EFAULT, why).at(index).value(value);
        let base = widen(kvec.iov_base.addr());
        if base == 0 {
            return Ok(found.refused(refuse(c"address is NULL", 0)));
        }
        // SAFETY: Any addresses may be asked about.
        if unsafe { kfi_bindings::kfi_helper_on_stack(kvec.iov_base, kvec.iov_len) } {
            return Ok(found.refused(refuse(c"memory of the caller's stack", base)));
        }
        let frame = |at| frame_at(index, at);
        let span = (base, widen(kvec.iov_len));
        if let Err(refusal) = page_by_page(&mut found, index, span, frame)? {
            return Ok(found.refused(refusal));
        }
    }
    Ok(found)
}

/// Finds the memory of pages.
fn slow_bvecs(list: &[bio_vec]) -> Result<Found> {
    let mut found = Found::default();
    for (index, bvec) in list.iter().enumerate() {
        let mut frame = 0;
        // SAFETY: A bad page is found out without being read.
        if !unsafe { kfi_bindings::kfi_helper_bvec_pfn(bvec, &mut frame) } {
            let refusal = Refusal::new(Errno::EFAULT, c"no page of this machine").at(index);
            return Ok(found.refused(refusal.value(widen(bvec.bv_page.addr()))));
        }
        let start = frame * PAGE + u64::from(bvec.bv_offset) % PAGE;
        let span = (start, u64::from(bvec.bv_len));
        let checked = page_by_page(&mut found, index, span, |at| Ok(at / PAGE))?;
        if let Err(refusal) = checked {
            return Ok(found.refused(refusal));
        }
    }
    Ok(found)
}

#[kernel::macros::kunit_tests(kfabric_memory)]
mod tests {
    use super::*;
    use crate::{
        region::{
            access::Access,
            limits::MrLimits,
            request::{
                Arguments,
                AuthKey,
                MrRequest, //
            },
            segment_list::SegmentList, //
        },
        support::random::Prng, //
    };
    use kernel::page::PAGE_SIZE;

    const PAGES: usize = 24;

    /// Finds the memory by extents, at most `most()` bytes at once.
    fn by_runs(source: &Source<'_>, mut most: impl FnMut() -> u64) -> Result<Found> {
        let mut found = Found::default();
        let mut runs = source.extents(reads()?, MappedAs::Linear);
        loop {
            let limit = most();
            match runs.next_extents(limit) {
                Ok([]) => return Ok(found),
                Ok(next) => {
                    assert!(next.iter().map(Extent::bytes).sum::<u64>() <= limit);
                    for run in next {
                        found.add(run.phys(), run.bytes())?;
                    }
                }
                Err(refusal) => return Ok(found.refused(refusal)),
            }
        }
    }

    /// Finds the memory as [`by_runs`] does, but by entries of a scatterlist: with addresses of the
    /// linear map, or with pages.
    fn by_entries(source: &Source<'_>, rng: &mut Prng) -> Result<Found> {
        let mut found = Found::default();
        let mut memory = source.extents(reads()?, MappedAs::Linear);
        let virt = rng.below(2) == 0;
        let max_len = u32::try_from(PAGE * (1 + rng.below(5)))?;
        loop {
            let mut room = [const { MaybeUninit::<scatterlist>::uninit() }; 6];
            let room = room.get_mut(..=rng.index(5)).ok_or(EINVAL)?;
            let limit = 1 + rng.below(8 * PAGE);
            let (count, bytes) = match memory.next_entries(limit, max_len, virt, room) {
                Ok((0, _)) => return Ok(found),
                Ok(filled) => filled,
                Err(refusal) => return Ok(found.refused(refusal)),
            };
            let mut sum = 0;
            let mut before = None;
            for entry in room.iter().take(count) {
                // SAFETY: The walk has written this entry: it returned their number.
                let entry = unsafe { entry.assume_init_ref() };
                let (phys, len) = match virt {
                    true => {
                        assert_eq!(entry.page_link, 0);
                        let at = entry.dma_address;
                        (frame_at(0, at)? * PAGE + at % PAGE, entry.dma_length)
                    }
                    false => (phys_of(entry)?, entry.length),
                };
                assert!(len > 0 && len <= max_len);
                // Adjacent memory begins another entry only at a page boundary, if the entry would
                // get too long.
                if let Some((end, was)) = before.filter(|(end, _)| *end == phys) {
                    assert_eq!(end % PAGE, 0);
                    assert!(was + PAGE > u64::from(max_len));
                }
                before = Some((phys + u64::from(len), u64::from(len)));
                sum += u64::from(len);
                found.add(phys, u64::from(len))?;
            }
            assert_eq!(sum, bytes);
            assert!(bytes <= limit);
        }
    }

    /// Returns the physical address of an entry that has a page.
    fn phys_of(entry: &scatterlist) -> Result<u64> {
        let page = core::ptr::without_provenance_mut(entry.page_link & !3);
        let bvec = bio_vec {
            bv_page: page,
            bv_offset: entry.offset,
            bv_len: entry.length,
        };
        let mut frame = 0;
        // SAFETY: A bad page is found out without being read.
        assert!(unsafe { kfi_bindings::kfi_helper_bvec_pfn(&bvec, &mut frame) });
        Ok(frame * PAGE + u64::from(entry.offset) % PAGE)
    }

    /// Makes a list of up to ten segments. One of them may be bad.
    fn random_kvecs(rng: &mut Prng, memory: &mut [&mut [u8]]) -> Result<KVec<kvec>> {
        let mut list = KVec::new();
        for _ in 0..=rng.below(9) {
            let which = rng.index(memory.len());
            let area = memory.get_mut(which).ok_or(EINVAL)?;
            let start = rng.index(area.len() - 1);
            // Some go on behind the end of the area.
            let behind = if rng.below(40) == 0 { 2 * PAGE_SIZE } else { 0 };
            let len = 1 + rng.index(area.len() - start + behind);
            let mut kvec = kvec {
                iov_base: area.as_mut_ptr().wrapping_add(start).cast(),
                iov_len: len,
            };
            match rng.below(120) {
                0 => kvec.iov_base = core::ptr::null_mut(),
                1 => kvec.iov_base = core::ptr::without_provenance_mut(PAGE_SIZE),
                2 => kvec.iov_base = (&raw mut kvec.iov_len).cast(),
                _ => (),
            }
            list.push(kvec, GFP_KERNEL)?;
        }
        Ok(list)
    }

    #[test]
    fn random_addresses() -> Result {
        let mut rng = Prng::new("kfabric_memory.random_addresses");
        let mut linear = KVec::from_elem(0u8, PAGES * PAGE_SIZE, GFP_KERNEL)?;
        let mut mapped = VVec::from_elem(0u8, PAGES * PAGE_SIZE, GFP_KERNEL)?;
        let mut areas = [linear.as_mut_slice(), mapped.as_mut_slice()];
        for _ in 0..400 {
            let list = random_kvecs(&mut rng, &mut areas)?;
            let slow = slow_kvecs(&list)?;
            let source = Source::kvecs(&list);
            assert_eq!(by_runs(&source, || u64::MAX)?, slow);
            let cut = by_runs(&source, || 1 + rng.below(5 * PAGE))?;
            assert_eq!(cut, slow);
            assert_eq!(by_entries(&source, &mut rng)?, slow);
        }
        Ok(())
    }

    /// Takes a list for one of pages. Returns whether it is one whose pages may be registered. Then
    /// it has the shape that it was taken for.
    fn is_of_pages(source: Source<'_>, rng: &mut Prng) -> Result<bool> {
        let limits = MrLimits {
            segments: usize::MAX,
            pages: u64::MAX,
            bytes: u64::MAX,
            by_entries: true,
            ..MrLimits::NONE
        };
        let arguments = Arguments {
            access: Access::REMOTE_READ.bits(),
            offset: 0,
            requested_key: 0,
            flags: 0,
            auth_key: AuthKey::None,
            together: false,
        };
        let Ok(request) = MrRequest::parse(source, arguments, &limits) else {
            return Ok(false);
        };
        if request.is_mistaken().is_none() {
            return Ok(false);
        }
        let (mut memory, mut left) = (request.linear_extents(), request.shape().bytes());
        while left > 0 {
            let mut room = [const { MaybeUninit::<scatterlist>::uninit() }; 6];
            let room = room.get_mut(..=rng.index(5)).ok_or(EINVAL)?;
            assert_eq!(request.is_mistaken(), Some(false));
            match memory.next_entries(left, u32::MAX, true, room) {
                Ok((_, bytes)) => {
                    assert!(bytes > 0);
                    left -= bytes;
                }
                Err(_) => {
                    assert_eq!(request.is_mistaken(), Some(true));
                    return Ok(false);
                }
            }
        }
        let (taken, counted) = (request.shape(), source.shape(usize::MAX)?);
        assert_eq!(taken.segments(), counted.segments());
        assert_eq!(taken.bytes(), counted.bytes());
        assert_eq!(taken.pages(), counted.pages());
        assert_eq!(taken.gap(), counted.gap());
        Ok(true)
    }

    /// Compares lists of pages of an area, some of them neighbours: by address, by page, and by the
    /// address that they are mapped to. Some segments are no whole pages, or nobody may register
    /// them.
    #[test]
    fn whole_pages() -> Result {
        let mut rng = Prng::new("kfabric_memory.whole_pages");
        let mut area = VVec::from_elem(0u8, PAGES * PAGE_SIZE, GFP_KERNEL)?;
        for _ in 0..100 {
            let (mut kvecs, mut bvecs, mut sgl) = (KVec::new(), KVec::new(), KVec::new());
            let mut page = 0;
            for _ in 0..=rng.below(40) {
                page = match rng.below(3) {
                    0 => rng.index(PAGES),
                    _ => (page + 1) % PAGES,
                };
                let len = PAGE_SIZE >> u32::from(rng.below(60) == 0);
                let base = area.as_mut_ptr().wrapping_add(page * PAGE_SIZE);
                let more = PAGE_SIZE * rng.index((PAGES - page).min(4));
                let kvec = kvec {
                    iov_base: base.cast(),
                    iov_len: more + len,
                };
                kvecs.push(kvec, GFP_KERNEL)?;
                let bad = rng.below(200) == 0;
                // SAFETY: The address is one of a vmalloc area.
                let of_area = unsafe { kernel::bindings::vmalloc_to_page(base.cast()) };
                let bvec = bio_vec {
                    bv_page: if bad {
                        core::ptr::null_mut()
                    } else {
                        of_area.cast()
                    },
                    bv_offset: 0,
                    bv_len: u32::try_from(len)?,
                };
                bvecs.push(bvec, GFP_KERNEL)?;
                let phys = frame_at(0, widen(base.addr()))? * PAGE;
                // SAFETY: Any address may be asked for.
                let linear = unsafe { kfi_bindings::kfi_helper_linear_address(phys) };
                let entry = scatterlist {
                    dma_address: widen(if bad { base.addr() } else { linear.addr() }),
                    dma_length: u32::try_from(len)?,
                    ..Default::default()
                };
                sgl.push(entry, GFP_KERNEL)?;
            }
            let slow = slow_kvecs(&kvecs)?;
            let source = Source::kvecs(&kvecs);
            assert_eq!(by_entries(&source, &mut rng)?, slow);
            assert_eq!(by_runs(&source, || u64::MAX)?, slow);
            let slow = slow_bvecs(&bvecs)?;
            // SAFETY: The list has `len()` entries, and stays as it is.
            let source =
                Source::Bvec(unsafe { SegmentList::from_raw(bvecs.as_ptr(), bvecs.len()) }?);
            assert_eq!(by_entries(&source, &mut rng)?, slow);
            assert_eq!(by_runs(&source, || u64::MAX)?, slow);
            let page = |bvec: &bio_vec| u64::from(bvec.bv_len) == PAGE;
            let of_pages = bvecs.len() > 2 && slow.end.is_none() && bvecs.iter().all(page);
            assert_eq!(is_of_pages(source, &mut rng)?, of_pages);
            // SAFETY: The slice has `len()` entries, and stays as it is.
            let source = Source::Sgl(unsafe { SegmentList::from_raw(sgl.as_ptr(), sgl.len()) }?);
            let linear = by_entries(&source, &mut rng)?;
            assert_eq!(by_runs(&source, || 1 + rng.below(5 * PAGE))?, linear);
            assert_eq!(
                (linear.runs, linear.end.is_some()),
                (slow.runs, slow.end.is_some())
            );
            assert_eq!(is_of_pages(source, &mut rng)?, of_pages);
            // One that ends before its time; or at it.
            let last = rng.index(sgl.len());
            if let Some(entry) = sgl.get_mut(last) {
                entry.page_link = END;
            }
            // SAFETY: `sgl` has `len()` entries, and nobody changes them while `source` is used.
            let source = Source::Sgl(unsafe { SegmentList::from_raw(sgl.as_ptr(), sgl.len()) }?);
            let of_pages = of_pages && last + 1 == sgl.len();
            assert_eq!(is_of_pages(source, &mut rng)?, of_pages);
        }
        Ok(())
    }

    #[test]
    fn random_pages() -> Result {
        let mut rng = Prng::new("kfabric_memory.random_pages");
        // SAFETY: May be called with any order; the pages are freed below.
        let row = unsafe { kernel::bindings::alloc_pages(kernel::bindings::GFP_KERNEL, 4) };
        if row.is_null() {
            return Err(ENOMEM);
        }
        let result = (|| {
            for _ in 0..400 {
                let mut list = KVec::new();
                for _ in 0..=rng.below(9) {
                    let page = rng.index(16);
                    let offset = rng.index((16 - page) * PAGE_SIZE - 1);
                    let most = (16 - page) * PAGE_SIZE - offset;
                    let mut bvec = bio_vec {
                        bv_page: row.wrapping_add(page).cast(),
                        bv_offset: u32::try_from(offset)?,
                        bv_len: 1 + u32::try_from(rng.index(most))?,
                    };
                    match rng.below(100) {
                        0 => bvec.bv_page = core::ptr::null_mut(),
                        1 => bvec.bv_page = core::ptr::without_provenance_mut(usize::MAX - 11),
                        2 => bvec.bv_page = bvec.bv_page.wrapping_byte_add(8),
                        _ => (),
                    }
                    list.push(bvec, GFP_KERNEL)?;
                }
                let slow = slow_bvecs(&list)?;
                // SAFETY: The list has `len()` entries, and stays as it is.
                let list = unsafe { SegmentList::from_raw(list.as_ptr(), list.len()) }?;
                let source = Source::Bvec(list);
                assert_eq!(by_runs(&source, || u64::MAX)?, slow);
                let cut = by_runs(&source, || 1 + rng.below(5 * PAGE))?;
                assert_eq!(cut, slow);
                assert_eq!(by_entries(&source, &mut rng)?, slow);
                // The shape needs no look at the memory.
                let starts = source.segments(usize::MAX)?;
                for (segment, bvec) in starts.zip(slice_of(&source)) {
                    let mut frame = 0;
                    // SAFETY: `bvec` is valid. The helper finds a bad page without reading it.
                    let found = unsafe { kfi_bindings::kfi_helper_bvec_pfn(bvec, &mut frame) };
                    let start = frame * PAGE + u64::from(bvec.bv_offset) % PAGE;
                    let (at, len) = segment?;
                    assert_eq!((at, len), (found.then_some(start), u64::from(bvec.bv_len)));
                }
            }
            Ok(())
        })();
        // SAFETY: Allocated with this order, and used no more.
        unsafe { kernel::bindings::__free_pages(row, 4) };
        result
    }

    fn slice_of<'a>(source: &Source<'a>) -> slice::Iter<'a, bio_vec> {
        match source {
            Source::Bvec(list) => list.entries(usize::MAX).iter(),
            _ => [].iter(),
        }
    }
}

#[kernel::macros::kunit_tests(kfabric_plain_list)]
mod plain_list_tests {
    use super::*;
    use crate::{
        region::{
            segment_list::SegmentList, //
        },
        support::random::Prng, //
    };
    use kernel::page::PAGE_SIZE;

    fn is_plain_list(sgl: &[scatterlist]) -> Result<bool> {
        // SAFETY: The slice has `len()` entries, and stays as it is.
        let source = Source::Sgl(unsafe { SegmentList::from_raw(sgl.as_ptr(), sgl.len()) }?);
        Ok(source.plain_list().is_some())
    }

    /// Checks that a scatterlist of pages can be handed on, however many they are, if no two are
    /// neighbours. It can't if two are, if one is shorter, or if the last entry isn't marked as the
    /// last.
    #[test]
    fn plain_lists() -> Result {
        const ORDER: u32 = 7;
        let mut rng = Prng::new("kfabric_plain_list.plain_lists");
        // SAFETY: May be called with any order; the pages are freed below.
        let row = unsafe { kernel::bindings::alloc_pages(kernel::bindings::GFP_KERNEL, ORDER) };
        if row.is_null() {
            return Err(ENOMEM);
        }
        let result = (|| {
            let mut sgl = KVec::new();
            // Every other one, from behind.
            for page in (0..1_usize << ORDER).rev().step_by(2) {
                let bvec = bio_vec {
                    bv_page: row.wrapping_add(page).cast(),
                    bv_offset: 0,
                    bv_len: u32::try_from(PAGE_SIZE)?,
                };
                let mut frame = 0;
                // SAFETY: `bvec` is valid. The helper finds a bad page without reading it.
                assert!(unsafe { kfi_bindings::kfi_helper_bvec_pfn(&bvec, &mut frame) });
                // SAFETY: Any address may be asked for.
                let at = unsafe { kfi_bindings::kfi_helper_linear_address(frame * PAGE) };
                let entry = scatterlist {
                    dma_address: widen(at.addr()),
                    dma_length: bvec.bv_len,
                    ..Default::default()
                };
                sgl.push(entry, GFP_KERNEL)?;
                assert!(!is_plain_list(&sgl)?);
                let last = sgl.len() - 1;
                let with = |sgl: &mut [scatterlist], which, change: fn(&mut scatterlist)| {
                    sgl.get_mut(which).map(change).ok_or(EINVAL)
                };
                with(&mut sgl, last, |last| last.page_link = END)?;
                assert!(is_plain_list(&sgl)?);
                let some = rng.index(sgl.len());
                with(&mut sgl, some, |some| some.dma_length -= 1)?;
                assert!(!is_plain_list(&sgl)?);
                with(&mut sgl, some, |some| some.dma_length += 1)?;
                // The second one is behind the first.
                with(&mut sgl, 0, |first| first.dma_address -= 3 * PAGE)?;
                assert_eq!(is_plain_list(&sgl)?, last == 0);
                with(&mut sgl, 0, |first| first.dma_address += 3 * PAGE)?;
                with(&mut sgl, last, |last| last.page_link = 0)?;
            }
            Ok(())
        })();
        // SAFETY: Allocated with this order, and used no more.
        unsafe { kernel::bindings::__free_pages(row, ORDER) };
        result
    }
}
