// SPDX-License-Identifier: GPL-2.0

//! Objects on a protection domain that are not others'.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::pd::Pd;

/// An object on a protection domain that counts as this crate's, not as one of others.
///
/// To be made as soon as the object has been, whoever has made it: this crate, or somebody on its
/// behalf, as `rdma_create_qp()` does. While there is one, its domain is there.
///
/// # Examples
///
/// ```ignore
/// // SAFETY: ...
/// to_result(unsafe { bindings::rdma_create_qp(id, pd.as_raw(), &mut attr) })?;
/// let counted = Counted::new(&pd);
/// ...
/// counted.end("queue pair", || {
///     // SAFETY: ...
///     unsafe { bindings::rdma_destroy_qp(id) };
///     Ok(())
/// })?;
/// ```
#[must_use]
pub struct Counted {
    pd: Arc<Pd>,
}

impl Counted {
    /// Counts an object that has just been made. Any context.
    pub fn new(pd: &Arc<Pd>) -> Self {
        pd.object_made();
        Self { pd: pd.clone() }
    }

    /// The protection domain.
    pub(crate) fn pd(&self) -> &Arc<Pd> {
        &self.pd
    }

    /// Destroys the object by `destroy`. If that fails it has been leaked, which the log says, and
    /// the domain will be with it. Sleeps as `destroy` does.
    pub fn end(self, what: &str, destroy: impl FnOnce() -> Result) -> Result {
        self.pd.object_goes();
        destroy()
            .inspect(|()| self.pd.object_gone())
            .inspect_err(|&error| self.pd.object_leaked(what, error))
    }
}
