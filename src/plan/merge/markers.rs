//! The two sides of a text with conflict markers.

/// Two versions of a text with conflicts: one with OURS in place of each conflict, and one with THEIRS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picked {
    pub ours: Vec<u8>,
    pub theirs: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Common,
    Ours,
    Base,
    Theirs,
}

/// The sizes of git's markers, which are longer for renamed files and merged bases.
pub const SIZES: std::ops::RangeInclusive<usize> = 7..=15;

/// Resolves all conflicts of a text, once to OURS and once to THEIRS. The markers can have any of git's styles. `None`:
/// there are no markers of this size, or they are incomplete.
pub fn pick(text: &[u8], marker_size: usize) -> Option<Picked> {
    let mut picked = Picked { ours: Vec::new(), theirs: Vec::new() };
    let (mut at, mut n) = (At::Common, 0);
    for line in text.split_inclusive(|it| *it == b'\n') {
        let next = match (at, marker(line, marker_size)) {
            (At::Common, Some(b'<')) => At::Ours,
            (At::Ours, Some(b'|')) => At::Base,
            (At::Ours | At::Base, Some(b'=')) => At::Theirs,
            (At::Theirs, Some(b'>')) => At::Common,
            _ => {
                if matches!(at, At::Common | At::Ours) {
                    picked.ours.extend(line);
                }
                if matches!(at, At::Common | At::Theirs) {
                    picked.theirs.extend(line);
                }
                continue;
            }
        };
        n += usize::from(next == At::Common);
        at = next;
    }
    (n > 0 && at == At::Common).then_some(picked)
}

/// The character that a marker line begins with; `None` for other lines.
fn marker(line: &[u8], size: usize) -> Option<u8> {
    let first = *line.first().filter(|it| b"<|=>".contains(it))?;
    let length = line.iter().take_while(|it| **it == first).count();
    let ends = matches!(line.get(length), None | Some(b' ' | b'\n' | b'\r'));
    (length == size && ends).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_side_is_picked_in_every_style() {
        let text = "a\n<<<<<<< HEAD\nb\n||||||| base\nc\n=======\nd\n>>>>>>> x\ne\n<<<<<<< HEAD\n=======\nf\n>>>>>>> x\n";
        let picked = pick(text.as_bytes(), 7).expect("it has conflicts");
        assert_eq!(picked, Picked { ours: b"a\nb\ne\n".to_vec(), theirs: b"a\nd\ne\nf\n".to_vec() });
        for text in ["", "a\n", "Title\n=======\n", "<<<<<<< x\na\n", "<<<<<<< x\na\n=======\n"] {
            assert_eq!(pick(text.as_bytes(), 7), None, "{text:?}");
        }
        assert_eq!(pick(b"<<<<<<<< x\na\n========\nb\n>>>>>>>> y\n", 7), None);
        assert!(pick(b"<<<<<<<< x\na\n========\nb\n>>>>>>>> y\n", 8).is_some());
    }
}
