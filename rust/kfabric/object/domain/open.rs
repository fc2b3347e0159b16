// SPDX-License-Identifier: GPL-2.0

//! `kfi_domain()`.

use super::{
    ops,
    DomainObject, //
};
use crate::{
    object::{
        children::Children,
        fabric::{
            self,
            FabricObject, //
        },
        fid, //
    },
    provider::DomainRequest,
    region::{
        auth_key::AuthKey,
        rawkey::map::KeyMap, //
    },
    support::{
        cstr,
        errno::Errno,
        noio::NoIo,
        num::{
            signed,
            widen, //
        },
        refusal::Refusal, //
    }, //
};
use core::ptr::{
    self,
    NonNull, //
};
use kernel::{
    ffi::{
        c_int,
        c_void, //
    },
    prelude::*,
    str::CString,
    sync::SetOnce,
    types::Opaque, //
};
use kfi_bindings::{
    kfi_domain_attr,
    kfi_info,
    kfid_domain,
    kfid_fabric, //
};

/// What the consumer asks of the limits of the domain: 0 asks for all there is.
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

/// The authorization key of a domain's attributes.
///
/// # Safety
///
/// As the C API demands: the key has as many bytes as the attributes say.
unsafe fn auth_key(attr: &kfi_domain_attr) -> Result<KVec<u8>, Refusal> {
    // SAFETY: By the requirements of this function.
    let key = unsafe { AuthKey::from_raw(attr.auth_key, attr.auth_key_size) }.checked()?;
    let mut copy = KVec::new();
    copy.extend_from_slice(key.unwrap_or(&[]), GFP_KERNEL)?;
    Ok(copy)
}

fn new(
    fabric: &FabricObject,
    info: &kfi_info,
    context: *mut c_void,
) -> Result<*mut kfid_domain, Refusal> {
    // SAFETY: As the C API demands, the attributes are null or valid for the call.
    let attr = unsafe { info.domain_attr.as_ref() }.ok_or(Refusal::new(
        Errno::EINVAL,
        c"info without domain attributes",
    ))?;
    // SAFETY: As the C API demands, the key has that many bytes.
    let auth_key = unsafe { auth_key(attr) }?;
    let request = DomainRequest {
        // SAFETY: As the C API demands, the name is null or a string.
        name: unsafe { cstr::name(attr.name) },
        mr_mode: attr.mr_mode,
        auth_key: &auth_key,
    };
    let name = request.name.map(CString::try_from).transpose()?;
    let object = KBox::new_uninit(GFP_KERNEL)?;
    let imp = fabric.provider().open_domain(&request)?;
    // Where there are no endpoints, a consumer that is ready to bind regions to one doesn't have to.
    let mr_mode = match imp.endpoints() {
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
    let mr_cnt = i32::try_from(mr_limits.regions).unwrap_or(i32::MAX);
    let keys = KBox::pin_init(KeyMap::new(), GFP_KERNEL).map_err(|_| Errno::ENOMEM)?;
    fabric.children().add()?;
    // INVARIANT: The fabric counts this domain until `close`.
    let object = KBox::write(
        object,
        DomainObject {
            c: Opaque::new(kfid_domain {
                fid: fid::new(context, &ops::FID_OPS),
                ops: ops::OPS.as_ptr(),
                mr: ops::MR.as_ptr(),
            }),
            reserve: SetOnce::new(),
            imp,
            children: Children::new(),
            regions: Children::new(),
            fabric: NonNull::from(fabric),
            name,
            mr_limits,
            mr_cnt,
            mr_mode,
            auth_key,
            keys,
            eq: SetOnce::new(),
        },
    );
    Ok(KBox::into_raw(object).cast())
}

/// The `domain` slot of a fabric. May sleep.
///
/// # Safety
///
/// As the C API demands: each pointer is null or valid.
pub(crate) unsafe extern "C" fn open(
    fabric: *mut kfid_fabric,
    info: *mut kfi_info,
    domain: *mut *mut kfid_domain,
    context: *mut c_void,
) -> c_int {
    if domain.is_null() {
        return Refusal::new(Errno::EINVAL, c"output pointer is NULL").report();
    }
    let _noio = NoIo::enter();
    // SAFETY: Each is null or valid as the C API demands.
    let (fabric, info) = unsafe {
        *domain = ptr::null_mut();
        (fabric::object(fabric), info.as_ref())
    };
    let opened = fabric.and_then(|fabric| {
        let info = info.ok_or(Refusal::new(Errno::EINVAL, c"info is NULL"))?;
        new(fabric, info, context)
    });
    match opened {
        Ok(opened) => {
            // SAFETY: As above.
            unsafe { *domain = opened };
            0
        }
        Err(refusal) => refusal.report(),
    }
}
