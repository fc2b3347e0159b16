// SPDX-License-Identifier: GPL-2.0

//! Regions that don't fail for want of memory: what they are made of is kept, and used again.
//!
//! C header: [`include/kfi_reserve_ext.h`](srctree/include/kfi_reserve_ext.h)
//!
//! Lock order: `RESERVING` is taken before anything of a provider; the lock of a reserve is a leaf.

use crate::{
    domain::{
        self,
        DomainObject, //
    },
    errno::Errno,
    line::Line,
    mr::Kit,
    noio::NoIo,
    num::{
        c_str,
        widen, //
    },
    refusal::Refusal,
    request::MrRequest,
    table::Table, //
};
use kernel::{
    ffi::c_int,
    new_mutex,
    prelude::*,
    str::CStr,
    sync::Mutex, //
};
use kfi_bindings::{
    kfi_reserve_ops,
    kfid, //
};

kernel::sync::global_lock! {
    // SAFETY: Initialized by `init`, which the module calls first.
    unsafe(uninit) static RESERVING: Mutex<()> = ();
}

/// Initializes the lock of those who reserve.
///
/// # Safety
///
/// Called once, before anything else of this file.
pub(crate) unsafe fn init() {
    // SAFETY: By the requirements of this function.
    unsafe { RESERVING.init() };
}

pub(crate) const NAME: &CStr = c_str(kfi_bindings::KFI_RESERVE_OPS_1);

pub(crate) static OPS: Table<kfi_reserve_ops> = Table(kfi_reserve_ops {
    size: size_of::<kfi_reserve_ops>(),
    reserve: Some(reserve),
});

/// The reserve of a domain.
#[pin_data]
pub(crate) struct Reserve {
    /// Most pages, and segments, of a region.
    pages: usize,
    /// In the order in which they came back, so that no key is used again soon.
    #[pin]
    kits: Mutex<Line<Kit>>,
}

impl Reserve {
    /// Makes what `count` regions of up to so many pages need. May sleep.
    fn new(domain: &DomainObject, count: usize, pages: usize) -> Result<Pin<KBox<Self>>, Refusal> {
        let mut kits = Line::with_capacity(count)?;
        let mut spare = KVVec::with_capacity(count, GFP_KERNEL)?;
        for _ in 0..count {
            spare.push(Kit::reserved(segments(domain, pages))?, GFP_KERNEL)?;
        }
        let place = KBox::<Self>::new_uninit(GFP_KERNEL)?;
        // The last that can fail: nothing takes it back from the provider.
        let mrs = domain.provider().reserve(count, pages)?;
        for (mut kit, mr) in spare.into_iter().zip(mrs) {
            kit.lend(mr);
            // There is room.
            let _ = kits.push(kit);
        }
        let reserve = pin_init!(Self {
            pages,
            kits <- new_mutex!(kits),
        });
        match place.write_pin_init(reserve) {
            Ok(reserve) => Ok(reserve),
            Err(never) => match never {},
        }
    }

    /// What a region can be made of, if it is one that was thought of. May sleep, but not for long.
    pub(crate) fn take(&self, request: &MrRequest<'_>) -> Option<Kit> {
        let shape = request.shape();
        let fits = shape.pages() <= widen(self.pages)
            && request.source().count() <= self.pages
            && shape.hole().is_none();
        match fits {
            true => self.kits.lock().pop(),
            false => None,
        }
    }

    /// Takes it back. May sleep, but not for long.
    pub(crate) fn put(&self, kit: Kit) {
        // There is room for as many as there are.
        let _ = self.kits.lock().push(kit);
    }
}

/// How many segments of a region are kept, for when it is refreshed.
fn segments(domain: &DomainObject, pages: usize) -> usize {
    match domain.mr_limits().refresh {
        Ok(()) => pages,
        Err(_) => 0,
    }
}

/// The slot `reserve`. May sleep.
///
/// # Safety
///
/// As the C API demands: `fid` is null or valid for the call.
unsafe extern "C" fn reserve(fid: *mut kfid, count: usize, pages: usize) -> c_int {
    let _noio = NoIo::enter();
    // SAFETY: As the C API demands.
    let domain = unsafe { domain::object(fid) };
    let reserved = domain.and_then(|domain| of(domain, count, pages));
    reserved.map_or_else(Refusal::report, |()| 0)
}

fn of(domain: &DomainObject, count: usize, pages: usize) -> Result<(), Refusal> {
    let limits = domain.mr_limits();
    if count == 0 || pages == 0 {
        return Err(Refusal::new(Errno::EINVAL, c"a reserve of nothing"));
    }
    if widen(pages) > limits.pages {
        return Err(Refusal::new(Errno::E2BIG, c"too many pages").value(widen(pages)));
    }
    if count > limits.regions {
        return Err(Refusal::new(Errno::ENOSPC, c"more than mr_cnt regions").value(widen(count)));
    }
    let busy = Refusal::new(Errno::EBUSY, c"the domain has a reserve");
    // One at a time: a provider is asked once for a domain.
    let _reserving = RESERVING.lock();
    if domain.reserve().is_some() {
        return Err(busy);
    }
    let reserve = Reserve::new(domain, count, pages)?;
    match domain.set_reserve(reserve) {
        true => Ok(()),
        false => Err(busy),
    }
}
