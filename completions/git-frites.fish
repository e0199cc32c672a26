# fish completion for `git-frites …`, and for `git frites …`, which fish's own git completion passes on.
# fish does not pass on `git -C DIR`; completion then offers the runs of the current directory.
# Install it in share/fish/vendor_completions.d, or ~/.config/fish/completions.

function __git_frites_complete
    set -l words (commandline --current-process --tokenize --cut-at-cursor)
    set -l current (commandline --current-token --cut-at-cursor)
    # Words after `--` are a separate command.
    if set -l escape (contains --index -- -- $words)
        complete --do-complete=(string join ' ' -- (string escape -- $words[(math $escape + 1)..]) $current)
        return
    end
    FRITES_COMPLETE=fish git-frites -- $words "$current" 2>/dev/null
end

complete --command git-frites --exclusive --keep-order --arguments '(__git_frites_complete)'
