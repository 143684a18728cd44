//! Short lines that processes leave for each other, in `.planwatch`: each is true for ever, and may be missing.

use super::file_system::Open;
use super::fs_ops::read_own;
use super::plans_dir::PlansDir;

/// Beyond this length the old lines go.
const LONG: u64 = 64 << 10;

impl PlansDir {
    /// Leaves a line; for whoever holds the lock of the plans directory.
    ///
    /// Nothing is synced, and a line that cannot be written is missing.
    pub fn remark(&self, name: &str, line: &str) {
        let Some(path) = self.runtime_dir().map(|it| it.join(name)) else { return };
        let is_long = self.disk.lstat(&path).is_ok_and(|it| it.len > LONG);
        if is_long && self.disk.remove(&path).is_err() {
            return;
        }
        if let Ok(file) = self.disk.open(&path, Open::Append) {
            file.write(format!("{line}\n").as_bytes()).ok();
        }
    }

    /// Reads the lines; one may be half written, and another one stand right behind it.
    pub fn remarks(&self, name: &str) -> String {
        let path = self.runtime_dir().map(|it| it.join(name));
        let bytes = path.and_then(|it| read_own(&*self.disk, &it, 2 * LONG).ok().flatten());
        // What is no text takes none of the other lines away.
        String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use crate::disk::model::Machine;

    #[test]
    fn lines_are_there_until_there_are_too_many() {
        let plans = Machine::with(&[("/plans/p/plan.md", "# P\n")]).plans();
        let _locked = plans.lock(&mut || {}).unwrap();
        assert_eq!(plans.remarks("r"), "");
        plans.remark("r", "one");
        plans.remark("r", "two");
        assert_eq!(plans.remarks("r"), "one\ntwo\n");
        plans.remark("r", &"x".repeat(64 << 10));
        plans.remark("r", "three");
        assert_eq!(plans.remarks("r"), "three\n");
    }
}
