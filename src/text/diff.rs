//! Unified diffs of plan files, as `--dry-run` shows them.

use similar::TextDiff;

/// Returns the unified diff between two versions of a file; empty if they are equal.
///
/// `None` is a file that does not exist. The form is git's, so that the result can be applied with `git apply`;
/// bytes that are not UTF-8 are shown as replacement characters.
pub fn unified(path: &str, before: Option<&[u8]>, after: Option<&[u8]>) -> String {
    if before == after {
        return String::new();
    }
    let old = String::from_utf8_lossy(before.unwrap_or_default());
    let new = String::from_utf8_lossy(after.unwrap_or_default());
    let old_name = before.map_or_else(|| "/dev/null".to_owned(), |_| format!("a/{path}"));
    let new_name = after.map_or_else(|| "/dev/null".to_owned(), |_| format!("b/{path}"));
    let mode = match (before, after) {
        (None, _) => "new file mode 100644\n",
        (_, None) => "deleted file mode 100644\n",
        _ => "",
    };
    let head = format!("diff --git a/{path} b/{path}\n{mode}");
    if old.is_empty() && new.is_empty() {
        return head;
    }
    let diff = TextDiff::from_lines(old.as_ref(), new.as_ref());
    head + &diff.unified_diff().context_radius(3).header(&old_name, &new_name).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_files_have_no_diff() {
        assert_eq!(unified("a.md", Some(b"x\n"), Some(b"x\n")), "");
    }

    #[test]
    fn a_change_is_one_hunk_with_context() {
        let diff = unified(
            "p/step-1.md",
            Some(b"---\nstatus: pending\n---\n"),
            Some(b"---\nstatus: completed\n---\n"),
        );
        assert_eq!(
            diff,
            "diff --git a/p/step-1.md b/p/step-1.md\n--- a/p/step-1.md\n+++ b/p/step-1.md\n@@ -1,3 +1,3 @@\n ---\n-status: pending\n+status: completed\n ---\n"
        );
    }

    #[test]
    fn a_new_file_comes_from_nothing() {
        assert!(
            unified("a.md", None, Some(b"x\n"))
                .starts_with("diff --git a/a.md b/a.md\nnew file mode 100644\n--- /dev/null\n+++ b/a.md\n")
        );
    }
}
