// SPDX-License-Identifier: GPL-2.0

//! `kfi_srx_context()`, and what can be done with what it opens.

use super::{
    SrxBody,
    SrxObject,
    SRX, //
};
use crate::{
    object::{
        binding::{
            bind,
            Binds,
            Other, //
        },
        closing::slots,
        cntr::CounterBody,
        cq::CqBody,
        domain::DomainObject,
        ep::{
            atomic,
            attr::within,
            cm,
            ops,
            reports::Reports,
            transfer, //
        },
        fid::Class,
        obj::Object,
        opening,
        place::Place, //
    },
    post::flags::PostFlags,
    support::{
        c_ref::c_ref,
        errno::Errno,
        num::widen_u32,
        refusal::Refusal,
        table::NO_SUCH_CALL, //
    }, //
};
use kernel::ffi::{
    c_int,
    c_void, //
};
use kfi_bindings::{
    kfi_ops,
    kfi_rx_attr,
    kfid_domain,
    kfid_ep,
    KFI_RECV,
    KFI_SELECTIVE_COMPLETION, //
};

impl Object for SrxBody {
    type C = kfid_ep;
    type Place = Place<Self>;
    const CLASS: &'static Class = &SRX;
    const OPS: kfi_ops = kfi_ops {
        bind: Some(bind::<Self>),
        ..slots::<Self>()
    };
}

impl Binds for SrxBody {
    fn bind(srx: &SrxObject, other: Other<'_>) -> Result<(), Refusal> {
        const RECV: u64 = widen_u32(KFI_RECV);
        let twice = Refusal::new(Errno::EINVAL, c"something is bound for that already");
        let domain = srx.parent();
        let bound = if let Ok(cq) = other.object::<CqBody>() {
            let flags = other.flags_of(RECV, KFI_SELECTIVE_COMPLETION)?;
            srx.report_to(Reports {
                cq: other.bind_any(domain, cq)?,
                selective: flags & KFI_SELECTIVE_COMPLETION != 0,
            })
        } else if let Ok(counter) = other.object::<CounterBody>() {
            srx.counter.populate(other.bind(domain, counter, RECV)?)
        } else {
            let why = c"neither a completion queue nor a counter";
            return Err(Refusal::new(Errno::EINVAL, why));
        };
        match bound {
            true => Ok(()),
            false => Err(twice),
        }
    }
}

/// What there is to a new context of a domain.
fn make(
    domain: &DomainObject,
    attr: Option<&kfi_rx_attr>,
    context: *mut c_void,
) -> Result<(kfid_ep, SrxBody), Refusal> {
    let provider = domain.provider();
    let limits = provider.msg_limits().ok_or(NO_SUCH_CALL)?;
    if limits.shared_size == 0 {
        return Err(NO_SUCH_CALL);
    }
    let op_flags = attr.map_or(0, |attr| attr.op_flags);
    PostFlags::parse(op_flags, PostFlags::RECEIVE)?;
    within(attr.map_or(0, |attr| attr.iov_limit), limits.local.segments)?;
    let size = within(attr.map_or(0, |attr| attr.size), limits.shared_size)?;
    let c = kfid_ep {
        fid: SrxObject::fid(context),
        ops: ops::EP.as_ptr(),
        cm: cm::CM.as_ptr(),
        msg: transfer::MSG.as_ptr(),
        rma: transfer::RMA.as_ptr(),
        tagged: ops::TAGGED.as_ptr(),
        atomic: atomic::ATOMIC.as_ptr(),
    };
    let imp = provider.open_srx(size)?;
    Ok((c, SrxBody::new(imp, *limits, op_flags)?))
}

/// The `srx_ctx` slot of a domain. May sleep.
///
/// # Safety
///
/// As the C API demands: each pointer is null or valid.
pub(crate) unsafe extern "C" fn open(
    domain: *mut kfid_domain,
    attr: *mut kfi_rx_attr,
    srx: *mut *mut kfid_ep,
    context: *mut c_void,
) -> c_int {
    // SAFETY: Each is null or valid as the C API demands; a domain begins with its fid.
    unsafe {
        opening::open(domain.cast(), srx, |domain, _| {
            make(domain, c_ref(attr), context)
        })
    }
}
