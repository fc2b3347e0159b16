// SPDX-License-Identifier: GPL-2.0

//! The target to connect to, and the options for that.

use crate::keys::Call;
use core::net::{
    IpAddr,
    SocketAddr, //
};
use kernel::{
    cpu,
    prelude::*, //
};
use kfabric::random;

/// Names have no more bytes than this.
const MAX_NAME: usize = 223;
/// A host may have its own name; otherwise it goes by its number.
const HOST_NAME: &str = "nqn.2014-08.org.nvmexpress:uuid:";

/// The number of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HostId(pub(crate) [u8; 16]);

impl HostId {
    /// Makes an identity that nobody else has.
    pub(crate) fn new() -> Self {
        let mut id = [0; 16];
        let bytes = [random::number(), random::number()]
            .into_iter()
            .flat_map(u64::to_le_bytes);
        id.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
        Self(id)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut id = [0; 16];
        let mut digits = text.chars().filter(|c| *c != '-');
        for byte in &mut id {
            let high = digits.next()?.to_digit(16)?;
            let low = digits.next()?.to_digit(16)?;
            *byte = u8::try_from(high << 4 | low).ok()?;
        }
        digits.next().is_none().then_some(Self(id))
    }
}

impl kernel::fmt::Display for HostId {
    fn fmt(&self, f: &mut kernel::fmt::Formatter<'_>) -> kernel::fmt::Result {
        for (number, byte) in self.0.iter().enumerate() {
            if matches!(number, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

/// The target to connect to, and the options for that.
pub(crate) struct Options {
    pub(crate) address: SocketAddr,
    pub(crate) subsystem: KVec<u8>,
    pub(crate) host: KVec<u8>,
    pub(crate) host_id: HostId,
    /// How many queues for I/O to ask for.
    pub(crate) queues: u16,
    /// How many entries each has.
    pub(crate) entries: u16,
    /// After how many milliseconds without a command the target gives the host up; 0 is never.
    pub(crate) keep_alive: u32,
    /// How many milliseconds to wait before connecting again.
    pub(crate) reconnect_delay: u32,
    /// For how many milliseconds to try that; 0 is not at all.
    pub(crate) ctrl_loss: u32,
    /// How many milliseconds a command may take.
    pub(crate) timeout: u32,
    /// Maximum number of bytes of data right behind a command, if the target takes as many.
    pub(crate) in_capsule: u16,
    /// How memory is registered.
    pub(crate) register: Call,
}

impl Options {
    /// Reads options, `NAME=VALUE` with commas or spaces in between, for a host that is this one unless
    /// they say another.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the log says which.
    pub(crate) fn parse(text: &str, host_id: HostId) -> Result<Self> {
        let (mut ip, mut port) = (None, 4420);
        let mut options = Self {
            address: SocketAddr::new(IpAddr::from([0, 0, 0, 0]), 0),
            subsystem: KVec::new(),
            host: KVec::new(),
            host_id,
            queues: u16::try_from(cpu::nr_cpu_ids()).unwrap_or(u16::MAX),
            entries: 128,
            keep_alive: 5_000,
            reconnect_delay: 10_000,
            ctrl_loss: 600_000,
            timeout: 30_000,
            in_capsule: 4096,
            register: Call::Regbv,
        };
        let words = text.split([',', ' ', '\n', '\t']);
        for word in words.filter(|word| !word.is_empty()) {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            let taken = match name {
                "transport" => (value == "rdma").then_some(()),
                "traddr" => value.parse().ok().map(|value: IpAddr| ip = Some(value)),
                "trsvcid" => value.parse().ok().map(|value| port = value),
                "nqn" => copy_name(value, &mut options.subsystem),
                "hostnqn" => copy_name(value, &mut options.host),
                "hostid" => HostId::parse(value).map(|id| options.host_id = id),
                "nr_io_queues" => number(value, 1, 128, &mut options.queues),
                "queue_size" => number(value, 2, 1024, &mut options.entries),
                "keep_alive_tmo" => seconds(value, &mut options.keep_alive),
                "reconnect_delay" => seconds(value, &mut options.reconnect_delay),
                "ctrl_loss_tmo" => seconds(value, &mut options.ctrl_loss),
                "io_timeout" => seconds(value, &mut options.timeout),
                "in_capsule" => number(value, 0, 16384, &mut options.in_capsule),
                "register" => Call::parse(value).map(|call| options.register = call),
                _ => None,
            };
            if taken.is_none() {
                pr_err!("unknown, or of no such value: {word}\n");
                return Err(EINVAL);
            }
        }
        let Some(ip) = ip.filter(|_| !options.subsystem.is_empty()) else {
            pr_err!("traddr= and nqn= are needed\n");
            return Err(EINVAL);
        };
        options.address = SocketAddr::new(ip, port);
        if options.host.is_empty() {
            let name = kernel::str::CString::try_from_fmt(fmt!("{HOST_NAME}{}", options.host_id))?;
            options
                .host
                .extend_from_slice(name.to_bytes(), GFP_KERNEL)?;
        }
        Ok(options)
    }
}

fn copy_name(value: &str, to: &mut KVec<u8>) -> Option<()> {
    if value.is_empty() || value.len() > MAX_NAME {
        return None;
    }
    to.clear();
    to.extend_from_slice(value.as_bytes(), GFP_KERNEL).ok()
}

fn number(value: &str, least: u16, most: u16, to: &mut u16) -> Option<()> {
    let value = value
        .parse()
        .ok()
        .filter(|value| (least..=most).contains(value))?;
    *to = value;
    Some(())
}

/// Seconds, as milliseconds.
fn seconds(value: &str, to: &mut u32) -> Option<()> {
    let value: u32 = value.parse().ok()?;
    *to = value.checked_mul(1000)?;
    Some(())
}

#[kernel::macros::kunit_tests(kfi_nvme_options)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_counts() -> Result {
        let id = HostId([0xab; 16]);
        let text = "traddr=198.51.100.1,trsvcid=4421 nqn=sub,queue_size=32\nctrl_loss_tmo=7,register=regsgl";
        let options = Options::parse(text, id)?;
        assert!(options.address == SocketAddr::new(IpAddr::from([198, 51, 100, 1]), 4421));
        assert!(*options.subsystem == *b"sub");
        assert_eq!(
            (options.entries, options.ctrl_loss, options.timeout),
            (32, 7000, 30_000)
        );
        assert_eq!(options.register, Call::Regsgl);
        let host = b"nqn.2014-08.org.nvmexpress:uuid:abababab-abab-abab-abab-abababababab";
        assert!(*options.host == *host);
        let own = "traddr=2001:db8::1,nqn=a,hostnqn=h,hostid=00010203-0405-0607-0809-0a0b0c0d0e0f";
        let options = Options::parse(own, id)?;
        assert!(options.host_id == HostId(core::array::from_fn(|i| u8::try_from(i).unwrap_or(0))));
        assert!(*options.host == *b"h");
        Ok(())
    }

    #[test]
    fn what_is_wrong_is_refused() {
        let id = HostId([0; 16]);
        for text in [
            "",
            "nqn=a",
            "traddr=198.51.100.1",
            "traddr=nowhere,nqn=a",
            "traddr=198.51.100.1,nqn=a,queue_size=1",
            "traddr=198.51.100.1,nqn=a,unknown=1",
            "traddr=198.51.100.1,nqn=a,transport=tcp",
            "traddr=198.51.100.1,nqn=a,hostid=12",
            "traddr=198.51.100.1,nqn=a,register=mr",
        ] {
            assert!(Options::parse(text, id).err() == Some(EINVAL));
        }
    }
}
