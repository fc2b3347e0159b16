// SPDX-License-Identifier: GPL-2.0

//! Opening of domains, `kfi_domain()`, and the slots of a domain: its tables, controls, binds and raw keys.
//!
//! C header: [`include/kfi_domain.h`](srctree/include/kfi_domain.h)

use super::{
    DomainBody,
    DomainObject,
    DOMAIN, //
};
use crate::{
    object::{
        cntr,
        counters::DomainCounters,
        cq,
        descs::Descs,
        ep,
        eq::EqBody,
        ext,
        fabric::FabricObject,
        info::{
            info_ref,
            within, //
        },
        instances::{
            self,
            Instance, //
        },
        mr::{
            enable::enable_pending,
            later::close_pending,
            reg::{
                reg,
                regattr,
                regbv,
                regsgl,
                regv, //
            }, //
        },
        pending_regs::PendingRegs,
        prelude::*, //
    },
    provider::DomainRequest,
    support::{
        c_ref,
        trace::DomainLabel, //
    }, //
};

/// Copies the authorization key of a domain's attributes. May sleep.
///
/// # Safety
///
/// `auth_key` is null or has `auth_key_size` bytes.
unsafe fn auth_key(attr: &c::kfi_domain_attr) -> Result<KVec<u8>, Refusal> {
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
    // SAFETY: `name` is null or a string.
    let name = unsafe { c_ref::name(attr.name) };
    let label = DomainLabel {
        provider: fabric.provider,
        domain: name.map(CString::try_from).transpose()?,
        number: instance.number(),
    };
    let label = Arc::new(label, GFP_KERNEL)?;
    let request = DomainRequest {
        name,
        mr_mode: attr.mr_mode,
        caps,
        auth_key: &auth_key,
        label: &label,
        children: &child_list,
    };
    let imp = fabric.provider().open_domain(&request)?;
    // The provider may not need the binding of regions to endpoints that the consumer permits.
    let mr_mode = match imp.binds_regions() {
        true => attr.mr_mode,
        false => attr.mr_mode & !signed(c::KFI_MR_ENDPOINT),
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
        ops: OPS.as_ptr(),
        mr: MR.as_ptr(),
    };
    let body = DomainBody {
        instance,
        reserve: SetOnce::new(),
        imp,
        children: Children::new(),
        child_list,
        descs: Descs::new().map_err(|_| Errno::ENOMEM)?,
        label,
        mr_limits,
        mr_mode,
        caps,
        manual: attr.data_progress == c::kfi_progress_KFI_PROGRESS_MANUAL,
        auth_key,
        keys,
        unsettled: PendingRegs::new(enable_pending)?,
        later: PendingRegs::new(close_pending)?,
        eq: SetOnce::new(),
        counters: DomainCounters::new()?,
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
        opening::open::<DomainBody, _>(fabric.cast(), c"domain", domain, |fabric, domain| {
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

impl Object for DomainBody {
    type C = kfid_domain;
    type Place = Place<Self>;
    const CLASS: &'static Class = &DOMAIN;
    const OPS: kfi_ops = kfi_ops {
        bind: Some(bind::<Self>),
        control: Some(control),
        ops_open: Some(ext::open),
        ..slots::<Self>()
    };

    fn describe(object: &DomainObject, about: &mut c::kfi_helper_object) {
        object.describe_counters(about);
    }

    fn number(object: &DomainObject) -> u64 {
        object.instance.number()
    }

    fn locate<'a>(
        object: &'a DomainObject,
        about: &mut c::kfi_helper_object,
    ) -> Option<&'a DomainCounters> {
        <Self as Child>::Parent::locate(object.parent(), about);
        about.parent = object.instance.number();
        about.domain = object.name().unwrap_or(c"").as_char_ptr();
        Some(&object.counters)
    }
}

/// The slots that open objects in a domain.
pub(super) static OPS: Table<c::kfi_ops_domain> = Table(c::kfi_ops_domain {
    size: size_of::<c::kfi_ops_domain>(),
    av_open: nosys!(DomainBody, av_open),
    cq_open: Some(cq::open),
    endpoint: Some(ep::open::open),
    scalable_ep: nosys!(DomainBody, scalable_ep),
    cntr_open: Some(cntr::open),
    poll_open: nosys!(DomainBody, poll_open),
    stx_ctx: nosys!(DomainBody, stx_ctx),
    srx_ctx: Some(ep::open::open_srx),
    query_atomic: Some(query_atomic),
});

/// The slots that register memory.
pub(super) static MR: Table<c::kfi_ops_mr> = Table(c::kfi_ops_mr {
    size: size_of::<c::kfi_ops_mr>(),
    reg: Some(reg),
    regv: Some(regv),
    regbv: Some(regbv),
    regattr: Some(regattr),
    regsgl: Some(regsgl),
});

/// Maps and unmaps raw keys: `kfi_control()` of a domain. May sleep.
///
/// # Safety
///
/// - `fid` is an open object.
/// - `arg` is null or valid for the call, as the argument of `command`.
pub(super) unsafe extern "C" fn control(fid: *mut kfid, command: c_int, arg: *mut c_void) -> c_int {
    // SAFETY: `fid` is an open object. `arg` is null or the valid argument of the command.
    unsafe {
        DomainObject::call(fid, c"control", |domain| match u32::try_from(command) {
            Ok(c::KFI_MAP_RAW_MR) => map(domain, arg),
            Ok(c::KFI_UNMAP_KEY) => unmap(domain, arg),
            _ => Err(Errno::ENOSYS.into()),
        })
    }
}

impl Binds for DomainBody {
    fn bind(domain: &DomainObject, other: Other<'_>) -> Result<(), Refusal> {
        let eq = other.object::<EqBody>()?;
        keep(&domain.eq, other.bind(domain.parent(), eq, c::KFI_REG_MR)?)
    }
}

/// Checks whether the domain supports an atomic operation: `kfi_query_atomic()`. Any context.
///
/// # Safety
///
/// - `domain` is an open object.
/// - `attr` is null or valid for writes.
pub(super) unsafe extern "C" fn query_atomic(
    domain: *mut kfid_domain,
    datatype: c::kfi_datatype,
    op: c::kfi_op,
    attr: *mut c::kfi_atomic_attr,
    flags: u64,
) -> c_int {
    let fid = domain.cast();
    // SAFETY: `domain` is an open object, and begins with its fid.
    let found = unsafe { DomainObject::from_fid(fid) }.and_then(|domain| {
        let form = match flags {
            0 => AtomicForm::Plain,
            c::KFI_FETCH_ATOMIC => AtomicForm::Fetch,
            c::KFI_COMPARE_ATOMIC => AtomicForm::Compare,
            _ => return Err(Refusal::new(Errno::EBADFLAGS, c"unknown flag").value(flags)),
        };
        let limits = domain.provider().msg_limits().ok_or(NO_SUCH_CALL)?;
        limits.atomics.find(form, datatype, op)?;
        // SAFETY: `attr` is null or valid for writes.
        let attr = unsafe { attr.as_mut() }.ok_or(Refusal::NULL)?;
        (attr.count, attr.size) = (1, WORD);
        Ok(())
    });
    // SAFETY: `domain` is an open object, and begins with its fid.
    unsafe { DomainObject::answer(fid, c"query_atomic", found.map(|()| 0)) }
}

/// Copies a raw key from C before the checks, because a peer may write to the original at the same time. May sleep.
///
/// # Safety
///
/// `raw` is valid for reads of `len` bytes.
unsafe fn copy(raw: *const u8, len: usize) -> Result<KVVec<u8>, Refusal> {
    let mut copy = KVVec::from_elem(0, len, GFP_KERNEL)?;
    // SAFETY: `raw` is valid for reads of `len` bytes, and `copy` has as many.
    unsafe { raw.copy_to_nonoverlapping(copy.as_mut_ptr(), len) };
    Ok(copy)
}

/// Maps a peer's raw key in a domain: `KFI_MAP_RAW_MR`. Sleeps.
///
/// # Safety
///
/// - `arg` is null or a `struct kfi_mr_map_raw`.
/// - Its `key` is null or valid for writes.
/// - Its `raw_key` is null or has `key_size` bytes.
pub(super) unsafe fn map(domain: &DomainObject, arg: *mut c_void) -> Result<(), Refusal> {
    // SAFETY: `arg` is null or a valid `struct kfi_mr_map_raw`.
    let map = unsafe { arg.cast::<c::kfi_mr_map_raw>().as_ref() }.ok_or(Refusal::NULL)?;
    // SAFETY: `map.key` is null or valid for writes.
    let key = unsafe { map.key.as_mut() }.ok_or(Refusal::NULL)?;
    *key = widen(c::KFI_KEY_NOTAVAIL);
    no_flags(map.flags)?;
    if map.raw_key.is_null() {
        return Err(Refusal::NULL);
    }
    let longest = domain.longest_raw_key();
    if map.key_size > longest {
        let refusal = Refusal::new(Errno::EINVAL, c"raw key is longer than mr_key_size");
        return Err(refusal.value(widen(map.key_size)));
    }
    // SAFETY: `map.raw_key` isn't null, so it has `map.key_size` bytes.
    let raw = unsafe { copy(map.raw_key, map.key_size) }?;
    let counted = domain.count()?;
    *key = domain.keys.map(map.base_addr, rawkey::parse(&raw)?)?;
    counted.keep();
    Ok(())
}

/// Unmaps a key that [`map`] returned: `KFI_UNMAP_KEY`. May sleep.
///
/// # Safety
///
/// `arg` is null or a valid `u64`.
pub(super) unsafe fn unmap(domain: &DomainObject, arg: *mut c_void) -> Result<(), Refusal> {
    // SAFETY: `arg` is null or a valid `u64`.
    let key = unsafe { arg.cast::<u64>().as_ref() }.ok_or(Refusal::NULL)?;
    domain.keys.unmap(*key)?;
    domain.count_off();
    Ok(())
}
