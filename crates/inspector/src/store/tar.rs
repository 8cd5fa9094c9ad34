//! Writes a tar file: the POSIX format, which every system unpacks.

/// A tar file that is being written.
#[derive(Debug, Default)]
pub(super) struct Tar(Vec<u8>);

const BLOCK: usize = 512;
/// The longest name that fits into a header; longer ones get a record of their own.
const NAME_SIZE_BYTES_MAX: usize = 100;

impl Tar {
    /// Adds a file. `changed_at` is in seconds since 1970.
    pub(super) fn add(&mut self, name: &str, changed_at: u64, content: &[u8]) {
        // Names in headers are bytes of an unknown encoding; a record of the extended format is UTF-8.
        if name.len() > NAME_SIZE_BYTES_MAX || !name.is_ascii() {
            let record = record("path", name);
            self.entry("pax-header", b'x', changed_at, record.as_bytes());
        }
        self.entry(name, b'0', changed_at, content);
    }

    /// Ends the file and returns it.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.0.resize(self.0.len() + 2 * BLOCK, 0);
        self.0
    }

    fn entry(&mut self, name: &str, kind: u8, changed_at: u64, content: &[u8]) {
        let mut header = [0_u8; BLOCK];
        let mut put = |at: usize, bytes: &[u8]| {
            let place = header.iter_mut().skip(at);
            place.zip(bytes).for_each(|(place, byte)| *place = *byte);
        };
        put(0, name.as_bytes().get(..NAME_SIZE_BYTES_MAX).unwrap_or(name.as_bytes()));
        put(100, b"0000644\0");
        put(108, b"0000000\0");
        put(116, b"0000000\0");
        put(124, format!("{:011o}\0", content.len()).as_bytes());
        put(136, format!("{changed_at:011o}\0").as_bytes());
        put(148, b"        ");
        put(156, &[kind]);
        put(257, b"ustar\x0000");
        let sum: u32 = header.iter().copied().map(u32::from).sum();
        let mut put = |at: usize, bytes: &[u8]| {
            let place = header.iter_mut().skip(at);
            place.zip(bytes).for_each(|(place, byte)| *place = *byte);
        };
        put(148, format!("{sum:06o}\0 ").as_bytes());
        self.0.extend_from_slice(&header);
        self.0.extend_from_slice(content);
        let padding = content.len().next_multiple_of(BLOCK) - content.len();
        self.0.resize(self.0.len() + padding, 0);
    }
}

/// Returns a record of the extended format: its own length, a key and a value.
fn record(key: &str, value: &str) -> String {
    let rest = format!(" {key}={value}\n");
    let mut length = rest.len();
    // The length counts its own digits, of which a longer number may have one more.
    while length != rest.len() + length.to_string().len() {
        length = rest.len() + length.to_string().len();
    }
    format!("{length}{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_made_of_blocks_with_checksums() {
        let mut tar = Tar::default();
        tar.add("notes/tea.md", 1_000_000_000, b"green\n");
        let bytes = tar.finish();
        assert_eq!(bytes.len(), 4 * BLOCK);
        assert!(bytes.starts_with(b"notes/tea.md\0"));
        assert_eq!(&bytes[124..136], b"00000000006\0");
        assert_eq!(&bytes[257..265], b"ustar\x0000");
        let stored =
            u32::from_str_radix(std::str::from_utf8(&bytes[148..154]).unwrap(), 8).unwrap();
        let sum: u32 = bytes[..BLOCK]
            .iter()
            .enumerate()
            .map(
                |(at, byte)| {
                    if (148..156).contains(&at) { u32::from(b' ') } else { u32::from(*byte) }
                },
            )
            .sum();
        assert_eq!(stored, sum);
        assert_eq!(&bytes[BLOCK..BLOCK + 6], b"green\n");
    }

    #[test]
    fn long_and_foreign_names_get_a_record() {
        let mut tar = Tar::default();
        let long = format!("{}.md", "é".repeat(500));
        tar.add(&long, 0, b"");
        let bytes = tar.finish();
        assert_eq!(bytes[156], b'x');
        let text = String::from_utf8_lossy(&bytes);
        assert!(text.contains(&format!("1014 path={long}\n")));
    }

    #[test]
    fn a_record_counts_its_own_digits() {
        for size in 0..200 {
            let record = record("path", &"a".repeat(size));
            assert!(record.starts_with(&format!("{} path=", record.len())), "{record}");
        }
    }
}
