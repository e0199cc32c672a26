//! Tells whether git itself must write the files of a checkout.
use crate::fs::regular;
use crate::git::program;
use crate::git::repo::{Repo, is_partial_clone};

/// The reason why git must check out the files of a repository; `None` if the fan-out writer writes the same
/// files. `gix` was opened in a new worktree, whose configuration may differ from that of the user's
/// checkout, or when this process started, before any command ran.
pub fn reason(repo: &Repo, gix: &gix::Repository) -> Option<String> {
    let config = gix.config_snapshot();
    let is = |key: &str, value: bool| config.boolean(key) == Some(value);
    let reasons: [(&str, bool); 7] = [
        ("it is a partial clone", is_partial_clone(gix)),
        ("its checkouts are sparse", is("core.sparseCheckout", true)),
        ("core.fileMode is false", is("core.fileMode", false)),
        ("core.symlinks is false", is("core.symlinks", false)),
        ("core.precomposeUnicode is true", is("core.precomposeUnicode", true)),
        ("core.sharedRepository is set", config.string("core.sharedRepository").is_some()),
        // git tests the file system in the same way when it makes a repository.
        ("file names do not differ by case", repo.common_dir().join("hEAD").exists()),
    ];
    let reason = reasons.into_iter().find(|(_, applies)| *applies).map(|(reason, _)| reason);
    reason.or_else(|| hidden_attributes(repo, gix)).map(str::to_owned)
}

/// The reason why git may see attributes that gix cannot read; `None` if there are no such attributes.
pub fn hidden_attributes(repo: &Repo, gix: &gix::Repository) -> Option<&'static str> {
    let info = repo.common_dir().join("info/attributes");
    let reasons = [
        ("attr.tree is set", gix.config_snapshot().string("attr.tree").is_some()),
        ("'info/attributes' is not a regular file", info.exists() && regular::open(&info).is_err()),
        ("git has attributes of its own", installed_attributes()),
    ];
    reasons.into_iter().find(|(_, applies)| *applies).map(|(reason, _)| reason)
}

/// True if the git program has an `etc/gitattributes` in the directory where it is installed. gix does not
/// read that file.
fn installed_attributes() -> bool {
    std::env::var_os("GIT_ATTR_NOSYSTEM").is_none()
        && program::file_of_prefix("etc/gitattributes").is_some()
}
