// SPDX-License-Identifier: GPL-2.0

//! Whether a device does what it says.

use super::Queue;
use kernel::prelude::*;
use rdma::WrError;

/// How often a probe is repeated that says nothing about the device: a request was flushed, perhaps not by its own
/// fault, or the invalidation did not complete in time.
const PROBES: u32 = 3;

impl Queue {
    /// Returns whether regions can be invalidated on this device; an error if they can't be registered, or if no
    /// probe was answered.
    /// Sleeps until the device is done.
    pub(crate) fn can_invalidate(&self) -> Result<bool> {
        let mut unknown = WrError::Flushed;
        for _ in 0..PROBES {
            match self.get()?.probe() {
                Ok(Ok(())) => return Ok(true),
                Ok(Err(WrError::Post(error))) if error == ENOMEM => return Err(error),
                // rxe, for one, doesn't tell a request that failed from one that was in its way.
                Ok(Err(error @ (WrError::Flushed | WrError::TimedOut))) => unknown = error,
                Ok(Err(error)) => {
                    pr_info!(
                        "{}: can't invalidate regions ({}): deregisters them\n",
                        self.pd.device().name(),
                        error
                    );
                    return Ok(false);
                }
                Err(WrError::Flushed) => unknown = WrError::Flushed,
                // The log has it.
                Err(WrError::TimedOut) => return Err(WrError::TimedOut.into()),
                Err(error) => {
                    pr_warn!(
                        "{}: can't register regions: {}\n",
                        self.pd.device().name(),
                        error
                    );
                    return Err(error.into());
                }
            }
        }
        pr_warn!(
            "{}: {} probes of invalidation: {}\n",
            self.pd.device().name(),
            PROBES,
            unknown
        );
        Err(unknown.into())
    }
}
