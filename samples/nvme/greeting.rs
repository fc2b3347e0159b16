// SPDX-License-Identifier: GPL-2.0

//! The private data of a connection request, and of its rejection (NVMe/RDMA 1.0, section 3.2).

use nvme::QueueConfig;

/// Size of the private data of a host, in bytes.
const SIZE: usize = 32;

/// Returns the private data of a host that connects a queue.
pub(crate) fn greeting(config: &QueueConfig) -> [u8; SIZE] {
    let mut greeting = [0; SIZE];
    let format = 0;
    let &QueueConfig {
        qid,
        entries,
        sqsize,
        cntlid,
        ..
    } = config;
    let fields = [format, qid, entries, sqsize, cntlid];
    let bytes = fields.into_iter().flat_map(u16::to_le_bytes);
    greeting
        .iter_mut()
        .zip(bytes)
        .for_each(|(to, from)| *to = from);
    greeting
}

/// Returns the reason in the private data of a target that rejects, or an empty text.
pub(crate) fn rejection(data: &[u8]) -> &'static str {
    // A status follows the format. Both have 2 bytes.
    let [_, _, status, 0, ..] = data else {
        return "";
    };
    match status {
        1 => ": the target expects a greeting of another length",
        2 => ": the target doesn't know the format of the greeting",
        3 => ": the target has no queue of this number",
        4 | 5 => ": the target refuses the size of the queue",
        6 => ": the target has no resources left",
        7 | 8 => ": the target refuses the number of outstanding reads",
        9 => ": the target doesn't know the controller",
        _ => "",
    }
}

#[kernel::macros::kunit_tests(kfi_nvme_greeting)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_little_endian() {
        let config = QueueConfig {
            qid: 0x0102,
            entries: 0x0304,
            sqsize: 0x0303,
            cntlid: 0x0506,
            ..Default::default()
        };
        let bytes = greeting(&config);
        assert_eq!(bytes[..10], [0, 0, 2, 1, 4, 3, 3, 3, 6, 5]);
        assert!(bytes[10..].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn reasons_need_the_whole_status() {
        assert!(rejection(&[0, 0, 3, 0]).contains("queue"));
        assert!(rejection(&[0, 0, 6, 0, 9, 9]).contains("resources"));
        for data in [
            &[][..],
            &[0, 0, 3],
            &[0, 0, 3, 1],
            &[0, 0, 0, 0],
            &[0, 0, 99, 0],
        ] {
            assert_eq!(rejection(data), "");
        }
    }
}
