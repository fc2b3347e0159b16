// SPDX-License-Identifier: GPL-2.0

//! `kfi_domain_bind()`: the event queue that registrations report to.

use super::{
    DomainBody,
    DomainObject, //
};
use crate::{
    object::{
        binding::{
            Binds,
            Other, //
        },
        eq::EqBody, //
    },
    support::{
        errno::Errno,
        refusal::Refusal, //
    }, //
};
use kfi_bindings::KFI_REG_MR;

impl Binds for DomainBody {
    fn bind(domain: &DomainObject, other: Other<'_>) -> Result<(), Refusal> {
        let eq = other.object::<EqBody>()?;
        if domain.set_eq(other.bind(domain.parent(), eq, KFI_REG_MR)?) {
            Ok(())
        } else {
            Err(Refusal::new(
                Errno::EINVAL,
                c"the domain has an event queue already",
            ))
        }
    }
}
