// SPDX-License-Identifier: GPL-2.0

//! `kfi_passive_ep()`.

use super::{
    cm,
    ops,
    PepBody,
    PepObject,
    BACKLOG_DEFAULT, //
};
use crate::{
    object::{
        fabric::FabricObject,
        info::{
            info_ref,
            Info, //
        },
        opening, //
    },
    support::{
        errno::Errno,
        refusal::Refusal,
        sockaddr, //
    }, //
};
use kernel::{
    ffi::{
        c_int,
        c_void, //
    },
    new_mutex,
    prelude::*,
    sync::{
        atomic::Atomic,
        Arc,
        SetOnce, //
    }, //
};
use kfi_bindings::{
    kfi_ep_type_KFI_EP_MSG as EP_MSG,
    kfi_ep_type_KFI_EP_UNSPEC as EP_UNSPEC,
    kfi_info,
    kfid_fabric,
    kfid_pep, //
};

/// What there is to a new passive endpoint of a fabric, which is going to be at `pep`.
///
/// # Safety
///
/// As the C API demands: `info` is null or valid for the call, with all that it points to.
unsafe fn make(
    fabric: &FabricObject,
    info: *const kfi_info,
    pep: *mut kfid_pep,
    context: *mut c_void,
) -> Result<(kfid_pep, impl PinInit<PepBody>), Refusal> {
    // SAFETY: `info` is null, an error pointer, or valid for the call, as the caller promises.
    let info = unsafe { info_ref(info) }?;
    // SAFETY: Null or valid by the requirements of this function.
    let kind = unsafe { info.ep_attr.as_ref() }.map_or(EP_UNSPEC, |attr| attr.type_);
    if !matches!(kind, EP_UNSPEC | EP_MSG) {
        let refusal = Refusal::new(Errno::ENODATA, c"no passive endpoints of that kind");
        return Err(refusal.value(u64::from(kind)));
    }
    // SAFETY: Null, or as long as it is said to be, by the requirements of this function.
    let source = unsafe { sockaddr::read_any(info.src_addr, info.src_addrlen) }?;
    let (imp, limits) = fabric.provider().open_pep()?;
    let none = Refusal::new(Errno::EINVAL, c"no src_addr to listen at");
    let address = source.ok_or(none)?;
    // SAFETY: Valid with all that it points to, by the requirements of this function.
    let info = unsafe { Info::duplicate(info) }?;
    let c = kfid_pep {
        fid: PepObject::fid(context),
        ops: ops::EP.as_ptr(),
        cm: cm::CM.as_ptr(),
    };
    let info = Arc::new(info, GFP_KERNEL)?;
    let body = pin_init!(PepBody {
        imp,
        incoming: SetOnce::new(),
        eq: SetOnce::new(),
        address <- new_mutex!(address),
        backlog: Atomic::new(BACKLOG_DEFAULT),
        limits,
        info,
        pep,
        context,
    });
    Ok((c, body))
}

/// The `passive_ep` slot of a fabric. May sleep.
///
/// # Safety
///
/// As the C API demands: each pointer is null or valid.
pub(crate) unsafe extern "C" fn open(
    fabric: *mut kfid_fabric,
    info: *mut kfi_info,
    pep: *mut *mut kfid_pep,
    context: *mut c_void,
) -> c_int {
    // SAFETY: Each is null or valid as the C API demands; a fabric begins with its fid.
    unsafe {
        opening::open(fabric.cast(), pep, |fabric, pep| {
            make(fabric, info, pep, context)
        })
    }
}
