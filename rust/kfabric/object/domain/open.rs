// SPDX-License-Identifier: GPL-2.0

//! Opening of domains: `kfi_domain()`.

use super::{
    ops,
    DomainBody,
    DomainObject, //
};
use crate::{
    object::{
        children::Children,
        descs::Descs,
        fabric::FabricObject,
        info::info_ref,
        instances::{
            self,
            Instance, //
        },
        mr::{
            close::close_pending,
            enable::enable_pending, //
        },
        obj,
        pending_regs::PendingRegs, //
    },
    prelude::*,
    provider::DomainRequest,
    region::{
        limits::AuthKey,
        rawkey::map::KeyMap, //
    },
    support::{
        c_ref,
        child_list::ChildList,
        num::signed, //
    }, //
};
use kernel::{
    str::CString,
    sync::SetOnce, //
};
use kfi_bindings::{
    kfi_domain_attr,
    kfi_info,
    kfid_domain,
    kfid_fabric, //
};

/// Returns the requested number, or `limit` if the consumer requests 0.
///
/// # Errors
///
/// - `ENODATA`: the consumer requests more than `limit`.
fn within(asked: usize, limit: usize) -> Result<usize, Refusal> {
    match asked {
        0 => Ok(limit),
        asked if asked <= limit => Ok(asked),
        asked => {
            let refusal = Refusal::new(Errno::ENODATA, c"more than the domain can do");
            Err(refusal.value(widen(asked)))
        }
    }
}

/// Copies the authorization key of a domain's attributes. May sleep.
///
/// # Safety
///
/// `auth_key` is null or has `auth_key_size` bytes.
unsafe fn auth_key(attr: &kfi_domain_attr) -> Result<KVec<u8>, Refusal> {
    // SAFETY: `auth_key` is null or has `auth_key_size` bytes.
    let key = unsafe { AuthKey::from_raw(attr.auth_key, attr.auth_key_size) }.checked()?;
    let mut copy = KVec::new();
    copy.extend_from_slice(key.unwrap_or(&[]), GFP_KERNEL)?;
    Ok(copy)
}

/// Creates a domain of a fabric. May sleep.
///
/// # Safety
///
/// Each pointer in `info` is null or valid for the call.
unsafe fn make(
    fabric: &FabricObject,
    info: &kfi_info,
    instance: Instance,
    context: *mut c_void,
) -> Result<(kfid_domain, DomainBody), Refusal> {
    // SAFETY: `domain_attr` is null or valid for the call.
    let attr = unsafe { info.domain_attr.as_ref() }.ok_or(Refusal::new(
        Errno::EINVAL,
        c"info without domain attributes",
    ))?;
    // SAFETY: `auth_key` is null or has `auth_key_size` bytes.
    let auth_key = unsafe { auth_key(attr) }?;
    let caps = info.caps | attr.caps;
    let child_list = Arc::pin_init(ChildList::new(), GFP_KERNEL).map_err(|_| Errno::ENOMEM)?;
    let request = DomainRequest {
        // SAFETY: `name` is null or a string.
        name: unsafe { c_ref::name(attr.name) },
        mr_mode: attr.mr_mode,
        caps,
        auth_key: &auth_key,
        children: &child_list,
    };
    let name = request.name.map(CString::try_from).transpose()?;
    let imp = fabric.provider().open_domain(&request)?;
    // The provider may not need the binding of regions to endpoints that the consumer permits.
    let mr_mode = match imp.binds_regions() {
        true => attr.mr_mode,
        false => attr.mr_mode & !signed(kfi_bindings::KFI_MR_ENDPOINT),
    };
    let mut mr_limits = *imp.mr_limits();
    mr_limits.segments = within(attr.mr_iov_limit, mr_limits.segments)?;
    mr_limits.regions = within(attr.mr_cnt, mr_limits.regions)?;
    if !auth_key.is_empty() && !mr_limits.auth_keys {
        return Err(Refusal::new(
            Errno::EOPNOTSUPP,
            c"provider knows no auth_key",
        ));
    }
    let keys = KBox::pin_init(KeyMap::new(), GFP_KERNEL).map_err(|_| Errno::ENOMEM)?;
    let c = kfid_domain {
        fid: DomainObject::fid(context),
        ops: ops::OPS.as_ptr(),
        mr: ops::MR.as_ptr(),
    };
    let body = DomainBody {
        _instance: instance,
        reserve: SetOnce::new(),
        imp,
        children: Children::new(),
        child_list,
        descs: Descs::new().map_err(|_| Errno::ENOMEM)?,
        name,
        mr_limits,
        mr_mode,
        caps,
        auth_key,
        keys,
        unsettled: PendingRegs::new(enable_pending)?,
        later: PendingRegs::new(close_pending)?,
        eq: SetOnce::new(),
    };
    Ok((c, body))
}

/// Opens a domain: the `domain` slot of a fabric. May sleep.
///
/// # Safety
///
/// - `fabric` is null or an open object.
/// - `info` is null, an error pointer, or valid for the call with all that it points to.
/// - `domain` is null or valid for writes.
pub(crate) unsafe extern "C" fn open(
    fabric: *mut kfid_fabric,
    info: *mut kfi_info,
    domain: *mut *mut kfid_domain,
    context: *mut c_void,
) -> c_int {
    // SAFETY: `fabric` is null or open, and begins with its fid. `domain` is null or valid for writes. `info` is
    // null, an error pointer, or valid for the call.
    let ret = unsafe {
        obj::open::<DomainBody, _>(fabric.cast(), domain, |fabric, domain| {
            make(
                fabric,
                info_ref(info)?,
                Instance::new(domain.cast())?,
                context,
            )
        })
    };
    if ret == 0 {
        // SAFETY: `*domain` is the domain that was just opened. The consumer closes it only later.
        unsafe { instances::show((*domain).cast()) };
    }
    ret
}
