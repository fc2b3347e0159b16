// SPDX-License-Identifier: GPL-2.0

//! Domains of providers written in Rust.

mod bind;

use self::bind::BoundEq;
use crate::{
    calls,
    children::Children,
    cntr,
    ep,
    eq::EqObject,
    errno::Errno,
    extension,
    fabric::{
        self,
        FabricObject, //
    },
    fid,
    hints,
    keymap::KeyMap,
    noio::NoIo,
    num::{
        signed,
        widen, //
    },
    offer::Offer,
    provider::Domain,
    raw,
    rawkey,
    refusal::Refusal,
    request::{
        AuthKey,
        MrLimits, //
    },
    reserve::Reserve,
    table::{
        no_op3,
        no_op4,
        no_op5,
        Table, //
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
    str::{
        CStr,
        CString, //
    },
    sync::SetOnce,
    types::Opaque, //
};
use kfi_bindings::{
    kfi_domain_attr,
    kfi_info,
    kfi_ops,
    kfi_ops_domain,
    kfid,
    kfid_domain,
    kfid_fabric, //
};

/// What a consumer wants of a new domain, from the `struct kfi_info` that it got by getinfo.
///
/// Its numbers have been checked against the domain's limits by the core.
pub struct DomainRequest<'a> {
    /// Name of the domain, if one was given.
    pub name: Option<&'a CStr>,
    /// The mode bits that the consumer agreed to.
    pub mr_mode: i32,
    /// The authorization key of all that is opened in the domain; empty for none.
    pub auth_key: &'a [u8],
}

/// A domain.
///
/// # Invariants
///
/// `c.fid` is what C points to. `children` counts all that is open in the domain, `regions` the
/// regions among it. `fabric` stays open, since it counts this domain as a child.
#[repr(C)]
pub(crate) struct DomainObject {
    // C may write to it: the context is the consumer's.
    c: Opaque<kfid_domain>,
    /// Goes before the provider's part, of which it is made.
    reserve: SetOnce<Pin<KBox<Reserve>>>,
    imp: KBox<dyn Domain>,
    children: Children,
    regions: Children,
    fabric: NonNull<FabricObject>,
    /// Its name, if it was opened by name.
    name: Option<CString>,
    mr_limits: MrLimits,
    mr_cnt: i32,
    mr_mode: i32,
    auth_key: KVec<u8>,
    keys: Pin<KBox<KeyMap>>,
    /// Where registrations report to, if they are asynchronous.
    eq: SetOnce<BoundEq>,
}

/// A new object counted in its domain; counted off again when dropped.
pub(crate) struct Child<'a> {
    domain: &'a DomainObject,
    remove: fn(&DomainObject),
}

impl Child<'_> {
    /// Leaves the object counted until [`DomainObject::remove_child`] or, for a region,
    /// [`DomainObject::remove_region`].
    pub(crate) fn keep(self) -> NonNull<DomainObject> {
        let domain = NonNull::from(self.domain);
        core::mem::forget(self);
        domain
    }
}

impl Drop for Child<'_> {
    fn drop(&mut self) {
        (self.remove)(self.domain);
    }
}

impl DomainObject {
    pub(crate) fn provider(&self) -> &dyn Domain {
        &*self.imp
    }

    /// The domain as C has it.
    pub(crate) fn as_ptr(&self) -> *mut kfid_domain {
        self.c.get()
    }

    /// The fabric that it belongs to.
    pub(crate) fn fabric(&self) -> &FabricObject {
        // SAFETY: Open by the invariant.
        unsafe { self.fabric.as_ref() }
    }

    /// Is it an offer of this domain, which needs no more of a consumer than has been agreed to?
    pub(crate) fn is_offered(&self, offer: &Offer) -> bool {
        self.name
            .as_ref()
            .is_none_or(|name| **name == *offer.domain)
            && offer.mr_mode & !self.mr_mode == 0
    }

    pub(crate) fn mr_limits(&self) -> &MrLimits {
        &self.mr_limits
    }

    /// Was it opened with this bit of `mr_mode`?
    pub(crate) fn has_mode(&self, bit: u32) -> bool {
        self.mr_mode & signed(bit) != 0
    }

    /// What regions are made of that must not fail for want of memory.
    pub(crate) fn reserve(&self) -> Option<&Reserve> {
        self.reserve.as_ref().map(|reserve| &**reserve)
    }

    /// Sets that, unless there is something.
    pub(crate) fn set_reserve(&self, reserve: Pin<KBox<Reserve>>) -> bool {
        self.reserve.populate(reserve)
    }

    /// The event queue that registrations report to from now on; open as long as the domain is.
    pub(crate) fn eq(&self) -> Option<&EqObject> {
        self.eq.as_ref().map(BoundEq::get)
    }

    /// The authorization key of what has none of its own; empty for none.
    pub(crate) fn auth_key(&self) -> &[u8] {
        &self.auth_key
    }

    /// Counts a new region; `ENOSPC` at `mr_cnt`. Any context.
    pub(crate) fn add_region(&self) -> Result<Child<'_>, Refusal> {
        let child = self.add_child()?;
        if !self.regions.add_below(self.mr_cnt)? {
            let refusal = Refusal::new(Errno::ENOSPC, c"mr_cnt regions are open");
            return Err(refusal.value(u64::from(self.mr_cnt.unsigned_abs())));
        }
        core::mem::forget(child);
        Ok(Child {
            domain: self,
            remove: Self::remove_region,
        })
    }

    /// Counts a region off. The domain may be gone afterwards. Any context.
    pub(crate) fn remove_region(&self) {
        self.regions.remove();
        self.children.remove();
    }

    /// Counts a new object that is no region. Any context.
    pub(crate) fn add_child(&self) -> Result<Child<'_>, Refusal> {
        self.children.add()?;
        Ok(Child {
            domain: self,
            remove: Self::remove_child,
        })
    }

    /// Counts an object off that is no region. The domain may be gone afterwards. Any context.
    pub(crate) fn remove_child(&self) {
        self.children.remove();
    }

    /// The raw keys that are mapped in it.
    pub(crate) fn keys(&self) -> &KeyMap {
        &self.keys
    }

    /// Length of the longest raw key that it takes: `mr_key_size` under `KFI_MR_RAW`; otherwise
    /// that is about other keys.
    pub(crate) fn longest_raw_key(&self) -> usize {
        rawkey::raw_key_size(match self.has_mode(kfi_bindings::KFI_MR_RAW) {
            true => self.mr_limits.pieces,
            false => rawkey::MOST_PIECES,
        })
    }
}

static OPS: Table<kfi_ops_domain> = Table(kfi_ops_domain {
    size: size_of::<kfi_ops_domain>(),
    av_open: Some(no_op4),
    cq_open: Some(no_op5),
    endpoint: Some(ep::open),
    scalable_ep: Some(no_op4),
    cntr_open: Some(cntr::open),
    poll_open: Some(no_op3),
    stx_ctx: Some(no_op4),
    srx_ctx: Some(no_op4),
    query_atomic: Some(no_op5),
});

static FID_OPS: Table<kfi_ops> = Table(kfi_ops {
    size: size_of::<kfi_ops>(),
    close: Some(close),
    bind: Some(bind::bind),
    control: Some(control),
    ops_open: Some(extension::open),
});

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
        name: unsafe { hints::name(attr.name) },
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
                fid: fid::new(kfi_bindings::KFI_CLASS_DOMAIN, context, &FID_OPS),
                ops: OPS.as_ptr(),
                mr: calls::OPS.as_ptr(),
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

/// The `domain` slot of a fabric.
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

/// Closes a domain; `EBUSY` while objects are open in it, or others use what is the domain's.
/// Sleeps.
///
/// # Safety
///
/// As the C API demands: every pointer is null or valid for the call.
unsafe extern "C" fn close(fid: *mut kfid) -> c_int {
    let _noio = NoIo::enter();
    let object = fid.cast::<DomainObject>();
    // SAFETY: C calls this on an open domain, whose fid is the object's first field.
    let (children, imp) = unsafe { (&(*object).children, &(*object).imp) };
    if let Err(errno) = children.close() {
        return Refusal::new(errno, c"objects are open in the domain").report();
    }
    if let Err(refusal) = imp.close() {
        children.reopen();
        return refusal.report();
    }
    // SAFETY: As above; without children, and closed, nobody uses it any more.
    let object = unsafe { KBox::from_raw(object) };
    let fabric = object.fabric;
    drop(object);
    // SAFETY: By the invariant of the object, which counted as a child of the fabric until here.
    unsafe { fabric.as_ref() }.children().remove();
    0
}

/// `kfi_control` of a domain: what there is about raw keys. May sleep.
///
/// # Safety
///
/// As the C API demands: every pointer is null or valid for the call.
unsafe extern "C" fn control(fid: *mut kfid, command: c_int, arg: *mut c_void) -> c_int {
    let _noio = NoIo::enter();
    // SAFETY: C calls this on an open object, with the argument that goes with the command.
    let done = unsafe {
        object(fid).and_then(|domain| match u32::try_from(command) {
            Ok(kfi_bindings::KFI_MAP_RAW_MR) => raw::map(domain, arg),
            Ok(kfi_bindings::KFI_UNMAP_KEY) => raw::unmap(domain, arg),
            _ => Err(Errno::ENOSYS.into()),
        })
    };
    done.map_or_else(Refusal::report, |()| 0)
}

/// The domain behind a fid.
///
/// # Safety
///
/// `fid` is null or an open object; the reference is not used after it was closed.
pub(crate) unsafe fn object<'a>(fid: *mut kfid) -> Result<&'a DomainObject, Refusal> {
    // The table tells our domains from those of C providers, and from other objects.
    // SAFETY: By the requirements of this function.
    match unsafe { fid::has_ops(fid, &FID_OPS) } {
        // SAFETY: The fid is the first field of an object.
        true => Ok(unsafe { &*fid.cast::<DomainObject>() }),
        false => Err(Refusal::new(Errno::EINVAL, c"not a domain")),
    }
}

/// The provider's domain behind a fid, if it is one of type `D`. For a provider's extensions.
///
/// # Safety
///
/// `fid` is null or an open object; the reference is not used after it was closed.
pub unsafe fn from_fid<'a, D: Domain>(fid: *mut kfid) -> Option<&'a D> {
    // SAFETY: By the requirements of this function.
    let domain = unsafe { object(fid) }.ok()?;
    domain.provider().as_any().downcast_ref()
}
