// SPDX-License-Identifier: GPL-2.0

//! Generic netlink: requests, and the messages and attributes of answers.
//!
//! Nothing here trusts a length that it has read.

use crate::error::Error;
use std::{
    fmt,
    io::{
        self,
        Read,
        Write, //
    }, //
};

/// The header of a message: its length, type, flags, sequence number and port.
const HEADER: usize = 16;
/// The header behind that of a generic netlink message: the command and its version.
const GENERIC_HEADER: usize = 4;
/// The kernel puts at most 32 KiB of answers into one datagram.
const DATAGRAM: usize = 65536;

const NLMSG_NOOP: u16 = 1;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLMSG_OVERRUN: u16 = 4;

const NLM_F_REQUEST: u16 = 0x1;
const NLM_F_DUMP_INTR: u16 = 0x10;
const NLM_F_DUMP: u16 = 0x300;
/// Of an error: the request is not repeated in it, and attributes follow.
const NLM_F_CAPPED: u16 = 0x100;
const NLM_F_ACK_TLVS: u16 = 0x200;
const NLMSGERR_ATTR_MSG: u16 = 1;

const GENL_ID_CTRL: u16 = 16;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;

/// The kinds of attributes without the flags for nesting and byte order.
const NLA_TYPE_MASK: u16 = 0x3fff;

/// An answer that breaks the rules of netlink, or lacks an attribute.
#[derive(Debug, PartialEq)]
pub struct Malformed(pub &'static str);

impl From<Malformed> for Error {
    fn from(e: Malformed) -> Self {
        Error::new(format!("the kernel's answer is malformed: {}", e.0))
    }
}

/// A refusal by the kernel: the errno, and the text that came with it.
#[derive(Debug, PartialEq)]
pub struct Refused {
    pub errno: i32,
    pub text: Option<String>,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = io::Error::from_raw_os_error(self.errno);
        match &self.text {
            Some(text) => write!(f, "{text} ({error})"),
            None => write!(f, "{error}"),
        }
    }
}

fn align(length: usize) -> usize {
    length.saturating_add(3) & !3
}

/// Takes `N` bytes from the front of `bytes`.
fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*first)
}

/// Takes an element of `length` bytes from the front of `bytes`, and what pads it to 4 bytes.
fn take_padded<'a>(bytes: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let element = bytes.get(..length)?;
    // The last element need not be padded.
    *bytes = bytes.get(align(length)..).unwrap_or_default();
    Some(element)
}

/// A message: its payload begins behind the header.
#[derive(Debug, PartialEq)]
struct Message<'a> {
    kind: u16,
    flags: u16,
    sequence: u32,
    payload: &'a [u8],
}

/// Splits bytes into what `parse` takes from their beginning, up to the first failure.
fn all<'a, T>(
    mut bytes: &'a [u8],
    parse: fn(&mut &'a [u8]) -> Result<T, Malformed>,
) -> impl Iterator<Item = Result<T, Malformed>> + use<'a, T> {
    std::iter::from_fn(move || {
        if bytes.is_empty() {
            return None;
        }
        let parsed = parse(&mut bytes);
        if parsed.is_err() {
            bytes = &[];
        }
        Some(parsed)
    })
}

/// Splits a datagram into its messages.
fn messages(bytes: &[u8]) -> impl Iterator<Item = Result<Message<'_>, Malformed>> {
    all(bytes, message)
}

fn message<'a>(bytes: &mut &'a [u8]) -> Result<Message<'a>, Malformed> {
    let header = |mut at: &[u8]| {
        Some((
            u32::from_ne_bytes(take(&mut at)?),
            u16::from_ne_bytes(take(&mut at)?),
            u16::from_ne_bytes(take(&mut at)?),
            u32::from_ne_bytes(take(&mut at)?),
            u32::from_ne_bytes(take(&mut at)?),
        ))
    };
    let (length, kind, flags, sequence, _port) =
        header(bytes).ok_or(Malformed("a message is shorter than its header"))?;
    let length = usize::try_from(length).map_err(|_| Malformed("a message is too long"))?;
    let whole =
        take_padded(bytes, length).ok_or(Malformed("a message is longer than its datagram"))?;
    let payload = whole
        .get(HEADER..)
        .ok_or(Malformed("the length of a message is less than its header"))?;
    Ok(Message {
        kind,
        flags,
        sequence,
        payload,
    })
}

/// An attribute of a message.
#[derive(Debug, PartialEq)]
pub struct Attribute<'a> {
    pub kind: u16,
    value: &'a [u8],
}

impl Attribute<'_> {
    /// Returns the attributes in a nest.
    pub fn nested(&self) -> impl Iterator<Item = Result<Attribute<'_>, Malformed>> {
        attributes(self.value)
    }

    /// Returns the value of an attribute of 32 bits.
    pub fn u32(&self) -> Result<u32, Malformed> {
        match self.value.try_into() {
            Ok(bytes) => Ok(u32::from_ne_bytes(bytes)),
            Err(_) => Err(Malformed("a number does not have 4 bytes")),
        }
    }

    /// Returns the value of an attribute of the type uint, which has 4 or 8 bytes.
    pub fn uint(&self) -> Result<u64, Malformed> {
        match (self.value.try_into(), self.u32()) {
            (Ok(bytes), _) => Ok(u64::from_ne_bytes(bytes)),
            (_, Ok(number)) => Ok(number.into()),
            _ => Err(Malformed("a number has neither 4 nor 8 bytes")),
        }
    }

    /// Returns the string of an attribute. A terminal gets no control characters from it.
    pub fn text(&self) -> Result<String, Malformed> {
        let bytes = self.value.split(|i| *i == 0).next().unwrap_or_default();
        let text = std::str::from_utf8(bytes).map_err(|_| Malformed("a string is no UTF-8"))?;
        Ok(text.replace(|i: char| i.is_control(), "?"))
    }
}

/// Splits the payload of a message into its attributes.
pub fn attributes(bytes: &[u8]) -> impl Iterator<Item = Result<Attribute<'_>, Malformed>> {
    all(bytes, attribute)
}

fn attribute<'a>(bytes: &mut &'a [u8]) -> Result<Attribute<'a>, Malformed> {
    let header = |mut at: &[u8]| {
        Some((
            u16::from_ne_bytes(take(&mut at)?),
            u16::from_ne_bytes(take(&mut at)?),
        ))
    };
    let (length, kind) =
        header(bytes).ok_or(Malformed("an attribute is shorter than its header"))?;
    let whole = take_padded(bytes, length.into())
        .ok_or(Malformed("an attribute is longer than its message"))?;
    let value = whole.get(4..).ok_or(Malformed(
        "the length of an attribute is less than its header",
    ))?;
    Ok(Attribute {
        kind: kind & NLA_TYPE_MASK,
        value,
    })
}

/// Returns what an error or the end of a dump says: `None` if the kernel has not refused.
fn refusal(message: &Message<'_>) -> Result<Option<Refused>, Malformed> {
    let mut rest = message.payload;
    let errno = match take(&mut rest) {
        Some(bytes) => i32::from_ne_bytes(bytes),
        // The end of a dump may have no payload.
        None if message.kind == NLMSG_DONE => 0,
        None => return Err(Malformed("an error is shorter than an errno")),
    };
    if errno >= 0 {
        return Ok(None);
    }
    let mut text = None;
    if message.flags & NLM_F_ACK_TLVS != 0 {
        if message.kind == NLMSG_ERROR {
            let length = u32::from_ne_bytes(
                *rest
                    .first_chunk()
                    .ok_or(Malformed("an error does not repeat its request"))?,
            );
            // The header of the request is there; the rest is, unless the error is capped.
            let repeated = match message.flags & NLM_F_CAPPED {
                0 => usize::try_from(length).unwrap_or(usize::MAX).max(HEADER),
                _ => HEADER,
            };
            take_padded(&mut rest, repeated)
                .ok_or(Malformed("an error does not repeat its request"))?;
        }
        for attribute in attributes(rest) {
            let attribute = attribute?;
            if attribute.kind == NLMSGERR_ATTR_MSG {
                text = Some(attribute.text()?);
            }
        }
    }
    Ok(Some(Refused {
        errno: errno.saturating_neg(),
        text,
    }))
}

/// Builds a request: its attributes are pairs of kind and value.
fn request(
    kind: u16,
    flags: u16,
    sequence: u32,
    command: u8,
    attributes: &[(u16, &[u8])],
) -> Result<Vec<u8>, Error> {
    let mut body = vec![command, 1, 0, 0];
    for (kind, value) in attributes {
        let length = u16::try_from(value.len().saturating_add(4))
            .map_err(|_| Error::new("an argument is too long"))?;
        body.extend(length.to_ne_bytes());
        body.extend(kind.to_ne_bytes());
        body.extend(*value);
        body.resize(align(body.len()), 0);
    }
    let length = u32::try_from(body.len().saturating_add(HEADER))
        .map_err(|_| Error::new("an argument is too long"))?;
    let mut whole = Vec::new();
    whole.extend(length.to_ne_bytes());
    whole.extend(kind.to_ne_bytes());
    whole.extend((flags | NLM_F_REQUEST).to_ne_bytes());
    whole.extend(sequence.to_ne_bytes());
    whole.extend(0u32.to_ne_bytes());
    whole.extend(body);
    Ok(whole)
}

/// The end of an exchange that the kernel has not broken off.
#[derive(Debug, PartialEq)]
pub enum Outcome {
    Complete,
    /// Something changed while the kernel made the dump. Entries may be missing or be there twice.
    Interrupted,
    Refused(Refused),
}

/// A generic netlink family on a socket.
pub struct Family<L> {
    link: L,
    id: u16,
    sequence: u32,
}

impl<L: Read + Write> Family<L> {
    /// Asks the kernel for the family of that name. Returns `None` if there is none.
    pub fn find(link: L, name: &str) -> Result<Option<Self>, Error> {
        let mut family = Family {
            link,
            id: GENL_ID_CTRL,
            sequence: 0,
        };
        let mut name = Vec::from(name);
        name.push(0);
        let mut id = None;
        let outcome = family.exchange(
            0,
            CTRL_CMD_GETFAMILY,
            &[(CTRL_ATTR_FAMILY_NAME, &name)],
            |payload| {
                for attribute in attributes(payload) {
                    let attribute = attribute?;
                    if attribute.kind == CTRL_ATTR_FAMILY_ID {
                        let bytes = attribute.value.try_into();
                        id =
                            Some(u16::from_ne_bytes(bytes.map_err(|_| {
                                Malformed("a family's number has no 2 bytes")
                            })?));
                    }
                }
                Ok(())
            },
        )?;
        match outcome {
            Outcome::Refused(e) if e.errno == libc::ENOENT => return Ok(None),
            Outcome::Refused(e) => return Err(Error::new(format!("netlink: {e}"))),
            Outcome::Complete | Outcome::Interrupted => {}
        }
        family.id = id.ok_or(Malformed("a family has no number"))?;
        Ok(Some(family))
    }

    #[cfg(test)]
    pub fn link(&self) -> &L {
        &self.link
    }

    /// Asks for a dump, and passes the attributes of each entry to `each`.
    pub fn dump(
        &mut self,
        command: u8,
        attributes: &[(u16, &[u8])],
        each: impl FnMut(&[u8]) -> Result<(), Malformed>,
    ) -> Result<Outcome, Error> {
        self.exchange(NLM_F_DUMP, command, attributes, each)
    }

    fn exchange(
        &mut self,
        flags: u16,
        command: u8,
        attributes: &[(u16, &[u8])],
        mut each: impl FnMut(&[u8]) -> Result<(), Malformed>,
    ) -> Result<Outcome, Error> {
        let broken = |e: io::Error| Error::new(format!("netlink: {e}"));
        self.sequence = self.sequence.wrapping_add(1);
        let request = request(self.id, flags, self.sequence, command, attributes)?;
        self.link.write_all(&request).map_err(broken)?;
        let mut buffer = vec![0; DATAGRAM];
        let mut outcome = Outcome::Complete;
        loop {
            let length = match self.link.read(&mut buffer) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                other => other.map_err(broken)?,
            };
            if length == 0 {
                return Err(Error::new("netlink: the kernel has ended its answer early"));
            }
            for message in messages(buffer.get(..length).unwrap_or_default()) {
                let message = message?;
                // An answer to an earlier request that was given up.
                if message.sequence != self.sequence {
                    continue;
                }
                if message.flags & NLM_F_DUMP_INTR != 0 {
                    outcome = Outcome::Interrupted;
                }
                match message.kind {
                    NLMSG_NOOP => {}
                    NLMSG_ERROR | NLMSG_DONE => {
                        return Ok(refusal(&message)?.map_or(outcome, Outcome::Refused))
                    }
                    NLMSG_OVERRUN => return Err(Malformed("data was lost").into()),
                    kind if kind == self.id => {
                        let payload = message.payload.get(GENERIC_HEADER..);
                        each(payload.ok_or(Malformed("a message has no command"))?)?;
                        if flags & NLM_F_DUMP == 0 {
                            return Ok(outcome);
                        }
                    }
                    _ => return Err(Malformed("a message is of another family").into()),
                }
            }
        }
    }
}

#[cfg(test)]
pub mod tests;
